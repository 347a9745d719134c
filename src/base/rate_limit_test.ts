import assert from "node:assert/strict";
import { ManualClock } from "./manual_clock.ts";
import { RateLimit } from "./rate_limit.ts";

Deno.test("RateLimit.take() gives burst tokens at once, then perSec a second", () => {
  const clock = new ManualClock();
  const limit = new RateLimit({ perSec: 2, burst: 3 }, clock);
  const takes = (count: number) => Array.from({ length: count }, () => limit.take("a"));
  assert.deepEqual(takes(4), [true, true, true, false]);
  clock.advance(499);
  assert.deepEqual(takes(1), [false]);
  clock.advance(1);
  assert.deepEqual(takes(2), [true, false]);
  clock.advance(60_000);
  assert.deepEqual(takes(4), [true, true, true, false], "a bucket holds no more than its burst");
});

Deno.test("RateLimit.take() takes several tokens at once, or none", () => {
  const clock = new ManualClock();
  const limit = new RateLimit({ perSec: 10, burst: 100 }, clock);
  assert.deepEqual([limit.take("a", 60), limit.take("a", 41), limit.take("a", 40)], [
    true,
    false,
    true,
  ]);
  clock.advance(5_000);
  assert.deepEqual([limit.take("a", 51), limit.take("a", 50)], [false, true]);
});

Deno.test("RateLimit keeps a bucket for each key", () => {
  const limit = new RateLimit({ perSec: 1, burst: 1 }, new ManualClock());
  assert.deepEqual([limit.take("a"), limit.take("b"), limit.take("a")], [true, true, false]);
});

Deno.test("RateLimit.charge() returns how long an overdrawn bucket takes to recover", () => {
  const clock = new ManualClock();
  const limit = new RateLimit({ perSec: 10, burst: 2 }, clock);
  const charges = [1, 2, 3, 4].map(() => Math.round(limit.charge("a")));
  assert.deepEqual(charges, [0, 0, 100, 200]);
  clock.advance(250);
  assert.equal(Math.round(limit.charge("a")), 50);
});

Deno.test("RateLimit.giveBack() undoes one take", () => {
  const limit = new RateLimit({ perSec: 1, burst: 1 }, new ManualClock());
  limit.take("a");
  limit.giveBack("a");
  limit.giveBack("never taken");
  assert.deepEqual([limit.take("a"), limit.take("a")], [true, false]);
});

Deno.test("RateLimit remembers maxKeys and not one more, in whatever order buckets fill", () => {
  const clock = new ManualClock();
  const limit = new RateLimit({ perSec: 1, burst: 1, maxKeys: 2 }, clock);
  for (const key of ["a", "b"]) limit.take(key);
  assert.equal(limit.keyCount, 2);
  limit.take("c");
  assert.equal(limit.keyCount, 2);
  assert.deepEqual([limit.take("c"), limit.take("b")], [false, false], "the newest are known");
  clock.advance(5000);
  limit.take("d");
  assert.equal(limit.keyCount, 1, "full buckets go together");
});

Deno.test("RateLimit remembers 10000 keys by default, and not one more", () => {
  const limit = new RateLimit({ perSec: 1, burst: 1 }, new ManualClock());
  for (let i = 1; i <= 10_000; i++) limit.take(`key ${i}`);
  assert.equal(limit.keyCount, 10_000);
  assert.equal(limit.take("key 1"), false);
  limit.take("one more");
  assert.equal(limit.keyCount, 10_000);
});

Deno.test("RateLimit cuts keys that are too long to keep", () => {
  const limit = new RateLimit({ perSec: 1, burst: 1 }, new ManualClock());
  assert.equal(limit.take("x".repeat(100_000)), true);
  assert.equal(limit.take("x".repeat(100_001)), false);
});

Deno.test("RateLimit refuses rates that let nothing pass", () => {
  for (const wrong of [{ perSec: 0 }, { burst: 0 }, { burst: 1.5 }, { maxKeys: 0 }]) {
    const options = { perSec: 1, burst: 1, ...wrong };
    assert.throws(() => new RateLimit(options, new ManualClock()), RangeError);
  }
});
