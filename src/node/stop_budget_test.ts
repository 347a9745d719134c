import assert from "node:assert/strict";
import { ManualClock } from "../base/mod.ts";
import { StopBudget } from "./stop_budget.ts";

Deno.test("StopBudget gives each step half of what is left, and nothing when it is over", () => {
  const clock = new ManualClock();
  const budget = new StopBudget(8000, clock);
  assert.equal(budget.halfMs(), 4000);
  assert.equal(budget.halfMs(3000), 3000);
  clock.advance(6000);
  assert.deepEqual([budget.leftMs, budget.halfMs(3000)], [2000, 1000]);
  clock.advance(2001);
  assert.deepEqual([budget.leftMs, budget.halfMs()], [0, 0]);
});

Deno.test("StopBudget.wait() ends with the step, or when its time is over", async () => {
  const clock = new ManualClock();
  const budget = new StopBudget(8000, clock);
  assert.equal(await budget.wait(Promise.resolve()), "done");
  const never = Promise.withResolvers<void>();
  const waited = budget.wait(never.promise, 500);
  clock.advance(500);
  assert.equal(await waited, "late");
  await assert.rejects(budget.wait(Promise.reject(new Error("failed"))), /failed/);
});
