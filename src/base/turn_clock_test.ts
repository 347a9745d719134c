import assert from "node:assert/strict";
import { ManualClock } from "./manual_clock.ts";
import { TurnClock } from "./turn_clock.ts";

Deno.test("TurnClock stands still until the current callback returns", async () => {
  const manual = new ManualClock(1_000);
  const clock = new TurnClock(manual);
  for (const turn of [0, 1, 2]) {
    const atMs = turn * 5;
    assert.deepEqual([clock.monotonicMs(), clock.wallUs()], [atMs, (1_000 + atMs) * 1000]);
    manual.advance(5);
    assert.deepEqual([clock.monotonicMs(), clock.wallUs()], [atMs, (1_000 + atMs) * 1000]);
    await Promise.resolve();
  }
});

Deno.test("TurnClock reads each kind of time at its first use in a turn", async () => {
  const manual = new ManualClock(0);
  const clock = new TurnClock(manual);
  assert.equal(clock.wallUs(), 0);
  manual.advance(7);
  assert.equal(clock.monotonicMs(), 7);
  assert.equal(clock.wallUs(), 0);
  await Promise.resolve();
  assert.equal(clock.wallUs(), 7_000);
});

Deno.test("TurnClock runs timers and gives wall milliseconds as the clock beneath it does", () => {
  const manual = new ManualClock(100);
  const clock = new TurnClock(manual);
  let ran = 0;
  clock.after(10, () => ran++);
  const cancel = clock.after(10, () => ran++);
  cancel();
  manual.advance(10);
  assert.equal(ran, 1);
  assert.equal(clock.wallMs(), 110);
});
