import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import { RecentEnds } from "./recent_ends.ts";
import { ALICE, BOB, PHONE } from "./testing/alice_and_bob.ts";

const [alice, bob] = [parseJid(ALICE), parseJid(BOB)];

Deno.test("RecentEnds remembers an end for five minutes, or until it is undone", () => {
  const clock = new ManualClock();
  const ends = new RecentEnds(clock);
  assert.equal(ends.has(alice, bob), false);
  ends.note(parseJid(PHONE), bob);
  clock.advance(299_999);
  assert.ok(ends.has(alice, parseJid(`${BOB}/x`)));
  assert.equal(ends.has(bob, alice), false);
  clock.advance(1);
  assert.equal(ends.has(alice, bob), false);
  ends.note(alice, bob);
  assert.ok(ends.has(alice, bob));
  ends.forget(alice, bob);
  assert.equal(ends.has(alice, bob), false);
});

Deno.test("RecentEnds remembers 10 000 ends at the most, and the newest of them", () => {
  const ends = new RecentEnds(new ManualClock());
  for (let i = 0; i <= 10_000; i++) ends.note(parseJid(`user${i}@example.com`), bob);
  const has = (i: number) => ends.has(parseJid(`user${i}@example.com`), bob);
  assert.deepEqual([has(0), has(1), has(10_000)], [false, true, true]);
});
