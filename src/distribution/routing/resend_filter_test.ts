import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import type { Stanza } from "../../xmpp/mod.ts";
import { ResendFilter } from "./resend_filter.ts";
import type { ResendFilterOptions, Sent } from "./resend_filter.ts";
import { stanza } from "./testing/router_fixture.ts";

const ALICE = "alice@example.com/a";
const BOB = "bob@example.com/b";

/** Returns the stanza as first sent. */
function first(stanza: Stanza, sentAtUs = 1_000): Sent {
  return { stanza, process: 7, entry: "ordinary", sentAtUs };
}

/** Returns the stanza as sent again through another process. */
function again(stanza: Stanza, sentAtUs = 2_000): Sent {
  return { stanza, process: 8, entry: "resent", sentAtUs };
}

function create(options: ResendFilterOptions = {}, clock = new ManualClock()): ResendFilter {
  return new ResendFilter(options, clock);
}

Deno.test("ResendFilter.has() knows a message by sender, recipient, id and payload", () => {
  const filter = create();
  filter.remember(first(stanza(ALICE, BOB, { id: "1" })));
  assert.ok(filter.has(again(stanza(ALICE, BOB, { id: "1" }))));
  assert.ok(!filter.has(again(stanza(ALICE, BOB, { id: "2" }))));
  assert.ok(!filter.has(again(stanza(ALICE, "bob@example.com/c", { id: "1" }))));
  assert.ok(!filter.has(again(stanza("alicia@example.com/a", BOB, { id: "1" }))));
});

Deno.test("ResendFilter.has() knows a client that comes back under another resource, or without one", () => {
  for (const resource of ["/b", "/a longer one, with \u00e4", ""]) {
    const filter = create();
    filter.remember(first(stanza(ALICE, BOB)));
    assert.ok(filter.has(again(stanza(`alice@example.com${resource}`, BOB))), resource);
    assert.ok(!filter.has(again(stanza(`alice@example.org${resource}`, BOB))), resource);
  }
});

Deno.test("ResendFilter.has() knows requests and presence as it knows messages", () => {
  const filter = create();
  const request = (type: "get" | "set") => stanza(ALICE, BOB, { kind: "iq", type });
  const presence = (type: "available" | "subscribe") =>
    stanza(ALICE, BOB, { kind: "presence", type });
  for (
    const each of [request("get"), request("set"), presence("available"), presence("subscribe")]
  ) {
    filter.remember(first(each));
    assert.ok(filter.has(again(each)));
    filter.forget(again(each));
    assert.ok(!filter.has(again(each)));
  }
});

Deno.test("ResendFilter.has() ignores stanzas without an id, and answers", () => {
  const filter = create();
  const { bytes, ...rest } = stanza(ALICE, BOB);
  const text = new TextDecoder().decode(bytes).replace(" id='1'", "");
  const nameless = { ...rest, bytes: new TextEncoder().encode(text) };
  const result = stanza(ALICE, BOB, { kind: "iq", type: "result" });
  const error = stanza(ALICE, BOB, { type: "error" });
  for (const each of [nameless, result, error]) {
    filter.remember(again(each));
    assert.ok(!filter.has(again(each, 3_000)));
    assert.ok(!filter.has(first(each)));
  }
});

Deno.test("ResendFilter.has() compares no stanza that is not marked as resent", () => {
  const filter = create();
  filter.remember(first(stanza(ALICE, BOB)));
  assert.ok(!filter.has(first(stanza(ALICE, BOB), 500)));
  assert.ok(!filter.has(first(stanza(ALICE, BOB), 1_500)));
});

Deno.test("ResendFilter.has() finds a first sending that arrives after the second", () => {
  const filter = create();
  filter.remember(again(stanza(ALICE, BOB), 2_000));
  assert.ok(filter.has(first(stanza(ALICE, BOB), 1_999)));
  assert.ok(!filter.has(first(stanza(ALICE, BOB, { id: "2" }), 1_999)), "another one");
  assert.ok(!filter.has(first(stanza(ALICE, BOB), 2_000)), "the same text sent anew, later");
  const sameProcess = { ...first(stanza(ALICE, BOB), 1_999), process: 8 };
  assert.ok(!filter.has(sameProcess), "stanzas of that process come in order");
  filter.forget(again(stanza(ALICE, BOB), 2_000));
  assert.ok(!filter.has(first(stanza(ALICE, BOB), 1_999)), "it is to be delivered anew");
});

