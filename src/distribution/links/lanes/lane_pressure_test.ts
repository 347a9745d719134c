import assert from "node:assert/strict";
import { FairShares, ShareTab } from "../../../base/mod.ts";
import type { BoundLane, SenderBinding } from "./lane_entry.ts";
import { LanePressure } from "./lane_pressure.ts";
import { RetiredLanes } from "./retired_lanes.ts";

class TestLane implements BoundLane {
  readonly id = 1;
  readonly last = 1;
  readonly retired = new RetiredLanes();
  senders = 0;
  isLive = true;
  readonly isEnabled = true;
  isOver = true;
  held: SenderBinding[] = [];
  append = () => true;
  adopt() {}
  bringCarbon = () => false;
  noteRetired() {}
  holders = () => this.held;
}

function bindingOf(sender: string, lane: BoundLane): SenderBinding {
  const tab = new ShareTab(new FairShares(), { singles: [sender], crowds: [] });
  return { sender, lane, held: 1, tab, usedTick: 0, isPressured: false };
}

function pressureWithLog() {
  const told: string[] = [];
  const pressure = new LanePressure((sender, isOver) => told.push(`${sender} ${isOver}`));
  const lane = new TestLane();
  const [alice, bob] = [bindingOf("alice", lane), bindingOf("bob", lane)];
  return { told, pressure, lane, alice, bob };
}

Deno.test("LanePressure.update() slows each sender of a full lane down once", () => {
  const { told, pressure, lane, alice, bob } = pressureWithLog();
  lane.held = [alice, bob, alice];
  pressure.update(lane);
  pressure.update(lane);
  pressure.note(lane, bob);
  assert.deepEqual(told, ["alice true", "bob true"]);
});

for (
  const [what, change] of [
    ["has emptied", (lane: TestLane) => lane.isOver = false],
    ["has gone down", (lane: TestLane) => lane.isLive = false],
  ] as const
) {
  Deno.test(`LanePressure.update() lets senders go on when the lane ${what}, and slows them again`, () => {
    const { told, pressure, lane, alice } = pressureWithLog();
    lane.held = [alice];
    pressure.update(lane);
    change(lane);
    pressure.update(lane);
    pressure.update(lane);
    assert.deepEqual(told, ["alice true", "alice false"]);
    lane.isLive = lane.isOver = true;
    pressure.update(lane);
    assert.deepEqual(told, ["alice true", "alice false", "alice true"]);
  });
}

Deno.test("LanePressure.note() slows nobody down for a lane below its mark, or without a link", () => {
  const { told, pressure, lane, alice } = pressureWithLog();
  lane.isOver = false;
  pressure.note(lane, alice);
  [lane.isOver, lane.isLive] = [true, false];
  pressure.note(lane, alice);
  assert.deepEqual(told, []);
});

Deno.test("LanePressure.release() lets all senders go on before it tells the first", () => {
  const { pressure, lane, alice, bob } = pressureWithLog();
  const seen: boolean[] = [];
  const watched = new LanePressure((_sender, isOver) => {
    if (!isOver) seen.push(alice.isPressured, bob.isPressured);
  });
  lane.held = [alice, bob];
  watched.update(lane);
  watched.release(lane);
  assert.deepEqual(seen, [false, false, false, false]);
  pressure.release(lane); // knows nothing of the lane
});
