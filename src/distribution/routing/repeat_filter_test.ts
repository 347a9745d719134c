import assert from "node:assert/strict";
import { parseJid } from "../../xmpp/mod.ts";
import { Envelope } from "../envelope.ts";
import { RepeatFilter } from "./repeat_filter.ts";

function envelope(
  sequence: number,
  { mayBeRepeat = true, process = 7, to = "b@example.com", from = "a@example.com/x" } = {},
): Envelope {
  return new Envelope({
    stanza: {
      kind: "message",
      type: "chat",
      from: parseJid(from),
      to: parseJid(to),
      bytes: new Uint8Array(),
    },
    process,
    sequence,
    origin: "dc2.example.com",
    sentAtUs: 0,
    ttl: 3,
    bounces: 0,
    mayBeRepeat,
  });
}

Deno.test("RepeatFilter finds a stanza that was delivered to this address from this process", () => {
  const filter = new RepeatFilter();
  filter.remember(envelope(5));
  assert.equal(filter.isRepeat(envelope(5)), true);
  assert.equal(filter.isRepeat(envelope(6)), false);
  assert.equal(filter.isRepeat(envelope(5, { process: 8 })), false);
  assert.equal(filter.isRepeat(envelope(5, { to: "c@example.com" })), false);
  assert.equal(filter.isRepeat(envelope(5, { from: "a@example.com/y" })), false);
});

Deno.test("RepeatFilter knows a remembered repeat, and guesses only for stanzas that are marked", () => {
  const filter = new RepeatFilter({ window: 4 });
  for (const sequence of [10, 12, 14, 16, 18]) filter.remember(envelope(sequence));
  assert.equal(filter.isRepeat(envelope(12, { mayBeRepeat: false })), true);
  assert.equal(filter.isRepeat(envelope(3, { mayBeRepeat: false })), false);
});

Deno.test("RepeatFilter takes no stanza for a repeat that many others have overtaken on another way", () => {
  // Its recipient has left the datacenter that it was sent to, which has died before it got it.
  const filter = new RepeatFilter();
  for (let sequence = 100; sequence < 3_000; sequence++) {
    filter.remember(envelope(sequence));
    assert.equal(filter.isRepeat(envelope(1)), false, `${sequence}`);
  }
  assert.equal(filter.isRepeat(envelope(100)), true, "it has left the window");
});

Deno.test("RepeatFilter.learnDelivered() takes older ones for repeats where the record may have been cut", () => {
  const { process, stanza } = envelope(1);
  for (const [count, isRepeat] of [[254, false], [255, true]] as const) {
    const filter = new RepeatFilter();
    const recent = Array.from({ length: count }, (_, index) => 100 + index);
    const numbers = { sender: stanza.from.text, process, highest: recent.at(-1)!, recent };
    filter.learnDelivered(stanza.to.text, numbers);
    assert.equal(filter.isRepeat(envelope(1)), isRepeat, `${count}`);
    assert.equal(filter.isRepeat(envelope(1, { mayBeRepeat: false })), false);
  }
});

Deno.test("RepeatFilter.forget() lets a stanza be delivered anew, and makes none count as older than all", () => {
  const filter = new RepeatFilter({ window: 4 });
  for (const sequence of [2, 4, 10, 12, 14, 16]) filter.remember(envelope(sequence));
  filter.forget(envelope(11));
  assert.equal(filter.isRepeat(envelope(3)), true);
  filter.forget(envelope(12));
  assert.equal(filter.isRepeat(envelope(12)), false);
  assert.equal(filter.isRepeat(envelope(3)), false);
  assert.equal(filter.isRepeat(envelope(14)), true);
});

Deno.test("RepeatFilter.forget() forgets a number that a session has brought, and that was remembered again", () => {
  const filter = new RepeatFilter();
  const brought = { sender: envelope(7).stanza.from.text, process: envelope(7).process };
  filter.learnDelivered(envelope(7).stanza.to.text, { ...brought, highest: 7, recent: [7] });
  filter.remember(envelope(7));
  filter.forget(envelope(7));
  assert.equal(filter.isRepeat(envelope(7)), false);
});

Deno.test("RepeatFilter lets a gap inside its window through and takes those that have left it for repeats", () => {
  const filter = new RepeatFilter({ window: 4 });
  for (const sequence of [10, 12, 14, 16, 18]) filter.remember(envelope(sequence));
  assert.equal(filter.isRepeat(envelope(13)), false);
  assert.equal(filter.isRepeat(envelope(10)), true);
  filter.remember(envelope(20));
  assert.equal(filter.isRepeat(envelope(11)), true);
  assert.equal(filter.isRepeat(envelope(3)), false);
});

