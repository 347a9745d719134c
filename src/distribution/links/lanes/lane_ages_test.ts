import assert from "node:assert/strict";
import { LaneAges } from "./lane_ages.ts";

Deno.test("LaneAges.oldestMs() is when the oldest stanza that was not received came in", () => {
  const ages = new LaneAges();
  assert.equal(ages.oldestMs(0), undefined);
  ages.note(3, 0, 1000);
  ages.note(8, 0, 2000);
  assert.equal(ages.oldestMs(0), 1000);
  assert.equal(ages.oldestMs(2), 1000);
  assert.equal(ages.oldestMs(3), 2000);
  assert.equal(ages.oldestMs(8), undefined);
});

Deno.test("LaneAges keeps the first time however many follow, and forgets what was received", () => {
  const ages = new LaneAges();
  for (let last = 1; last <= 100_000; last++) ages.note(last, 0, last * 100);
  assert.equal(ages.oldestMs(0), 100);
  ages.note(100_001, 100_000, 20_000_000);
  assert.equal(ages.oldestMs(100_000), 20_000_000);
});

Deno.test("LaneAges.reset() forgets numbers that begin anew", () => {
  const ages = new LaneAges();
  ages.note(9, 0, 1000);
  ages.reset();
  ages.note(2, 0, 5000);
  assert.equal(ages.oldestMs(0), 5000);
});
