import assert from "node:assert/strict";
import type { ChatClient, ClientSecurity } from "../clients/mod.ts";
import type { MessageProgram } from "../console/mod.ts";
import { ConsoleClient, MessagePrinter, sendWith } from "../console/mod.ts";
import type { Scenario } from "../scenario.ts";
import { consoleAccountOf } from "./_console_account.ts";
import { bare, Stage } from "./_stage.ts";

/** Programs with the kinds of security they can log in with. */
const PROGRAMS: readonly (readonly [MessageProgram, ClientSecurity])[] = [
  ["go-sendxmpp", "starttls"],
  ["go-sendxmpp", "direct"],
  ["sendxmpp", "starttls"],
  ["sendxmpp", "direct"],
  ["sendxmpp", "none"],
];

/** Programs that send from a script. Their streams differ from the examples of RFC 6120. */
export const SENDING_PROGRAMS: Scenario = {
  name: "sending-programs",
  summary: "go-sendxmpp and Perl's sendxmpp log in at dc1 and dc3, and reach bob at dc2",
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const bob = await stage.enterAvailable("bob", "dc2");
    for (const [program, security] of PROGRAMS) {
      for (const [who, at] of [["alice", "dc1"], ["carol", "dc3"]] as const) {
        const body = `by ${program} with ${security} at ${at}: grüße & <ünïcödé>`;
        const account = consoleAccountOf(cluster, { who, at, security });
        await sendWith(program, account, { to: bare(bob.jid), body });
        // sendxmpp ends each message with a line break.
        const message = await bob.expectMessage((each) => each.body?.trimEnd() === body);
        assert.equal(bare(message.from ?? ""), `${who}@${cluster.globalHost}`);
      }
      say(`${program} with ${security}: bob has a message from dc1 and one from dc3`);
    }
    await bob.expectNothingElse();

    await using carol = await MessagePrinter.connect(
      consoleAccountOf(cluster, { who: "carol", at: "dc3", security: "starttls" }),
    );
    const address = `carol@${cluster.globalHost}`;
    await stage.untilTableSays(address, cluster.datacenter("dc3").localHost);
    await bob.sendMessage(address, "to go-sendxmpp");
    await carol.expectMessage(bare(bob.jid), "to go-sendxmpp");
    await bob.expectNothingElse();
    say("go-sendxmpp prints what bob writes to it");
  },
};

/** Programs that people chat with, each in a terminal. */
export const TERMINAL_CLIENTS: Scenario = {
  name: "terminal-clients",
  summary: "profanity at dc1, mcabber at dc3 and bob at dc2 talk",
  // Of its own: a client may quit before it has acknowledged the last message, which then goes to
  // whoever logs in next with that account.
  options: {},
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const bob = await stage.enterAvailable("bob", "dc2");
    await using alice = await ConsoleClient.connect(
      "profanity",
      consoleAccountOf(cluster, { who: "alice", at: "dc1", security: "starttls" }),
    );
    await using carol = await ConsoleClient.connect(
      "mcabber",
      consoleAccountOf(cluster, { who: "carol", at: "dc3", security: "starttls" }),
    );
    say(`${alice.jid} and ${carol.jid} are online`);

    for (const each of [alice, carol]) await talk(each, bob);
    say("each has a message of bob's, and bob one of each");

    await alice.say(bare(carol.jid), "from-profanity-to-mcabber");
    await carol.say(alice.jid, "from-mcabber-to-profanity");
    await alice.expectMessage("from-mcabber-to-profanity");
    await carol.expectMessage("from-profanity-to-mcabber");
    say("each has a message of the other's");

    await bob.expectNothingElse();
    for (const each of [alice, carol]) {
      await each.quit();
      await stage.untilGone(each.jid);
    }
    say("a client that quits has no session any more");
  },
};

/** `person` says something to `bob` and gets an answer. */
async function talk(person: ConsoleClient, bob: ChatClient): Promise<void> {
  const [greeting, answer] = [`greeting-of-${bare(person.jid)}`, `answer-to-${bare(person.jid)}`];
  await person.say(bare(bob.jid), greeting);
  const message = await bob.expectMessage(greeting);
  assert.equal(message.from, person.jid);
  await bob.sendMessage(person.jid, answer);
  await person.expectMessage(answer);
}