Deno.test("RepeatFilter forgets the oldest pairs past its bound and keeps used ones", () => {
  const filter = new RepeatFilter({ maxPairs: 4 });
  filter.remember(envelope(1, { to: "kept@example.com" }));
  for (let i = 0; i < 20; i++) {
    filter.remember(envelope(1, { to: `b${i}@example.com` }));
    assert.equal(filter.isRepeat(envelope(1, { to: "kept@example.com" })), true);
  }
  assert.equal(filter.isRepeat(envelope(1, { to: "b0@example.com" })), false);
});

Deno.test("RepeatFilter.forgetAll() makes room for other addresses", () => {
  const filter = new RepeatFilter({ maxPairs: 4, window: 4, maxNumbers: 8 });
  filter.remember(envelope(1, { to: "kept@example.com" }));
  for (let turn = 0; turn < 20; turn++) {
    for (let sequence = 1; sequence <= 3; sequence++) filter.remember(envelope(sequence));
    assert.equal(filter.isRepeat(envelope(3)), true);
    filter.forgetAll("b@example.com");
    assert.equal(filter.isRepeat(envelope(3)), false);
  }
  assert.equal(filter.isRepeat(envelope(1, { to: "kept@example.com" })), true);
});

Deno.test("RepeatFilter holds maxNumbers at most, and forgets the least recently used pairs", () => {
  const filter = new RepeatFilter({ window: 8, maxNumbers: 32 });
  for (const to of ["b1@example.com", "b2@example.com"]) {
    for (let sequence = 1; sequence <= 8; sequence++) filter.remember(envelope(sequence, { to }));
  }
  filter.remember(envelope(1, { to: "b3@example.com" })); // one more than half of all
  for (const [to, isKnown] of [["b1@example.com", true], ["b3@example.com", true]] as const) {
    assert.equal(filter.isRepeat(envelope(1, { to })), isKnown, to);
  }
  for (let sequence = 2; sequence <= 9; sequence++) {
    filter.remember(envelope(sequence, { to: "b3@example.com" }));
  }
  filter.remember(envelope(1, { to: "b4@example.com" }));
  assert.equal(
    filter.isRepeat(envelope(1, { to: "b2@example.com" })),
    false,
    "it was not used since",
  );
  assert.equal(filter.isRepeat(envelope(8, { to: "b1@example.com" })), true);
  assert.equal(filter.isRepeat(envelope(9, { to: "b3@example.com" })), true);
});

Deno.test("RepeatFilter counts the numbers that come with sessions, and forgets the least recently used pairs", () => {
  const filter = new RepeatFilter({ window: 8, maxNumbers: 32 });
  const { process, stanza } = envelope(1);
  const recent = [1, 2, 3, 4, 5, 6, 7, 8];
  for (let i = 1; i <= 5; i++) {
    const numbers = { sender: stanza.from.text, process, highest: 8, recent };
    for (let times = 0; times < 3; times++) filter.learnDelivered(`b${i}@example.com`, numbers);
  }
  const known = [1, 2, 3, 4, 5].filter((i) =>
    filter.deliveredTo(`b${i}@example.com`, 1).length === 1
  );
  assert.deepEqual(known, [3, 4, 5]);
});

Deno.test("RepeatFilter finds each of 1024 repeats that come late and unmarked", () => {
  const filter = new RepeatFilter();
  for (let sequence = 1; sequence <= 1_024; sequence++) filter.remember(envelope(sequence));
  for (let sequence = 1; sequence <= 1_024; sequence++) {
    assert.equal(filter.isRepeat(envelope(sequence, { mayBeRepeat: false })), true);
  }
});

Deno.test("RepeatFilter.learnDelivered() adds another node's deliveredTo() to its own numbers", () => {
  const [one, other] = [new RepeatFilter({ window: 4 }), new RepeatFilter({ window: 4 })];
  for (const sequence of [10, 12, 14, 16, 18]) one.remember(envelope(sequence));
  one.forget(envelope(16));
  one.remember(envelope(1, { from: "z@example.com/z", process: 9 }));
  one.remember(envelope(1, { to: "c@example.com" }));
  other.remember(envelope(20));
  const told = one.deliveredTo("b@example.com", 10);
  assert.deepEqual(told.map(({ sender }) => sender), ["z@example.com/z", "a@example.com/x"]);
  for (const each of told) other.learnDelivered("b@example.com", each);
  for (const sequence of [12, 14, 18, 20]) {
    assert.equal(other.isRepeat(envelope(sequence)), true, `${sequence}`);
  }
  assert.equal(other.isRepeat(envelope(1, { from: "z@example.com/z", process: 9 })), true);
  assert.equal(other.isRepeat(envelope(16)), false);
  assert.equal(other.isRepeat(envelope(21)), false);
  other.remember(envelope(22));
  assert.equal(other.isRepeat(envelope(22)), true);
  assert.equal(one.deliveredTo("b@example.com", 1).length, 1);
  assert.deepEqual(one.deliveredTo("nobody@example.com", 10), []);
});
