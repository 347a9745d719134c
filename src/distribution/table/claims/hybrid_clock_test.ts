import assert from "node:assert/strict";
import { ManualClock } from "../../../base/mod.ts";
import { HybridClock, MAX_EPOCH, MAX_EPOCH_AHEAD_US, MAX_TOLD_AHEAD_US } from "./hybrid_clock.ts";

const START_US = 1_000_000_000;

function clockAt(): { epochs: HybridClock; clock: ManualClock } {
  const clock = new ManualClock(START_US / 1000);
  return { epochs: new HybridClock(clock), clock };
}

Deno.test("HybridClock.next() never repeats, even when the wall clock goes back", () => {
  const { epochs, clock } = clockAt();
  assert.equal(epochs.next(), START_US);
  assert.equal(epochs.next(), START_US + 1);
  clock.shiftWall(-5_000);
  assert.equal(epochs.next(), START_US + 2);
  clock.advance(10_000);
  assert.equal(epochs.next(), START_US + 5_000_000);
});

Deno.test("HybridClock.next() follows an epoch up to 60 s ahead", () => {
  const { epochs } = clockAt();
  const known = START_US + MAX_EPOCH_AHEAD_US - 1;
  assert.equal(epochs.next(known), known + 1);
  assert.equal(epochs.next(), known + 2);
});

Deno.test("HybridClock.next() exceeds an epoch beyond 60 s once, and is not moved by it", () => {
  const { epochs } = clockAt();
  const known = START_US + MAX_EPOCH_AHEAD_US;
  assert.equal(epochs.next(known), known + 1);
  assert.ok(epochs.next() < START_US + 10);
});

Deno.test("HybridClock.next() draws only possible epochs, whatever it has seen", () => {
  const { epochs, clock } = clockAt();
  for (const known of [MAX_EPOCH - 1, MAX_EPOCH, Number.MAX_SAFE_INTEGER, Infinity]) {
    assert.equal(epochs.next(known), MAX_EPOCH);
  }
  epochs.correct(Number.MAX_SAFE_INTEGER);
  for (let i = 0; i < 3; i++) assert.equal(epochs.next(), MAX_EPOCH);
  epochs.correct(0);
  assert.ok(epochs.next() <= START_US + 1, "the far epoch has no effect any more");
  clock.shiftWall(-10 * START_US);
  assert.ok(epochs.next() > 0);
  epochs.correct(-Number.MAX_SAFE_INTEGER);
  assert.ok(epochs.next() > 0);
});

Deno.test("HybridClock.bounded() keeps an epoch up to two days ahead", () => {
  const { epochs } = clockAt();
  const most = START_US + MAX_TOLD_AHEAD_US;
  assert.deepEqual(
    [1, most, most + 1, Number.MAX_SAFE_INTEGER].map((each) => epochs.bounded(each)),
    [
      1,
      most,
      most,
      most,
    ],
  );
});
