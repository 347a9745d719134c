import assert from "node:assert/strict";
import type { Cluster, Datacenter } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { bare, becomeAvailable, Stage } from "./_stage.ts";
import { expectChat, TWO_NODES, untilChat } from "./_two_nodes.ts";

/** Waits until the nodes of `datacenter` have read back everything that they wrote. */
async function untilReadBack(cluster: Cluster, datacenter: Datacenter): Promise<void> {
  for (const node of datacenter.nodes) {
    await cluster.until(
      async () =>
        (await Figures.read(datacenter, node)).sum("causeway_table_read_backs_waiting") === 0,
      { what: `${node.name} has read back what it wrote` },
    );
  }
}

/** One client's full JID on one node after another. */
export const NODES_MOVES: Scenario = {
  name: "nodes-moves",
  summary: "a login with the same full JID at the datacenter's other node ends the older stream",
  options: TWO_NODES,
  replications: ["external", "builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const bob = await stage.enterAvailable("bob", "dc1", { node: 1 });
    const carol = await stage.enterAvailable("carol", "dc2");
    const entrance = { resource: "pager" };
    let older = await stage.enterAvailable("alice", "dc1", entrance);
    await untilChat(cluster, carol, older);
    await expectChat(bob, older);
    for (const node of [1, 0, 1]) {
      const newer = await stage.enter("alice", "dc1", { ...entrance, node });
      assert.equal(newer.jid, older.jid);
      await assert.rejects(older.expectMessage("anything more"), /conflict/);
      await untilChat(cluster, carol, newer);
      await becomeAvailable(newer);
      for (const from of [bob, carol, newer]) {
        await expectChat(from, newer);
        await untilChat(cluster, from, newer, bare(newer.jid));
      }
      older = newer;
    }
    say("alice's pager moves from node to node, three times: the older session gets a conflict");

    // The older session's update of the table comes late, and must change nothing.
    await untilReadBack(cluster, cluster.datacenter("dc1"));
    await stage.untilTableSaysOfSession(older, "dc1");
    for (const from of [bob, carol]) await expectChat(from, older);
    say("when everything has been read back, the table still has the newest session");

    await older.disconnect();
    await stage.untilGone(older.jid);
    const id = await carol.sendMessage(older.jid, "gone?");
    await carol.expectError(id, "service-unavailable");
    for (const client of [bob, carol]) await client.expectNothingElse();
    say("it leaves: the table has no session of hers any more");
  },
};
