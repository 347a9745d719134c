import assert from "node:assert/strict";
import fc from "fast-check";
import { LaneEntries } from "./lane_entries.ts";
import { LaneEntry } from "./lane_entry.ts";
import { Lane } from "./lane.ts";
import { SenderBindings } from "./sender_bindings.ts";

const BINDING = new SenderBindings({ maxBindings: 1, idleTicks: 1 }).bind(
  "alice@example.com/phone",
  new Lane(1, {
    laneMaxBytes: 1,
    laneMaxItems: 1,
    laneHighWater: 1,
    laneLowWater: 1,
    maxFrameBytes: 1,
  }, {
    events: { laneHasWork() {}, laneLevelChanged() {}, laneSlows: () => () => {} },
  }),
);
const SLAB = { bytes: new Uint8Array(0), used: 0, liveFrames: 0 };

function anEntry(): LaneEntry {
  return new LaneEntry(SLAB, 0, 0, BINDING);
}

/** Adds entries for the numbers [`first`, `end`); returns them by number. */
function fill(entries: LaneEntries, first: number, end: number): Map<number, LaneEntry> {
  const added = new Map<number, LaneEntry>();
  for (let number = first; number < end; number++) {
    const entry = anEntry();
    entries.add(number, entry);
    added.set(number, entry);
  }
  return added;
}

function assertSame(entries: LaneEntries, expected: Map<number, LaneEntry>): void {
  assert.equal(entries.size, expected.size);
  assert.equal(entries.lowest, expected.keys().next().value);
  const [seen, wanted] = [[...entries], [...expected]];
  assert.equal(seen.length, wanted.length);
  wanted.forEach(([number, entry], i) => {
    assert.equal(seen[i]![0], number);
    assert.ok(seen[i]![1] === entry && entries.get(number) === entry, `the entry of ${number}`);
  });
}

Deno.test("LaneEntries holds what a map would, whatever is removed", () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ add: fc.integer({ min: 1, max: 200 }) }) },
    { weight: 4, arbitrary: fc.record({ takeOldest: fc.integer({ min: 1, max: 200 }) }) },
    { weight: 2, arbitrary: fc.record({ takeShare: fc.integer({ min: 2, max: 50 }) }) },
    { weight: 1, arbitrary: fc.constant({ clear: true }) },
  );
  fc.assert(fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
    const entries = new LaneEntries();
    const expected = new Map<number, LaneEntry>();
    let next = 1;
    const take = (number: number) => {
      assert.ok(entries.take(number) === expected.get(number), `take(${number})`);
      expected.delete(number);
      assert.equal(entries.take(number), undefined);
    };
    for (const each of steps) {
      if ("add" in each) {
        for (const added of fill(entries, next, next + each.add)) expected.set(...added);
        next += each.add;
      } else if ("takeOldest" in each) {
        for (const number of [...expected.keys()].slice(0, each.takeOldest)) take(number);
      } else if ("takeShare" in each) {
        // All but every so many: the rest straggles.
        for (const number of [...expected.keys()]) if (number % each.takeShare > 0) take(number);
      } else {
        entries.clear();
        expected.clear();
      }
      assert.equal(entries.get(next), undefined);
      assertSame(entries, expected);
    }
  }));
});

Deno.test("LaneEntries keeps one old entry while a million others come and go", () => {
  const entries = new LaneEntries();
  const [old] = fill(entries, 1, 2).values();
  for (let number = 2; number < 1_000_000; number++) {
    entries.add(number, old!);
    assert.ok(entries.take(number) === old);
  }
  assert.equal(entries.lowest, 1);
  assert.ok(entries.take(1) === old);
  assert.equal(entries.lowest, undefined);
});

Deno.test("LaneEntries fills and empties a large ring", () => {
  const entries = new LaneEntries();
  const expected = fill(entries, 1, 100_000);
  for (let number = 1; number < 99_990; number++) {
    assert.ok(entries.take(number) === expected.get(number), `take(${number})`);
    expected.delete(number);
  }
  assertSame(entries, expected);
  for (const added of fill(entries, 100_000, 100_100)) expected.set(...added);
  assertSame(entries, expected);
});

Deno.test("LaneEntries begins anew at any number once it is empty", () => {
  const entries = new LaneEntries();
  fill(entries, 500, 600);
  entries.clear();
  assertSame(entries, fill(entries, 7, 9));
  entries.take(7);
  entries.take(8);
  assertSame(entries, fill(entries, 2 ** 40, 2 ** 40 + 200));
});

Deno.test("LaneEntries.add() rejects a number that leaves a gap", () => {
  const entries = new LaneEntries();
  fill(entries, 1, 3);
  assert.throws(() => entries.add(4, anEntry()), RangeError);
});
