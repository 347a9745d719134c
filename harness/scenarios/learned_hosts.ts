import assert from "node:assert/strict";
import type { Cluster, ClusterOptions } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { bare, isPresence, Stage } from "./_stage.ts";

/** A cluster of their own: other scenarios must not have left anything in dc2's cache. */
const OPTIONS: ClusterOptions = { replication: "external" };

/**
 * The way back of a reply while the replicator carries nothing from dc1 to dc2. dc2 can learn the
 * sender's place only from the stanza on the link. With builtin replication the link itself carries
 * the table.
 */
export const LEARNED_USER: Scenario = {
  name: "learned-user",
  summary: "dc2 does not know alice's login, and learns the way back to her from her message",
  options: OPTIONS,
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const bob = await stage.enterAvailable("bob", "dc2");
    await stage.untilTableSaysOfSession(bob, "dc2");
    await using _cut = cutReplication(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    await stage.untilTableSaysOfSession(alice, "dc1", ["dc1", "dc3"]);
    const unknown = await bob.sendMessage(alice.jid, "can I reach you?");
    await bob.expectError(unknown, "service-unavailable");
    say("alice logs in at dc1 and dc2 does not learn of it: bob cannot reach her");

    // Unavailable presence means that she leaves, and anybody may send an error: neither shows
    // where she is.
    await alice.presence({ to: bob.jid, type: "unavailable" });
    await bob.expectStanza(isPresence({ from: alice.jid, type: "unavailable" }));
    const farewell = await bob.sendMessage(alice.jid, "and now?");
    await bob.expectError(farewell, "service-unavailable");
    say("she sends him unavailable presence: he cannot reach her either");

    await alice.sendMessage(bob.jid, "it is me");
    await bob.expectMessage("it is me");
    const reply = await bob.sendMessage(alice.jid, "so it is");
    assert.equal((await alice.expectMessage("so it is")).id, reply);
    const request = bob.iq({
      type: "get",
      to: alice.jid,
      payload: "<nothing xmlns='urn:example'/>",
    });
    await alice.expectStanza((stanza) => stanza.kind === "iq" && stanza.from === bob.jid);
    assert.equal((await request).from, alice.jid);
    await stage.untilTableSays(alice.jid, null, ["dc2"]);
    await stage.untilTableSays(bare(alice.jid), null, ["dc2"]);
    say("she writes to him: his answers find her, although dc2's table still has no entry");

    await bob.expectNothingElse(alice);
    await alice.expectNothingElse(bob);
    await alice.expectNothingElse();
    say("nothing else arrived");
  },
};

/** As `LEARNED_USER`, for a component, which speaks for a whole domain. */
export const LEARNED_COMPONENT: Scenario = {
  name: "learned-component",
  summary: "dc2 does not know a component at dc1, and learns the way back to it from its message",
  options: OPTIONS,
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const bob = await stage.enterAvailable("bob", "dc2");
    await stage.untilTableSaysOfSession(bob, "dc2");
    await using _cut = cutReplication(cluster);
    const echo = await stage.connectComponent("echo", "dc1");
    await stage.untilTableSays(echo.jid, "dc1.example.com", ["dc1", "dc3"]);
    const unknown = await bob.sendMessage(echo.jid, "can I reach you?");
    await bob.expectError(unknown, "service-unavailable");
    say("echo connects to dc1 and dc2 does not learn of it: bob cannot reach it");

    const robot = `robot@${echo.jid}`;
    await echo.sendMessage(bob.jid, "it is me", { from: robot });
    await bob.expectMessage("it is me");
    for (const to of [robot, echo.jid, `another@${echo.jid}/here`]) {
      const reply = await bob.sendMessage(to, `to ${to}`);
      const message = await echo.expectMessage(`to ${to}`);
      assert.deepEqual([message.id, message.to], [reply, to]);
    }
    await stage.untilTableSays(echo.jid, null, ["dc2"]);
    say("it writes to him: his answers find it, at every address of its domain");

    await bob.expectNothingElse(echo);
    await echo.expectNothingElse(bob);
    await bob.expectNothingElse();
    say("nothing else arrived");
  },
};

/** Keeps dc1's writes from dc2's Redis until the result is disposed of. */
function cutReplication(cluster: Cluster): AsyncDisposable {
  const lane = cluster.replication("dc1", "dc2");
  lane.part();
  return {
    async [Symbol.asyncDispose]() {
      lane.heal();
      await cluster.until(() => lane.held === 0, { what: "dc2 has what dc1 wrote meanwhile" });
    },
  };
}
