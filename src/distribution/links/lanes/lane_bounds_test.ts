import assert from "node:assert/strict";
import fc from "fast-check";
import { FairShares } from "../../../base/mod.ts";
import { Envelope } from "../../mod.ts";
import { testEnvelope, TestSettler } from "../testing/kit.ts";
import { FRAME_SLAB_BYTES } from "./frame_slabs.ts";
import { Lane } from "./lane.ts";
import { ack, bindingOf, flush, LIMITS, newLane, NO_EVENTS, PEER } from "./testing/lanes.ts";

Deno.test("Lane.append() refuses at its bound of items, and goes on when some are settled", () => {
  const lane = newLane({ laneMaxItems: 3 });
  const settler = new TestSettler();
  lane.resume(PEER, 0);
  const append = (i: number) => lane.append(testEnvelope(i, { settler }), bindingOf(lane));
  assert.deepEqual([1, 2, 3, 4].map(append), [true, true, true, false]);
  flush(lane);
  lane.acknowledge(ack(3, 1));
  assert.deepEqual([5, 6].map(append), [true, false]);
  assert.deepEqual(settler.settled, [1], "a refused stanza was not taken");
});

Deno.test("Lane.append() keeps an eighth of its items for errors that answer, and no more", () => {
  const lane = newLane({ laneMaxItems: 17 });
  const binding = bindingOf(lane);
  const append = (isOwed: boolean) => lane.append(testEnvelope(1, { isOwed }), binding);
  const count = (isOwed: boolean) => {
    let taken = 0;
    while (append(isOwed)) taken++;
    return taken;
  };
  lane.resume(PEER, 0);
  assert.deepEqual([count(false), count(true), count(false)], [15, 2, 0]);
  flush(lane);
  lane.acknowledge(ack(17, 2));
  assert.deepEqual([append(false), append(true), append(true), append(true)], [
    false,
    true,
    true,
    false,
  ], "all stanzas count, errors too");
});

Deno.test("Lane.append() keeps an eighth of its bytes for errors that answer, and no more", () => {
  for (const padding of [10, 5000, 30_000]) {
    const lane = newLane({ laneMaxBytes: 32 * FRAME_SLAB_BYTES, laneMaxItems: 100_000 });
    const binding = bindingOf(lane);
    while (lane.append(testEnvelope(1, { padding }), binding));
    assert.ok(lane.allocatedBytes <= 28 * FRAME_SLAB_BYTES);
    assert.ok(lane.allocatedBytes > 27 * FRAME_SLAB_BYTES - 65_536, "the rest is used");
    while (lane.append(testEnvelope(1, { isOwed: true }), binding));
    assert.ok(lane.allocatedBytes <= 32 * FRAME_SLAB_BYTES);
    assert.ok(lane.allocatedBytes > 31 * FRAME_SLAB_BYTES - 65_536);
    assert.ok(!lane.append(testEnvelope(1, { padding }), binding));
  }
});

Deno.test("Lane.append() takes anything that fits into an empty lane", () => {
  const laneMaxBytes = 131_072;
  const large = () => {
    const { stanza, ...rest } = testEnvelope(1, { padding: 120_000 });
    return new Envelope({ ...rest, stanza });
  };
  const lane = newLane({ laneMaxBytes });
  assert.ok(lane.append(large(), bindingOf(lane)));
  assert.ok(!lane.append(large(), bindingOf(lane)));
});

Deno.test("Lane.append() refuses at its bound of allocated bytes, with small and with large frames", () => {
  for (const padding of [10, 5000, 30_000]) {
    const lane = newLane({ laneMaxBytes: 4 * FRAME_SLAB_BYTES, laneMaxItems: 100_000 });
    const binding = bindingOf(lane);
    let taken = 0;
    while (lane.append(testEnvelope(taken + 1, { padding }), binding)) taken++;
    assert.ok(taken > 2, `${taken} of ${padding}`);
    assert.ok(lane.allocatedBytes <= 4 * FRAME_SLAB_BYTES);
    assert.ok(lane.allocatedBytes >= 2 * FRAME_SLAB_BYTES, "the bound is used");
    lane.resume(PEER, 0);
    flush(lane);
    lane.acknowledge(ack(taken, taken));
    assert.ok(lane.allocatedBytes <= FRAME_SLAB_BYTES);
    assert.ok(lane.append(testEnvelope(1, { padding }), binding));
  }
});

