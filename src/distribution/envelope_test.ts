import assert from "node:assert/strict";
import { parseJid } from "../xmpp/mod.ts";
import { Envelope } from "./envelope.ts";

function envelope(told: string[]): Envelope {
  const jid = parseJid("a@example.com");
  return new Envelope(
    {
      stanza: { kind: "message", type: "chat", from: jid, to: jid, bytes: new Uint8Array(4) },
      process: 1,
      sequence: 1,
      origin: "dc1.example.com",
      sentAtUs: 0,
      ttl: 4,
      bounces: 0,
      mayBeRepeat: false,
    },
    {
      settle: (number) => void told.push(`settle ${number}`),
      held: (number) => void told.push(`held ${number}`),
    },
    3,
  );
}

Deno.test("Envelope is settled by the last session that kept it, once", () => {
  const told: string[] = [];
  const kept = envelope(told);
  kept.retain();
  kept.retain();
  assert.ok(kept.isKept);
  kept.acknowledged();
  assert.deepEqual(told, []);
  assert.equal(kept.abandoned(), false); // the other session has it
  assert.deepEqual(told, ["settle 3"]);
  kept.settle();
  assert.deepEqual(told, ["settle 3"]);
});

Deno.test("Envelope.abandoned() gives it back with its duty when no session has it", () => {
  const told: string[] = [];
  const kept = envelope(told);
  kept.retain();
  kept.retain();
  assert.deepEqual([kept.abandoned(), kept.abandoned()], [false, true]);
  assert.deepEqual(told, []);
  kept.settle();
  assert.deepEqual(told, ["settle 3"]);
});

Deno.test("Envelope.abandoned() settles a stanza that a client without stream management was sent", () => {
  const told: string[] = [];
  const kept = envelope(told);
  kept.written();
  kept.retain();
  assert.equal(kept.abandoned(), false);
  assert.deepEqual(told, ["settle 3"]);
});

Deno.test("Envelope.isCopyOf() holds for the same stanza in another envelope that is answered for", () => {
  const one = envelope([]);
  const other = (changes: Partial<Envelope>) => new Envelope({ ...envelope([]), ...changes });
  const stanza = { ...one.stanza, to: parseJid("a@example.com/x") };
  const others: [Envelope, boolean][] = [
    [other({}), true],
    [one, false],
    [other({ isCopy: true }), false],
    [other({ process: 2 }), false],
    [other({ sequence: 2 }), false],
    [other({ stanza }), false],
  ];
  for (const [each, is] of others) assert.equal(one.isCopyOf(each), is);
  assert.equal(other({ isCopy: true }).isCopyOf(one), true);
});

Deno.test("Envelope.takePlaceOf() is remembered in the place of a copy that nobody else has", () => {
  for (const isTaken of [false, true]) {
    const memory = { forgetDelivered: () => assert.fail("it is here") };
    const [copy, told] = [envelope([]), [] as string[]];
    copy.rememberedBy = memory;
    for (const _ of [1, 2]) copy.retain();
    if (isTaken) copy.acknowledged();
    const first = envelope(told);
    if (!isTaken) first.takePlaceOf(copy);
    assert.equal(first.rememberedBy, undefined, "another session has the copy");
    const last = envelope(told);
    last.takePlaceOf(copy);
    assert.equal(last.rememberedBy, isTaken ? undefined : memory);
    assert.equal(copy.rememberedBy, isTaken ? memory : undefined);
    assert.deepEqual([told, copy.fate], [[], undefined], "the copy is done with");
  }
});

Deno.test("Envelope.release() settles it early, and it can still be given back", () => {
  const told: string[] = [];
  const kept = envelope(told);
  kept.retain();
  kept.release();
  assert.deepEqual(told, ["settle 3"]);
  assert.ok(kept.isKept);
  assert.equal(kept.abandoned(), true);
});

Deno.test("Envelope.held() reports to a settler that wants it, until it is settled", () => {
  const told: string[] = [];
  const carried = envelope(told);
  assert.ok(carried.wantsHeld);
  carried.held();
  const taken = envelope([]);
  taken.adoptDuty(carried);
  assert.ok(!carried.wantsHeld);
  taken.held();
  taken.settle();
  taken.held();
  assert.deepEqual(told, ["held 3", "held 3", "settle 3"]);
});
