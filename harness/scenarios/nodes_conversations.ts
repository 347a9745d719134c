import assert from "node:assert/strict";
import type { Scenario } from "../scenario.ts";
import { PING } from "./_ping.ts";
import { bare, isPresence, Stage } from "./_stage.ts";
import { expectChat, pairs, TWO_NODES, untilChat } from "./_two_nodes.ts";

/** Users on different nodes of one datacenter. */
export const NODES_CONVERSATIONS: Scenario = {
  name: "nodes-conversations",
  summary: "users on different nodes of one datacenter, and of another, talk as if on one node",
  options: TWO_NODES,
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1", { resource: "phone" });
    const bob = await stage.enterAvailable("bob", "dc1", { node: 1, library: "slixmpp" });
    const carol = await stage.enterAvailable("carol", "dc2", { node: 1 });
    await stage.untilTableSaysOfSession(carol, "dc2");
    await stage.untilTableSaysOfSession(alice, "dc1");
    await stage.untilTableSaysOfSession(bob, "dc1");
    for (const [from, to] of pairs([alice, bob, carol])) {
      await expectChat(from, to);
      await expectChat(from, to, bare(to.jid));
    }
    say("alice and bob on two nodes of dc1, carol at dc2: each reaches each, full JID and bare");

    const desk = await stage.enter("alice", "dc1", { node: 1, resource: "desk" });
    await desk.presence({ priority: 5 });
    for (const client of [alice, desk]) {
      await client.expectStanza(isPresence({ from: desk.jid, type: undefined }));
    }
    await desk.expectStanza(isPresence({ from: alice.jid, type: undefined }));
    say("alice logs in again, at the other node: her two clients get each other's presence");

    for (const from of [alice, desk, bob, carol]) {
      await untilChat(cluster, from, desk, bare(desk.jid));
      await expectChat(from, desk, bare(desk.jid));
      await expectChat(from, alice);
    }
    say("messages to her bare JID reach the client with the highest priority, from every node");

    await alice.presence({ priority: 5 });
    await desk.expectStanza(isPresence({ from: alice.jid, type: undefined }));
    for (const from of [bob, carol]) {
      await untilChat(
        cluster,
        from,
        alice,
        bare(desk.jid),
        (body) => desk.expectMessage(body),
      );
    }
    say("with equal priorities both clients get the messages to her");

    await desk.presence({ type: "unavailable" });
    await alice.expectStanza(isPresence({ from: desk.jid, type: "unavailable" }));
    await untilChat(cluster, carol, alice, bare(alice.jid));
    await expectChat(bob, alice, bare(alice.jid));
    await expectChat(bob, desk);
    await desk.disconnect();
    await expectChat(carol, alice, bare(alice.jid));
    say("one client becomes unavailable and leaves: the other gets everything");

    const answer = await bob.iq({ type: "get", to: bare(bob.jid), payload: PING });
    assert.equal(answer.type, "result");
    for (const [from, to] of pairs([alice, bob, carol])) await to.expectNothingElse(from);
    say("nothing else arrived");
  },
};
