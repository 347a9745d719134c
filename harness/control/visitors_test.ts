import assert from "node:assert/strict";
import { withCluster } from "../cluster/mod.ts";
import { liveMs } from "../live_clock.ts";
import { until } from "../until.ts";
import { visitorAccounts, Visitors } from "./visitors.ts";

Deno.test("the visitors' ledger finds no fault where a visitor moves behind a cut link", async () => {
  await withCluster({
    datacenters: 2,
    redis: "embedded",
    database: "internal",
    archives: true, // as in a cluster by hand
    users: visitorAccounts(2),
  }, async (cluster) => {
    await using visitors = await Visitors.enter(cluster);
    const settled = () =>
      until(() => visitors.ledger().open === 0, { what: "every stanza has a fate" });
    const delivered = () => visitors.ledger().balance.delivered;
    await visitors.move("visitor1", "dc2", []);
    await until(() => delivered() >= 10, { what: "stanzas arrive" });
    visitors.pause();
    await settled();
    cluster.sever("dc1", "dc2");
    await visitors.move("visitor1", "dc1", []);
    visitors.resume();
    // dc2 cannot learn where visitor1 is.
    await until(() => visitors.ledger().balance.kinds.message.answered > 0, {
      what: "a message to visitor1 is answered with an error",
    });
    visitors.pause();
    cluster.heal("dc1", "dc2");
    await settled();
    assertNoFault(visitors, "errors are no fault");

    const before = delivered();
    visitors.resume();
    await until(() => delivered() >= before + 10, { what: "more stanzas arrive" });
    const cutAtMs = liveMs();
    cluster.sever("dc1", "dc2");
    await until(() => visitors.ledger().open >= 4, { what: "stanzas wait at both ends" });
    visitors.pause();
    assertNoFault(visitors, "what waits is no fault");
    const atTheCut = delivered();
    await visitors.move("visitor1", "dc2", [cutAtMs]);
    // Before those that wait at dc2 comes what has reached visitor1 at dc1 without a report of it.
    await until(() => delivered() > atTheCut, { what: "stanzas follow visitor1 to dc2" });
    cluster.heal("dc1", "dc2");
    await settled();
    assertNoFault(visitors, "what a cut link kept from being reported is no fault");
  });
});

function assertNoFault(visitors: Visitors, why: string): void {
  const { findings, examples } = visitors.ledger();
  assert.deepEqual({ findings, examples }, { findings: [], examples: [] }, why);
}
