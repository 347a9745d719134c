import assert from "node:assert/strict";
import type { ChatClient } from "../clients/mod.ts";
import type { Cluster } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Stage } from "./_stage.ts";
import { expectChat, TWO_NODES } from "./_two_nodes.ts";

const DISCO_ITEMS = "http://jabber.org/protocol/disco#items";

/** A component belongs to its datacenter, on whichever node it is. */
export const NODES_COMPONENTS: Scenario = {
  name: "nodes-components",
  summary:
    "a component serves all nodes, connected to one node, to two nodes, and in two datacenters",
  options: TWO_NODES,
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const users = [
      await stage.enter("alice", "dc1"),
      await stage.enter("bob", "dc1", { node: 1 }),
      await stage.enter("carol", "dc2", { node: 1 }),
    ] as const;
    const echo = await stage.connectComponent("echo", "dc1", 1);
    echo.echo(({ body }) => `dc1-node2 ${body}`);
    await stage.untilTableSays(echo.jid, "dc1.example.com");
    await answeredBy(cluster, users, echo.jid, ["dc1-node2", "dc1-node2", "dc1-node2"]);
    say("echo is connected to the second node of dc1: alice, bob and carol use it");

    const second = await stage.connectComponent("echo", "dc1", 0);
    second.echo(({ body }) => `dc1-node1 ${body}`);
    await answeredBy(cluster, users.slice(0, 2), echo.jid, ["dc1-node1", "dc1-node2"]);
    say("it connects to the first node too: each user reaches the one at their own node");

    const third = await stage.connectComponent("echo", "dc2", 0);
    third.echo(({ body }) => `dc2-node1 ${body}`);
    await answeredBy(cluster, users, echo.jid, ["dc1-node1", "dc1-node2", "dc2-node1"]);
    say("it connects to dc2 too: everyone reaches the one in their own datacenter");

    for (const user of users) {
      const answer = await user.iq({
        type: "get",
        to: cluster.globalHost,
        payload: `<query xmlns='${DISCO_ITEMS}'/>`,
      });
      const items = [...answer.xml.matchAll(/<item [^>]*jid=["']([^"']+)["']/g)];
      assert.deepEqual(items.map(([, jid]) => jid), [echo.jid]);
    }
    say("disco lists it once");

    await second.disconnect();
    await answeredBy(cluster, users, echo.jid, ["dc1-node2", "dc1-node2", "dc2-node1"]);
    await echo.kill();
    // What a node still writes to a connection that is cut reaches nobody: XEP-0114 has no receipts.
    await stage.untilTableSays(echo.jid, "dc2.example.com");
    await answeredBy(cluster, users, echo.jid, ["dc2-node1", "dc2-node1", "dc2-node1"]);
    say("the nearer ones disconnect: the last one serves everyone");

    await third.disconnect();
    await stage.untilGone(echo.jid);
    for (const user of users) {
      const id = await user.sendMessage(echo.jid, "are you there?");
      await user.expectError(id, "service-unavailable");
    }
    await expectChat(users[0], users[1]);
    say("it is gone everywhere: service-unavailable");
  },
};

/** Waits until each user's messages are answered by the expected connection. */
async function answeredBy(
  cluster: Cluster,
  users: readonly ChatClient[],
  domain: string,
  places: readonly string[],
): Promise<void> {
  for (const [index, user] of users.entries()) {
    const wanted = places[index]!;
    let seen = "";
    await cluster.until(async () => {
      const mark = crypto.randomUUID();
      await user.sendMessage(domain, mark);
      const { body } = await user.expectMessage((stanza) => stanza.xml.includes(mark));
      seen = body ?? "an error";
      return seen === `${wanted} ${mark}`;
    }, {
      what: `${user.jid} is answered by ${wanted}`,
      evidence: () => `the last answer: ${seen}`,
    });
  }
}
