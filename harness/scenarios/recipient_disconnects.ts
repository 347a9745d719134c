import assert from "node:assert/strict";
import type { Scenario } from "../scenario.ts";
import { PATIENCE_MS } from "../until.ts";
import { isAscending, MessageRun, untilBouncing } from "./_message_run.ts";
import { PING } from "./_ping.ts";
import { bare, isPresence, Stage } from "./_stage.ts";

const MESSAGES = 60;

/** Milliseconds in which a bouncing message must come back; it takes about 13 seconds. */
const RETURNED_WITHIN_MS = 2 * PATIENCE_MS;

/** The recipient leaves while a user elsewhere writes to him. */
export const RECIPIENT_DISCONNECTS: Scenario = {
  name: "recipient-disconnects",
  summary:
    "bob leaves while alice writes: each message arrives, comes back, or waits for his return",
  options: {
    configure({ modules }) {
      // Longer than it takes to log in, on a busy machine too.
      modules.mod_global_distrib["bounce"] = { resend_after_ms: 200, max_retries: 6 };
    },
  },
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    const phone = await stage.enterAvailable("bob", "dc2", { resource: "phone" });
    const account = bare(phone.jid);
    await stage.untilTableSaysOfSession(phone, "dc2");

    const run = new MessageRun(alice);
    await run.send(phone.jid, MESSAGES / 3);
    await run.untilArrived(cluster, phone, MESSAGES / 6);
    await Promise.all([phone.disconnect(), run.send(phone.jid, MESSAGES / 3)]);
    await run.send(phone.jid, MESSAGES / 3);
    const { arrived: [arrived], returned, conditions } = await run.fates(
      cluster,
      [phone],
      RETURNED_WITHIN_MS,
    );
    // messages may come back from the datacenter that lost the session, or from their own
    assert.ok(
      isAscending([...arrived!, ...sorted(returned)]),
      `out of order: ${arrived} | ${returned}`,
    );
    assert.deepEqual([...conditions], ["service-unavailable"]);
    assert.ok(arrived!.length > 0 && returned.length > 0);
    say(
      `bob leaves: ${arrived!.length} messages have arrived, the last ${returned.length} come back`,
    );

    await stage.untilGone(account);
    const held = new MessageRun(alice);
    await held.send(account, MESSAGES / 3);
    await untilBouncing(cluster, held.length);
    const back = await stage.enterAvailable("bob", "dc2", { resource: "phone" });
    const met = await held.fates(cluster, [back]);
    assert.deepEqual([met.arrived[0]!.length, met.returned], [held.length, []]);
    assert.ok(isAscending(met.arrived[0]!), `out of order: ${met.arrived[0]}`);
    say(`he is back while ${held.length} others wait for him: they arrive, in their order`);

    const tablet = await stage.enterAvailable("bob", "dc2", { resource: "tablet" });
    await stage.untilTableSaysOfSession(tablet, "dc2");
    await back.kill();
    await stage.untilTableSays(back.jid, null);
    await tablet.expectStanza(isPresence({ from: back.jid, type: "unavailable" }));
    const chat = await alice.sendMessage(back.jid, "to the phone that is gone");
    assert.equal((await tablet.expectMessage("to the phone that is gone")).id, chat);
    const answer = await alice.iq({ type: "get", to: back.jid, payload: PING });
    assert.deepEqual([answer.from, answer.errorCondition], [back.jid, "service-unavailable"]);
    say("his phone's connection is cut: messages go to his tablet, requests come back");

    await tablet.disconnect();
    await stage.untilGone(account);
    const late = await alice.sendMessage(tablet.jid, "anybody?");
    await alice.expectError(late, "service-unavailable", RETURNED_WITHIN_MS);
    await alice.expectNothingElse();
    say("no session is left: the next message comes back, and nothing else arrived");
  },
};

function sorted(numbers: readonly number[]): readonly number[] {
  return numbers.toSorted((one, other) => one - other);
}
