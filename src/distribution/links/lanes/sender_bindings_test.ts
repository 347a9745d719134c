import assert from "node:assert/strict";
import { FairShares } from "../../../base/mod.ts";
import { Lane } from "./lane.ts";
import { SenderBindings } from "./sender_bindings.ts";

const LIMITS = {
  laneMaxBytes: 1 << 20,
  laneMaxItems: 10,
  laneHighWater: 0.5,
  laneLowWater: 0.25,
  maxFrameBytes: 1 << 20,
};

function newLane(id: number): Lane {
  return new Lane(id, LIMITS, {
    events: { laneHasWork() {}, laneLevelChanged() {}, laneSlows: () => () => {} },
  });
}

Deno.test("SenderBindings.tick() forgets idle senders, never those with a stanza in a lane", () => {
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

Deno.test("SenderBindings.bind() counts all resources of an account for one share, and all senders of a domain", () => {
  const budget = new FairShares({ maxBytes: 1_000_000_000 });
  const bindings = new SenderBindings({ maxBindings: 100, idleTicks: 3, budget });
  const senders = [
    ...["alice@example.com/a@b/c", "alice@example.com/d", "alice@example.com"],
    ...["example.com", "example.com/x@y", "rooms.example.com"],
  ];
  for (const sender of senders) bindings.bind(sender, newLane(1)).tab.add(65_536);
  const names = ["alice@example.com", "example.com", "rooms.example.com"];
  assert.deepEqual(names.map((name) => budget.bytesOf(name) / 65_536), [3, 2, 1]);
});
