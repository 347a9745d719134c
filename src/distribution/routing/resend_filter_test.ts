import assert from "node:assert/strict";
import { ResendFilter } from "./resend_filter.ts";
import { stanza } from "./_router_fixture.ts";

const ALICE = "alice@example.com/a";
const BOB = "bob@example.com/b";

Deno.test("ResendFilter.has() knows a message by sender, recipient, id and payload", () => {
  const filter = new ResendFilter();
  filter.remember(stanza(ALICE, BOB, { id: "1" }));
  assert.ok(filter.has(stanza(ALICE, BOB, { id: "1" })));
  assert.ok(!filter.has(stanza(ALICE, BOB, { id: "2" })));
  assert.ok(!filter.has(stanza(ALICE, "bob@example.com/c", { id: "1" })));
  assert.ok(!filter.has(stanza("alice@example.com/b", BOB, { id: "1" })));
});

Deno.test("ResendFilter.has() knows requests as it knows messages", () => {
  const filter = new ResendFilter();
  for (const type of ["get", "set"] as const) {
    const request = stanza(ALICE, BOB, { kind: "iq", type });
    filter.remember(request);
    assert.ok(filter.has(request));
    filter.forget(request);
    assert.ok(!filter.has(request));
  }
});

Deno.test("ResendFilter.has() says nothing of messages without an id, nor of presence and answers", () => {
  const filter = new ResendFilter();
  const { bytes, ...rest } = stanza(ALICE, BOB);
  const text = new TextDecoder().decode(bytes).replace(" id='1'", "");
  const nameless = { ...rest, bytes: new TextEncoder().encode(text) };
  const presence = stanza(ALICE, BOB, { kind: "presence", type: "subscribe" });
  const result = stanza(ALICE, BOB, { kind: "iq", type: "result" });
  for (const each of [nameless, presence, result]) {
    filter.remember(each);
    assert.ok(!filter.has(each));
  }
});

Deno.test("ResendFilter.forget() lets a message be delivered anew", () => {
  const filter = new ResendFilter();
  filter.remember(stanza(ALICE, BOB));
  filter.forget(stanza(ALICE, BOB));
  assert.ok(!filter.has(stanza(ALICE, BOB)));
});

Deno.test("ResendFilter remembers at least half of maxStanzas, and not more than that", () => {
  const filter = new ResendFilter({ maxStanzas: 8 });
  const numbered = (n: number) => stanza(ALICE, BOB, { id: String(n) });
  for (let n = 0; n < 100; n++) filter.remember(numbered(n));
  for (let n = 96; n < 100; n++) assert.ok(filter.has(numbered(n)), String(n));
  for (let n = 0; n < 92; n++) assert.ok(!filter.has(numbered(n)), String(n));
});

Deno.test("ResendFilter tells a hundred thousand short messages apart", () => {
  const filter = new ResendFilter({ maxStanzas: 400_000 });
  for (let n = 0; n < 100_000; n++) filter.remember(stanza(ALICE, BOB, { id: String(n) }));
  for (let n = 100_000; n < 110_000; n++) {
    assert.ok(!filter.has(stanza(ALICE, BOB, { id: String(n) })), String(n));
  }
});

Deno.test("ResendFilter tells messages of every length apart that differ in a single bit", () => {
  const alphabet = new Uint8Array(64).map((_, i) => 33 + i);
  for (let length = 1; length <= alphabet.length; length++) {
    const filter = new ResendFilter();
    const { bytes: _, ...rest } = stanza(ALICE, BOB);
    // Names the id, so that what is known is owned up to.
    const start = new TextEncoder().encode("<message id='1'/>");
    const text = new Uint8Array([...start, ...alphabet.subarray(0, length)]);
    filter.remember({ ...rest, bytes: text });
    assert.ok(filter.has({ ...rest, bytes: text.slice() }));
    for (let bit = start.length * 8; bit < text.length * 8; bit++) {
      const changed = text.slice();
      changed[bit >> 3]! ^= 1 << (bit & 7);
      assert.ok(!filter.has({ ...rest, bytes: changed }), `length ${length}, bit ${bit}`);
    }
    assert.ok(!filter.has({ ...rest, bytes: text.subarray(0, -1) }));
  }
});
