import assert from "node:assert/strict";
import { ManualClock } from "./manual_clock.ts";

Deno.test("ManualClock.advance() runs timers in the order they fall due", () => {
  const clock = new ManualClock();
  const ran: string[] = [];
  clock.after(20, () => void ran.push(`b at ${clock.monotonicMs()}`));
  clock.after(10, () => {
    ran.push(`a at ${clock.monotonicMs()}`);
    clock.after(5, () => void ran.push(`c at ${clock.monotonicMs()}`));
  });
  const cancel = clock.after(12, () => void ran.push("cancelled"));
  cancel();
  clock.advance(30);
  assert.deepEqual(ran, ["a at 10", "c at 15", "b at 20"]);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("ManualClock.shiftWall() leaves monotonic time alone", () => {
  const clock = new ManualClock(1000);
  clock.shiftWall(-300_000);
  assert.equal(clock.wallMs(), -299_000);
  assert.equal(clock.monotonicMs(), 0);
});
