import assert from "node:assert/strict";
import type { ChatClient } from "../clients/mod.ts";
import type { Scenario } from "../scenario.ts";
import { isAscending, MessageRun, untilBouncing } from "./_message_run.ts";
import { PATIENT_BOUNCE } from "./_patient_bounce.ts";
import { bare, becomeAvailable, isPresence, Stage } from "./_stage.ts";

const NOTES = 3;

/** People who write as soon as they are let in, and send presence later or never. */
export const BEFORE_PRESENCE: Scenario = {
  name: "before-presence",
  summary: "users write before their initial presence, and get waiting messages when they send it",
  options: PATIENT_BOUNCE,
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const alice = await stage.enter("alice", "dc1");
    const bob = await stage.enter("bob", "dc2", { library: "slixmpp" });
    const carol = await stage.enter("carol", "dc3", { security: "direct" });
    for (const [from, to] of [[alice, bob], [bob, carol], [carol, alice]] as const) {
      await expectWord(from, to, to.jid);
      await expectWord(to, from, from.jid);
    }
    say("nobody has sent presence: messages to full JIDs arrive and are answered");

    await becomeAvailable(bob);
    await stage.untilTableSaysOfSession(bob, "dc2");
    await expectWord(alice, bob, bare(bob.jid));
    await expectWord(carol, bob, bare(bob.jid));
    await expectWord(bob, alice, alice.jid);
    say(
      "bob sends presence: alice and carol reach his bare JID without presence of their own, " +
        "and he answers",
    );

    const runs = [new MessageRun(bob), new MessageRun(carol)];
    for (const run of runs) await run.send(bare(alice.jid), NOTES);
    await untilBouncing(cluster, runs.length * NOTES);
    const before = alice.received.length;
    await becomeAvailable(alice);
    for (const run of runs) {
      const { arrived, returned } = await run.fates(cluster, [alice]);
      assert.deepEqual([arrived[0]!.length, returned], [NOTES, []]);
      assert.ok(isAscending(arrived[0]!), `out of order: ${arrived[0]}`);
    }
    assert.ok(isPresence({ from: alice.jid, type: undefined })(alice.received[before]!));
    say("messages to alice's bare JID wait for her presence, and then arrive in order");

    for (const client of [alice, bob, carol]) {
      for (const from of [alice, bob, carol]) await client.expectNothingElse(from);
    }
    say("nothing else arrived anywhere");
  },
};

/** `from` writes to `address`, which is `to`. */
async function expectWord(from: ChatClient, to: ChatClient, address: string): Promise<void> {
  const body = `${from.jid} to ${address}`;
  const id = await from.sendMessage(address, body);
  const message = await to.expectMessage(body);
  assert.deepEqual([message.id, message.from, message.to], [id, from.jid, address]);
}
