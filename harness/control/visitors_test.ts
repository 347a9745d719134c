import assert from "node:assert/strict";
import { withCluster } from "../cluster/mod.ts";
import { until } from "../until.ts";
import { visitorAccounts, Visitors } from "./visitors.ts";

Deno.test("the visitors' ledger has a fate for messages to somebody who has moved behind a cut link", async () => {
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
    await visitors.move("visitor1", "dc2");
    await until(() => visitors.ledger().balance.delivered >= 10, { what: "stanzas arrive" });
    visitors.pause();
    await settled();

    cluster.sever("dc1", "dc2");
    await visitors.move("visitor1", "dc1");
    visitors.resume();
    // dc2 cannot learn where visitor1 is.
    await until(() => visitors.ledger().balance.kinds.message.answered > 0, {
      what: "a message to visitor1 is answered with an error",
    });
    visitors.pause();
    cluster.heal("dc1", "dc2");
    await settled();
    assert.deepEqual(visitors.ledger().findings, []);
  });
});
