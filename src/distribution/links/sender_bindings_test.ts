import assert from "node:assert/strict";
import { Lane } from "./lane.ts";
import { SenderBindings } from "./sender_bindings.ts";

const LIMITS = { laneMaxBytes: 1 << 20, laneMaxItems: 10, laneHighWater: 0.5, laneLowWater: 0.25 };

function newLane(id: number): Lane {
  return new Lane(id, LIMITS, { laneHasWork() {}, laneLevelChanged() {} });
}

Deno.test("SenderBindings.tick() forgets who is idle, never who has something in a lane", () => {
  const lane = newLane(1);
  const bindings = new SenderBindings({ maxBindings: 100, idleTicks: 3 });
  bindings.bind("busy", lane).held = 1;
  bindings.bind("slowed", lane).isPressured = true;
  bindings.bind("idle", lane);
  bindings.bind("used", lane);
  for (let tick = 1; tick <= 3; tick++) {
    if (tick === 3) bindings.get("used");
    bindings.tick();
  }
  assert.equal(bindings.get("idle"), undefined);
  assert.ok(bindings.get("busy") && bindings.get("slowed") && bindings.get("used"));
  assert.equal(lane.senders, 3);
});

Deno.test("SenderBindings.bind() forgets idle senders early at its bound", () => {
  const lane = newLane(1);
  const bindings = new SenderBindings({ maxBindings: 3, idleTicks: 60 });
  bindings.bind("busy", lane).held = 1;
  bindings.bind("a", lane);
  bindings.bind("b", lane);
  assert.equal(bindings.size, 3);
  bindings.bind("c", lane);
  assert.equal(bindings.size, 2);
  assert.ok(bindings.get("busy") && bindings.get("c"));
});

Deno.test("SenderBindings.rebind() counts the sender on its new lane", () => {
  const [one, two] = [newLane(1), newLane(2)];
  const bindings = new SenderBindings({ maxBindings: 3, idleTicks: 60 });
  const binding = bindings.bind("a", one);
  bindings.rebind(binding, two);
  assert.deepEqual([one.senders, two.senders], [0, 1]);
  assert.equal(bindings.get("a")?.lane, two);
});
