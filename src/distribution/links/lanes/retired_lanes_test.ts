import assert from "node:assert/strict";
import { RetiredLanes } from "./retired_lanes.ts";

Deno.test("RetiredLanes.takeUntold() tells of each lane once on every connection until the peer has heard", () => {
  const retired = new RetiredLanes();
  retired.add(7, 3);
  retired.add(8, 5);
  assert.deepEqual([retired.takeUntold(), retired.takeUntold()], [[7, 8], []]);
  retired.tellAgain();
  assert.deepEqual(retired.takeUntold(), [7, 8]);
  retired.received(2);
  retired.tellAgain();
  assert.deepEqual(retired.takeUntold(), [7, 8], "the stanzas behind them are not received");
  retired.received(4);
  retired.tellAgain();
  assert.deepEqual(retired.takeUntold(), [8]);
  retired.received(5);
  assert.deepEqual(retired.takeAll(), []);
});

Deno.test("RetiredLanes forgets a lane that is connected again, and hands all of them over", () => {
  const retired = new RetiredLanes();
  for (const lane of [7, 8, 9]) retired.add(lane, 1);
  retired.forget(8);
  retired.forget(5);
  assert.deepEqual([retired.takeUntold(), retired.takeAll()], [[7, 9], [7, 9]]);
  retired.tellAgain();
  assert.deepEqual([retired.takeUntold(), retired.takeAll()], [[], []], "others tell of them now");
  retired.add(6, 1);
  retired.clear();
  assert.deepEqual([retired.takeUntold(), retired.takeAll()], [[], []]);
});
