import type { CausewayConfiguration, Cluster, Datacenter } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Stage } from "./_stage.ts";
import { linksTowards } from "./_two_endpoints.ts";

const EXPIRE_AFTER_SECONDS = 10;

/** An operator removes a datacenter that has burnt down. */
export const REMOVED_DATACENTER: Scenario = {
  name: "removed-datacenter",
  summary:
    "an operator removes a dead datacenter everywhere, and it is accepted again when it is back",
  replications: ["builtin"],
  options: {
    datacenters: 3,
    links: "direct",
    configure({ modules }: CausewayConfiguration) {
      const distribution = modules.mod_global_distrib;
      distribution["bounce"] = { resend_after_ms: 50, max_retries: 2 };
      Object.assign(distribution.redis, { expire_after: EXPIRE_AFTER_SECONDS, refresh_after: 1 });
    },
  },
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const [dc1, dc2, dc3] = ["dc1", "dc2", "dc3"].map((name) => cluster.datacenter(name));
    const alice = await stage.enterAvailable("alice", "dc1");
    const carol = await stage.enterAvailable("carol", "dc3");
    await stage.untilTableSaysOfSession(carol, "dc3");
    await alice.sendMessage(carol.jid, "hello");
    await carol.expectMessage("hello");
    await expectAnswer(cluster, dc1!, dc3!, 409);

    await dc3!.kill();
    for (const each of [dc1!, dc2!]) await expectAnswer(cluster, each, dc3!, 200);
    for (const each of [dc1!, dc2!]) {
      if (await linksTowards(each, dc3!.localHost) !== undefined) {
        throw new Error(`Expected ${each.name} to have no links to dc3`);
      }
      await expectAnswer(cluster, each, dc3!, 404);
    }
    const gone = await alice.sendMessage(carol.jid, "and you?");
    await alice.expectError(gone, "service-unavailable");
    say(
      "dc3 is dead: removed at dc1 and dc2, it gets no connections, and its users have no session",
    );

    await dc3!.start();
    const back = await stage.enterAvailable("carol", "dc3");
    await stage.untilTableSaysOfSession(back, "dc3");
    await alice.sendMessage(back.jid, "welcome");
    await back.expectMessage("welcome");
    await back.expectNothingElse(alice);
    await alice.expectNothingElse(back);
    say("dc3 is started again: it announces itself, and is reached");
  },
};

/** Asks `at` to remove `dead`, until it gives the expected answer. */
async function expectAnswer(
  cluster: Cluster,
  at: Datacenter,
  dead: Datacenter,
  status: number,
): Promise<void> {
  const url = at.adminUrl(`/api/hosts/${dead.localHost}`);
  let answer = "";
  await cluster.until(async () => {
    const response = await fetch(url, { method: "DELETE" });
    answer = `${response.status} ${await response.text()}`;
    return response.status === status;
  }, { what: `${at.name} answers ${status} about ${dead.name}`, evidence: () => answer });
}
