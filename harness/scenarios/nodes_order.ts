import { assertOrdered } from "./_two_nodes.ts";
import type { Scenario } from "../scenario.ts";
import { assertNoneReturned, MessageRun } from "./_message_run.ts";
import { Stage } from "./_stage.ts";
import { TWO_NODES, untilChat } from "./_two_nodes.ts";

const COUNT = 1_000;

/** Order from a sender to a recipient, across any nodes. */
export const NODES_ORDER: Scenario = {
  name: "nodes-order",
  summary: "1 000 messages of each of two senders arrive in order at a recipient on another node",
  options: TWO_NODES,
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    const bob = await stage.enterAvailable("bob", "dc1", { node: 1 });
    const carol = await stage.enterAvailable("carol", "dc2", { node: 1 });
    for (const from of [alice, carol]) await untilChat(cluster, from, bob);
    const runs = [new MessageRun(alice), new MessageRun(carol)];
    await Promise.all(runs.map((run) => run.send(bob.jid, COUNT)));
    for (const run of runs) {
      const fates = await run.fates(cluster, [bob]);
      assertOrdered(fates.arrived[0]!, COUNT);
      assertNoneReturned(fates, "bob is there");
    }
    say(
      `${COUNT} from the other node and ${COUNT} from dc2 messages arrived, all of them in order`,
    );
    await bob.expectNothingElse();
  },
};
