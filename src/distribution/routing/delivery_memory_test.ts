import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import type { Stanza } from "../../xmpp/mod.ts";
import { Envelope } from "../mod.ts";
import type { StanzaEntry } from "../mod.ts";
import { DeliveryMemory } from "./delivery_memory.ts";

const TEXT =
  "<message from='a@example.com/x' to='b@example.com/y' id='1'><body>hello</body></message>";

interface Marks {
  readonly entry?: StanzaEntry;
  readonly sentAtUs?: number;
}

/** A message, the same each time, as number `sequence` of `process`. */
function message(process: number, sequence: number, marks: Marks = {}): Envelope {
  const stanza: Stanza = {
    kind: "message",
    type: "chat",
    from: parseJid("a@example.com/x"),
    to: parseJid("b@example.com/y"),
    bytes: new TextEncoder().encode(TEXT),
  };
  return new Envelope({
    stanza,
    process,
    sequence,
    origin: "dc1.example.com",
    sentAtUs: 0,
    ttl: 4,
    bounces: 0,
    mayBeRepeat: false,
    ...marks,
  });
}

Deno.test("DeliveryMemory.hasDelivered() finds a number that came another way, and ignores stanzas with only one way", () => {
  const memory = new DeliveryMemory({}, new ManualClock());
  assert.equal(memory.hasDelivered(message(7, 1), true), false);
  memory.noteDelivered(message(7, 1));
  assert.equal(memory.hasDelivered(message(7, 1), true), true);
  assert.equal(memory.hasDelivered(message(7, 1), false), false);
  assert.equal(memory.hasDelivered(message(7, 2), true), false, "another number");
});

Deno.test("DeliveryMemory.hasDelivered() finds by its text a stanza that a client sends again through another process", () => {
  const memory = new DeliveryMemory({}, new ManualClock());
  memory.noteDelivered(message(7, 1));
  assert.equal(memory.hasDelivered(message(8, 1, { entry: "resent" }), true), true);
  assert.equal(
    memory.hasDelivered(message(8, 1), true),
    false,
    "it is not marked as resent",
  );
});

Deno.test("DeliveryMemory.hasDelivered() finds by its text a stanza that arrives after its resent copy", () => {
  const memory = new DeliveryMemory({}, new ManualClock());
  memory.noteDelivered(message(8, 1, { entry: "resent", sentAtUs: 5 }));
  assert.equal(memory.hasDelivered(message(7, 1, { sentAtUs: 4 }), true), true);
  assert.equal(memory.hasDelivered(message(7, 2, { sentAtUs: 6 }), true), false, "said again");
});

Deno.test("DeliveryMemory does not take a message for the carbon of it that was delivered before", () => {
  const memory = new DeliveryMemory({}, new ManualClock());
  const carbon = (process: number, entry: StanzaEntry = "ordinary") =>
    new Envelope({ ...message(process, 1, { entry }), isCopy: true, isCarbon: true });
  assert.equal(memory.hasTold(message(7, 1)), false);
  memory.noteDelivered(carbon(7));
  assert.equal(memory.hasTold(message(7, 1)), true);
  assert.equal(memory.hasDelivered(carbon(7), true), true);
  assert.equal(memory.hasDelivered(carbon(8, "resent"), true), true);
  assert.equal(memory.hasDelivered(message(7, 1), true), false);
  assert.equal(memory.hasDelivered(message(8, 1, { entry: "resent" }), true), false);
  assert.deepEqual(memory.deliveredTo("b@example.com/y", 1), []);
});

Deno.test("DeliveryMemory.noteTold() stands for the carbon of a message, which may be sent again", () => {
  const memory = new DeliveryMemory({}, new ManualClock());
  memory.noteTold(message(7, 1));
  const carbon = { ...message(7, 1), isCopy: true, isCarbon: true };
  assert.equal(memory.hasDelivered(new Envelope(carbon), true), true);
  assert.equal(memory.hasTold(message(8, 1, { entry: "resent" })), true);
  memory.forgetDelivered(message(7, 1)); // its session gives it back
  assert.equal(memory.hasTold(message(7, 1)), true);
  assert.equal(memory.hasDelivered(message(7, 1), true), false);
});