Deno.test("Lane keeps within its bound when a few stanzas stay long among many that are settled", () => {
  const lane = newLane({ laneMaxBytes: 64 * FRAME_SLAB_BYTES, laneMaxItems: 100_000 });
  const binding = bindingOf(lane);
  const settler = new TestSettler();
  lane.resume(PEER, 0);
  let number = 0;
  // Each round leaves one stanza behind; slabs kept for those alone would use up the bound.
  for (let round = 0; round < 200; round++) {
    const first = number + 1;
    for (let i = 0; i < 300; i++) {
      assert.ok(lane.append(testEnvelope(++number, { padding: 200, settler }), binding));
    }
    flush(lane);
    assert.ok(lane.acknowledge(ack(number, 0, [[first + 1, 299]])));
  }
  assert.equal(lane.items, 200);
  assert.ok(lane.allocatedBytes < 12 * FRAME_SLAB_BYTES, `${lane.allocatedBytes}`);
  const kept = lane.takeAll().map(({ entry }) => entry.toEnvelope(true).sequence);
  assert.deepEqual(kept, Array.from({ length: 200 }, (_, round) => round * 300 + 1));
});

Deno.test("Lane.isOver rises above the high-water mark and falls below the low one", () => {
  const changes: boolean[] = [];
  const lane = new Lane(1, { ...LIMITS, laneMaxItems: 100 }, {
    events: { ...NO_EVENTS, laneLevelChanged: (changed) => changes.push(changed.isOver) },
  });
  lane.resume(PEER, 0);
  for (let i = 1; i <= 50; i++) lane.append(testEnvelope(i), bindingOf(lane));
  assert.equal(lane.isOver, false);
  lane.append(testEnvelope(51), bindingOf(lane));
  assert.equal(lane.isOver, true);
  flush(lane);
  lane.acknowledge(ack(51, 25));
  assert.equal(lane.isOver, true);
  lane.acknowledge(ack(51, 26));
  assert.equal(lane.isOver, false);
  assert.deepEqual(changes, [true, false]);
});

Deno.test("Lane counts its stanzas for the budget, and none once it is empty", () => {
  const steps = fc.array(fc.constantFrom("append", "ack", "restart", "take", "adopt"), {
    maxLength: 200,
  });
  fc.assert(fc.property(steps, (kinds) => {
    const budget = new FairShares({ maxBytes: 100_000_000 });
    const deps = { events: NO_EVENTS, budget };
    const lanes = [1, 2].map((id) => new Lane(id, LIMITS, deps)) as [Lane, Lane];
    const bindings = lanes.map((lane) => bindingOf(lane, budget));
    let [peer, sequence] = [PEER, 0];
    for (const lane of lanes) lane.resume(peer, 0);
    for (const kind of kinds) {
      const lane = lanes[sequence % 2]!;
      if (kind === "append") {
        sequence++;
        lane.append(testEnvelope(sequence), bindings[lane.id - 1]!);
      } else if (kind === "ack") {
        flush(lane);
        lane.acknowledge(ack(lane.sent, lane.sent - 1));
      } else if (kind === "restart") {
        if (lane.resume(++peer, lane.lastGone) === "restarted") lane.takeForRestart();
      } else if (kind === "take") lane.takeAll();
      else {
        for (const { entry, wasSent } of lanes[0].takeAll()) lanes[1].adopt(entry, wasSent);
      }
      const held = lanes.filter(({ items }) => items > 0);
      const heldBytes = held.reduce((sum, each) => sum + each.allocatedBytes, 0);
      assert.ok(Math.abs(budget.bytes - heldBytes) < 65_536 * held.length + 1);
    }
    for (const each of lanes) each.takeAll();
    assert.deepEqual([budget.bytes, budget.holders], [0, 0]);
    assert.deepEqual(bindings.map(({ tab }) => tab.bytes), [0, 0]);
  }));
});

Deno.test("Lane.append() refuses past a sender's share of the budget, except for errors that answer", () => {
  const budget = new FairShares({ maxBytes: 5_000_000 });
  const limits = { ...LIMITS, laneMaxBytes: 1 << 30, laneMaxItems: 1_000_000 };
  const lane = new Lane(1, limits, { events: NO_EVENTS, budget });
  const eve = bindingOf(lane, budget, "eve@example.com");
  let taken = 0;
  while (lane.append(testEnvelope(++taken), eve));
  assert.ok(budget.bytes > 900_000 && budget.bytes < 1_200_000, `${budget.bytes}`);
  assert.ok(lane.append(new Envelope({ ...testEnvelope(taken), entry: "owed" }), eve));
  const alice = bindingOf(lane, budget, "alice@example.com");
  for (let n = 0; n < 100; n++) assert.ok(lane.append(testEnvelope(n), alice));
  lane.takeAll();
  assert.ok(lane.append(testEnvelope(1), eve));
});
