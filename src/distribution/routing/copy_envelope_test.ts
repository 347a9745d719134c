import assert from "node:assert/strict";
import { Envelope } from "../envelope.ts";
import { FakeLink, stanza } from "./testing/router_fixture.ts";
import { copyEnvelope, keepOpen } from "./copy_envelope.ts";

function envelopeOf(settled: number[]): Envelope {
  return new Envelope(
    {
      stanza: stanza("alice@example.com/a", "bob@example.com"),
      process: 2,
      sequence: 3,
      origin: "dc2.example.com",
      sentAtUs: 4,
      ttl: 5,
      bounces: 6,
      mayBeRepeat: true,
    },
    { settle: (number) => void settled.push(number) },
    7,
  );
}

Deno.test("copyEnvelope() copies all fields of the envelope and marks the copies", () => {
  const whole = envelopeOf([]);
  const [copy, other] = copyEnvelope(whole, 2) as [Envelope, Envelope];
  assert.deepEqual({ ...copy }, { ...whole, isCopy: true });
  assert.deepEqual({ ...other }, { ...copy });
  assert.equal(whole.isCopy, false);
});

Deno.test("copyEnvelope() gives copies no duty when the stanza has a keeper", () => {
  const told: string[] = [];
  const whole = envelopeOf([]);
  whole.fate = { settle: () => told.push("settle"), stays: () => told.push("stays") };
  const copies = copyEnvelope(whole, 2);
  for (const copy of copies) copy.settle();
  assert.deepEqual([told, whole.hasKeeper, copies.length], [[], true, 2]);
  whole.settle();
  assert.deepEqual(told, ["settle"]);
});

Deno.test("copyEnvelope() settles once, after the stanza and all copies are settled in any order", () => {
  for (const order of [[0, 1, 2], [2, 1, 0], [1, 0, 2]]) {
    const settled: number[] = [];
    const whole = envelopeOf(settled);
    const all = [whole, ...copyEnvelope(whole, 2)];
    for (const [step, index] of order.entries()) {
      assert.deepEqual(settled, [], `${order} at ${step}`);
      all[index]!.settle();
      all[index]!.settle(); // only the first settle() counts
    }
    assert.deepEqual(settled, [7]);
  }
});

Deno.test("copyEnvelope() can leave open only a stanza that the node before holds too", () => {
  const link = new FakeLink();
  const carried = new Envelope(envelopeOf([]), link, 7);
  const [copy] = copyEnvelope(carried, 1);
  assert.equal(carried.isHeldBefore, true);
  carried.leaveOpen();
  copy!.settle();
  assert.deepEqual([link.settled, link.left], [[], [7]]);
  const own = envelopeOf([]);
  copyEnvelope(own, 1);
  assert.equal(own.isHeldBefore, false);
});

Deno.test("keepOpen() keeps the reports on a stanza back until it is over, the last of them alone", () => {
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ["held end settle", ["held", "settle"]],
    ["held settle end", ["settle"]],
    ["settle end", ["settle"]],
    ["end held settle", ["held", "settle"]],
    ["end settle end", ["settle"]],
  ];
  for (const [steps, expected] of rows) {
    const told: string[] = [];
    const envelope = envelopeOf([]);
    envelope.fate = {
      settle: (number) => void told.push(number === 7 ? "settle" : "?"),
      held: (number) => void told.push(number === 7 ? "held" : "?"),
    };
    const end = keepOpen(envelope);
    assert.equal(envelope.wantsHeld, true);
    for (const step of steps.split(" ")) {
      if (step === "held") envelope.held();
      else if (step === "settle") envelope.settle();
      else end();
    }
    assert.deepEqual(told, expected, steps);
  }
});

Deno.test("keepOpen() leaves a stanza open that the node before holds, and nothing without a duty", () => {
  const link = new FakeLink();
  const carried = new Envelope(envelopeOf([]), link, 7);
  const end = keepOpen(carried);
  assert.deepEqual([carried.isHeldBefore, carried.wantsHeld], [true, false]);
  carried.leaveOpen();
  end();
  assert.deepEqual([link.left, link.settled], [[7], []]);
  const without = new Envelope(envelopeOf([]));
  keepOpen(without)();
  assert.equal(without.fate, undefined);
});
