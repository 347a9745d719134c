import assert from "node:assert/strict";
import { ManualClock } from "../base/mod.ts";
import { StopRequests } from "./stop_requests.ts";

Deno.test("StopRequests.heard() takes a signal that comes twice at once for one", () => {
  const requests = new StopRequests(new ManualClock());
  assert.deepEqual([requests.heard(), requests.heard(), requests.heard()], [
    "drain",
    "echo",
    "echo",
  ]);
});

Deno.test("StopRequests.heard() ends at once for a signal half a second after the first, not before", () => {
  const clock = new ManualClock();
  const requests = new StopRequests(clock);
  assert.equal(requests.heard(), "drain");
  clock.advance(499);
  assert.equal(requests.heard(), "echo");
  clock.advance(1);
  assert.equal(requests.heard(), "at-once");
  assert.equal(requests.heard(), "at-once");
});
