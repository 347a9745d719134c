import assert from "node:assert/strict";
import { InboundLanes } from "./inbound_lanes.ts";
import type { InboundLane } from "./inbound_lane.ts";

const OPTIONS = {
  maxInboundLanes: 2,
  maxDatacenterLanes: 2,
  inboundMemoryMs: 1000,
  maxUnsettled: 4,
};

function attach(lanes: InboundLanes, lane: number, more: {
  nowMs?: number;
  lastGone?: number;
  host?: string;
  cut?: () => void;
} = {}) {
  return lanes.attach({
    process: 5,
    lane,
    host: more.host ?? "dc2.example.com",
    lastGone: more.lastGone ?? 0,
    wake() {},
    cut: more.cut ?? (() => {}),
  }, more.nowMs ?? 0);
}

function laneOf(attachment: ReturnType<typeof attach>): InboundLane {
  assert.equal(attachment.kind, "attached");
  return (attachment as { lane: InboundLane }).lane;
}

Deno.test("InboundLanes.attach() finds a lane again after its connection, for inboundMemoryMs", () => {
  const lanes = new InboundLanes(OPTIONS);
  const lane = laneOf(attach(lanes, 1));
  lane.receive(1);
  lanes.detach(lane, 100);
  lanes.tick(1099);
  assert.equal(laneOf(attach(lanes, 1, { nowMs: 1099 })), lane);
  lanes.tick(9000);
  assert.equal(lanes.size, 1, "a connected lane is never forgotten");
  lanes.detach(lane, 9000);
  lanes.tick(10_000);
  assert.equal(lanes.size, 0);
  assert.equal(laneOf(attach(lanes, 1, { lastGone: 7 })).received, 7);
});

Deno.test("InboundLanes.attach() cuts the connection that had the lane before", () => {
  const lanes = new InboundLanes(OPTIONS);
  let cuts = 0;
  attach(lanes, 1, { cut: () => cuts++ });
  attach(lanes, 1);
  assert.equal(cuts, 1);
});

Deno.test("InboundLanes.attach() keeps apart lanes of two local hosts whose numbers are the same", () => {
  const lanes = new InboundLanes(OPTIONS);
  let cuts = 0;
  const lane = laneOf(attach(lanes, 1, { cut: () => cuts++ }));
  lane.receive(1);
  const other = laneOf(attach(lanes, 1, { host: "dc3.example.com" }));
  assert.equal(other.received, 0);
  lanes.detach(other, 0);
  assert.equal(cuts, 0);
  assert.equal(laneOf(attach(lanes, 1)), lane);
});

Deno.test("InboundLanes.attach() forgets the longest idle lane at its bound, and refuses when none is idle", () => {
  const lanes = new InboundLanes(OPTIONS);
  const first = laneOf(attach(lanes, 1));
  const second = laneOf(attach(lanes, 2));
  assert.equal(attach(lanes, 3).kind, "busy");
  lanes.detach(second, 10);
  lanes.detach(first, 20);
  assert.equal(attach(lanes, 3).kind, "attached");
  assert.equal(laneOf(attach(lanes, 1)), first);
  assert.equal(attach(lanes, 2).kind, "busy");
});

Deno.test("InboundLanes.attach() lets no datacenter have more than its share, nor take others' places", () => {
  const lanes = new InboundLanes({ ...OPTIONS, maxInboundLanes: 5, maxDatacenterLanes: 3 });
  const others = laneOf(attach(lanes, 1, { host: "dc3.example.com" }));
  others.receive(1);
  lanes.detach(others, 0);
  for (let lane = 1; lane <= 3; lane++) laneOf(attach(lanes, lane));
  assert.equal(attach(lanes, 4).kind, "busy", "even with room for other datacenters");
  const mine = laneOf(attach(lanes, 3));
  lanes.detach(mine, 50);
  assert.equal(attach(lanes, 4).kind, "attached", "its own idle lane makes room");
  lanes.detach(laneOf(attach(lanes, 4)), 60);
  laneOf(attach(lanes, 1, { host: "dc4.example.com" }));
  laneOf(attach(lanes, 2, { host: "dc4.example.com" }));
  assert.equal(lanes.size, 5, "at the total bound, the host with most lanes gives way");
  const again = attach(lanes, 1, { host: "dc3.example.com", nowMs: 100 });
  assert.equal(laneOf(again), others, "lanes of others stay");
});

Deno.test("InboundLanes.retire() ends the connection of a lane, and no other", () => {
  const lanes = new InboundLanes(OPTIONS);
  const cut: number[] = [];
  attach(lanes, 1, { cut: () => cut.push(1) });
  attach(lanes, 2, { cut: () => cut.push(2) });
  const host = "dc2.example.com";
  lanes.retire({ host, process: 5, lane: 2 });
  lanes.retire({ host, process: 6, lane: 1 });
  lanes.retire({ host, process: 5, lane: 99 });
  lanes.retire({ host: "dc3.example.com", process: 5, lane: 1 });
  assert.deepEqual(cut, [2]);
});

Deno.test("InboundLane.receive() takes the next number only, up to its bound of open ones", () => {
  const lane = laneOf(attach(new InboundLanes(OPTIONS), 1));
  assert.equal(lane.receive(2), "gap");
  assert.deepEqual([1, 1, 2, 3, 4].map((n) => lane.receive(n)), [
    "new",
    "repeat",
    "new",
    "new",
    "new",
  ]);
  assert.equal(lane.receive(5), "overload");
  lane.settle(1);
  assert.equal(lane.receive(5), "new");
});

Deno.test("InboundLane.isDoneUpTo() counts a number left open as done, but does not settle it", () => {
  const lane = laneOf(attach(new InboundLanes(OPTIONS), 1));
  for (const number of [1, 2, 3, 4]) lane.receive(number);
  lane.settle(1);
  lane.settle(3);
  assert.equal(lane.isDoneUpTo(1), true);
  assert.equal(lane.isDoneUpTo(3), false);
  lane.leftOpen(2);
  assert.equal(lane.isDoneUpTo(3), true);
  assert.equal(lane.isDoneUpTo(4), false);
  assert.equal(lane.takeAcks(0).at(-1)!.settled, 1);
});

Deno.test("InboundLane.takeSlowNews() tells whose senders to slow, again on a new connection", () => {
  const lanes = new InboundLanes(OPTIONS);
  const lane = laneOf(attach(lanes, 1));
  for (const number of [1, 2, 3]) lane.receive(number);
  const news = () => lane.takeSlowNews().map(({ number, isOver }) => `${number} ${isOver}`);
  const end = [1, 2].map((number) => lane.slow(number));
  assert.deepEqual(news(), ["1 false", "2 false"]);
  assert.deepEqual(news(), []);
  end[0]!();
  end[0]!();
  const brief = lane.slow(3);
  brief();
  assert.deepEqual(news(), ["1 true"], "the peer need not hear of what is over already");
  lanes.detach(lane, 100);
  const late = lane.slow(3);
  assert.deepEqual(news(), []);
  attach(lanes, 1, { nowMs: 200 });
  assert.deepEqual(news(), ["2 false", "3 false"]);
  for (const each of [end[1]!, late]) each();
  assert.deepEqual(news(), ["2 true", "3 true"]);

  const copies = [lane.slow(2), lane.slow(2)];
  assert.deepEqual(news(), ["2 false"]);
  copies[0]!();
  copies[0]!();
  assert.deepEqual(news(), [], "another copy still waits");
  copies[1]!();
  lane.slow(2);
  assert.deepEqual(news(), [], "the peer has not heard that it was over");
});