/** A message of another sender, with another text. */
function other(name: string): Envelope {
  const { stanza, ...fields } = message(7, 1);
  const from = parseJid(`${name}@example.com/x`);
  const bytes = new TextEncoder().encode(TEXT.replace("hello", name));
  return new Envelope({ ...fields, stanza: { ...stanza, from, bytes } });
}

for (
  const [bound, again] of [
    [{ maxPairs: 2 }, message(7, 1)],
    [{ maxStanzas: 2 }, message(8, 1, { entry: "resent" })],
  ] as const
) {
  Deno.test(`DeliveryMemory knows two of ${Object.keys(bound)} and not a third`, () => {
    const knowsAfter = (...names: readonly string[]) => {
      const memory = new DeliveryMemory(bound, new ManualClock());
      memory.noteDelivered(message(7, 1));
      for (const name of names) memory.noteDelivered(other(name));
      return memory.hasDelivered(again, true);
    };
    assert.deepEqual([knowsAfter("c"), knowsAfter("c", "d")], [true, false]);
  });
}

Deno.test("DeliveryMemory.noteDelivered() remembers no text of a stanza that is sent once", () => {
  const memory = new DeliveryMemory({}, new ManualClock());
  memory.noteDelivered(message(7, 1, { entry: "sent-once" }));
  assert.equal(memory.hasDelivered(message(8, 1, { entry: "resent" }), true), false);
  assert.equal(memory.hasDelivered(message(7, 1), true), true, "its number is remembered");
});

Deno.test("DeliveryMemory.forgetDelivered() lets a stanza be delivered anew", () => {
  const memory = new DeliveryMemory({}, new ManualClock());
  memory.noteDelivered(message(7, 1));
  memory.forgetDelivered(message(7, 1));
  assert.equal(memory.hasDelivered(message(7, 1), true), false);
  assert.equal(memory.hasDelivered(message(8, 1, { entry: "resent" }), true), false);
});

Deno.test("DeliveryMemory keeps what a session has got in a record of its own", () => {
  const memory = new DeliveryMemory({}, new ManualClock());
  const toAccount = message(7, 1);
  toAccount.stanza = { ...toAccount.stanza, to: parseJid("b@example.com") };
  memory.noteInRecord(toAccount, "transfer 1");
  assert.equal(memory.isInRecord(toAccount, "transfer 1"), true);
  assert.equal(memory.mayBeInRecord(toAccount, "transfer 1"), true);
  assert.equal(memory.isInRecord(toAccount, "transfer 2"), false);
  assert.equal(memory.mayBeInRecord(toAccount, "transfer 2"), false);
  assert.equal(memory.hasDelivered(toAccount, true), false, "others may not have it");
  memory.forgetRecord("transfer 1");
  assert.equal(memory.mayBeInRecord(toAccount, "transfer 1"), false);
});

Deno.test("DeliveryMemory tells what is in a record from what it may have lost", () => {
  const memory = new DeliveryMemory({}, new ManualClock());
  const recent = Array.from({ length: 255 }, (_, at) => at + 10);
  const sender = "a@example.com/x";
  memory.learnDelivered("transfer 1", { sender, process: 7, highest: 264, recent });
  const older = message(7, 9);
  older.mayBeRepeat = true;
  assert.equal(memory.isInRecord(older, "transfer 1"), false);
  assert.equal(memory.mayBeInRecord(older, "transfer 1"), true);
});

Deno.test("DeliveryMemory.learnDelivered() takes over the numbers that another node has delivered", () => {
  const [old, taker] = [
    new DeliveryMemory({}, new ManualClock()),
    new DeliveryMemory({}, new ManualClock()),
  ];
  old.noteDelivered(message(7, 1));
  for (const numbers of old.deliveredTo("b@example.com/y", 10)) {
    taker.learnDelivered("b@example.com/y", numbers);
  }
  assert.equal(taker.hasDelivered(message(7, 1), true), true);
});