Deno.test("ResendFilter believes no clock that is ahead of its own", () => {
  const clock = new ManualClock();
  const filter = create({}, clock);
  filter.remember(again(stanza(ALICE, BOB), Number.MAX_SAFE_INTEGER));
  const nowUs = clock.wallUs();
  assert.ok(filter.has(first(stanza(ALICE, BOB), nowUs - 1)));
  assert.ok(!filter.has(first(stanza(ALICE, BOB), nowUs)));
});

Deno.test("ResendFilter forgets a stanza that its client no longer sends again", () => {
  const clock = new ManualClock();
  const filter = create({ resendLifetimeMs: 1_000 }, clock);
  const [one, other] = [stanza(ALICE, BOB, { id: "1" }), stanza(ALICE, BOB, { id: "2" })];
  filter.remember(first(one));
  clock.advance(999);
  filter.remember(again(other));
  clock.advance(1_000);
  assert.ok(filter.has(again(one)), "remembered for twice the lifetime at most");
  assert.ok(filter.has(first(other)), "as long, at least");
  clock.advance(1);
  assert.ok(!filter.has(again(one)) && !filter.has(first(other)) && !filter.has(again(other)));
  filter.remember(again(other));
  clock.advance(999_999);
  assert.ok(!filter.has(again(other)) && !filter.has(first(other)), "forgotten after any pause");
});

Deno.test("ResendFilter remembers resent stanzas up to a sixteenth of half of maxStanzas", () => {
  const filter = create({ maxStanzas: 128 });
  const numbered = (n: number) => stanza(ALICE, BOB, { id: String(n) });
  for (let n = 0; n < 5; n++) filter.remember(again(numbered(n)));
  const known = [0, 1, 2, 3, 4].filter((n) => filter.has(first(numbered(n))));
  assert.deepEqual(known, [1, 2, 3, 4]);
});

Deno.test("ResendFilter.forget() lets a message be delivered anew", () => {
  const filter = create();
  filter.remember(first(stanza(ALICE, BOB)));
  filter.forget(first(stanza(ALICE, BOB)));
  assert.ok(!filter.has(again(stanza(ALICE, BOB))));
});

Deno.test("ResendFilter remembers at least half of maxStanzas, and not more than that", () => {
  const filter = create({ maxStanzas: 8 });
  const numbered = (n: number) => stanza(ALICE, BOB, { id: String(n) });
  for (let n = 0; n < 100; n++) filter.remember(first(numbered(n)));
  for (let n = 96; n < 100; n++) assert.ok(filter.has(again(numbered(n))), String(n));
  for (let n = 0; n < 92; n++) assert.ok(!filter.has(again(numbered(n))), String(n));
});

Deno.test("ResendFilter tells a hundred thousand short messages apart", () => {
  const filter = create({ maxStanzas: 400_000 });
  for (let n = 0; n < 100_000; n++) filter.remember(first(stanza(ALICE, BOB, { id: String(n) })));
  for (let n = 100_000; n < 110_000; n++) {
    assert.ok(!filter.has(again(stanza(ALICE, BOB, { id: String(n) }))), String(n));
  }
});

Deno.test("ResendFilter tells messages of every length apart that differ in a single bit", () => {
  const alphabet = new Uint8Array(64).map((_, i) => 33 + i);
  for (let length = 1; length <= alphabet.length; length++) {
    const filter = create();
    const { bytes: _, ...rest } = stanza(ALICE, BOB);
    // Names the id, so that this message is known.
    const start = new TextEncoder().encode("<message id='1'/>");
    const text = new Uint8Array([...start, ...alphabet.subarray(0, length)]);
    filter.remember(first({ ...rest, bytes: text }));
    assert.ok(filter.has(again({ ...rest, bytes: text.slice() })));
    for (let bit = start.length * 8; bit < text.length * 8; bit++) {
      const changed = text.slice();
      changed[bit >> 3]! ^= 1 << (bit & 7);
      assert.ok(!filter.has(again({ ...rest, bytes: changed })), `length ${length}, bit ${bit}`);
    }
    assert.ok(!filter.has(again({ ...rest, bytes: text.subarray(0, -1) })));
  }
});
