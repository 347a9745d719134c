import assert from "node:assert/strict";
import { ManualClock } from "../base/mod.ts";
import { StopRequests } from "./stop_requests.ts";

Deno.test("StopRequests.heard() treats two signals at once as one", () => {
  const requests = new StopRequests(new ManualClock());
  assert.deepEqual([requests.heard(), requests.heard(), requests.heard()], [
    "drain",
    "echo",
    "echo",
  ]);
});

Deno.test("StopRequests.heard() ends the node at once for a second signal half a second later, not before", () => {
  const clock = new ManualClock();
  const requests = new StopRequests(clock);
  assert.equal(requests.heard(), "drain");
  clock.advance(499);
  assert.equal(requests.heard(), "echo");
  clock.advance(1);
  assert.equal(requests.heard(), "at-once");
  assert.equal(requests.heard(), "at-once");
});
