import assert from "node:assert/strict";
import type { Scenario } from "../scenario.ts";
import { Stage } from "./_stage.ts";
import { expectChat, TWO_NODES, untilChat } from "./_two_nodes.ts";

/** Two processes with the same node name. */
export const NODES_ONE_NAME: Scenario = {
  name: "nodes-one-name",
  summary: "a second process takes the name of a running node: the older one logs why and exits",
  options: TWO_NODES,
  replications: ["external", "builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const carol = await stage.enterAvailable("carol", "dc2");
    const { nodes } = cluster.datacenter("dc1");
    const [older, newer] = nodes as readonly [typeof nodes[0], typeof nodes[0]];
    await newer!.stop();
    newer!.configuration.node_name = older!.configuration.node_name;
    await newer!.start();
    const exit = await older!.exited;
    assert.deepEqual([exit.code, exit.signal], [2, null]);
    const why = older!.logs.findLast((line) => line.includes("node.superseded"));
    assert.match(why ?? "", /newer process has taken this node's name/);
    say(`the older of two processes called ${newer!.ready.node} exits with code 2, and logs why`);

    const alice = await stage.enterAvailable("alice", "dc1", { node: 1 });
    await untilChat(cluster, carol, alice);
    await expectChat(alice, carol);
    say("the newer one serves dc1");
  },
};
