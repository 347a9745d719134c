import assert from "node:assert/strict";
import { ManualClock } from "./manual_clock.ts";
import type { PacedFor } from "./paced_work.ts";
import { PacedWork } from "./paced_work.ts";

/** Paced work in turns that the test makes, of pieces that take a millisecond each. */
function setUp({ sliceMs = 2, maxPauseMs = 20, lateSliceMs = 2 } = {}) {
  const clock = new ManualClock();
  const turns: (() => void)[] = [];
  const done: number[] = [];
  const paced = new PacedWork({
    sliceMs,
    maxTurnMs: 3,
    maxPauseMs,
    lateSliceMs,
    nowMs: () => clock.monotonicMs(),
    nextTurn: (callback) => turns.push(callback),
    after: (delayMs, callback) => clock.after(delayMs, callback),
  });
  return {
    paced,
    done,
    clock,
    add: (piece: number, kind?: PacedFor) =>
      paced.run(() => {
        clock.advance(1);
        done.push(piece);
        return piece;
      }, kind),
    /** Adds a piece that takes no time, and waits until the returned function is called. */
    begin: (piece: number) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      void paced.run(() => {
        done.push(piece);
        return promise;
      });
      return resolve;
    },
    /** The loop does other things for so long, and begins the next turn. */
    nextTurn: (otherMs = 0) => {
      clock.advance(otherMs);
      turns.shift()?.();
    },
  };
}

Deno.test("PacedWork.run() works for one slice in each turn, in the order of the pieces", async () => {
  const { paced, done, add, nextTurn } = setUp();
  const all = Promise.all([1, 2, 3, 4, 5].map((piece) => add(piece)));
  assert.deepEqual(done, [1, 2]);
  assert.equal(paced.waiting(), 3);
  nextTurn();
  assert.deepEqual(done, [1, 2, 3, 4]);
  void add(6);
  assert.deepEqual(done, [1, 2, 3, 4], "this turn has no time left");
  nextTurn();
  assert.deepEqual(done, [1, 2, 3, 4, 5, 6]);
  assert.equal(paced.waiting(), 0);
  assert.deepEqual(await all, [1, 2, 3, 4, 5]);
});

Deno.test("PacedWork.run() goes on after a piece that throws, and tells its caller", async () => {
  const { paced, add } = setUp();
  const failure = new Error("no");
  await assert.rejects(
    paced.run(() => {
      throw failure;
    }),
    failure,
  );
  assert.equal(await add(1), 1);
});

Deno.test("PacedWork.run() takes a piece from within another one", async () => {
  const { paced, done, add } = setUp();
  const inner = paced.run(() => {
    const last = add(2);
    assert.deepEqual(done, []);
    return last;
  });
  assert.equal(await inner, 2);
});

Deno.test("PacedWork waits while turns are long, but not for ever", () => {
  const { done, add, nextTurn } = setUp({ sliceMs: 1 });
  for (const piece of [1, 2, 3, 4, 5, 6, 7]) void add(piece);
  nextTurn(3);
  assert.deepEqual(done, [1, 2], "a turn at the bound");
  nextTurn(4);
  nextTurn(15);
  assert.deepEqual(done, [1, 2], "turns over the bound");
  nextTurn(4);
  assert.deepEqual(done, [1, 2, 3, 4, 5], "their share of 23 ms without work");
  nextTurn(4);
  assert.deepEqual(done, [1, 2, 3, 4, 5]);
  nextTurn(1);
  assert.deepEqual(done, [1, 2, 3, 4, 5, 6], "a short turn again");
  nextTurn(1);
  assert.deepEqual(done, [1, 2, 3, 4, 5, 6, 7]);
});

Deno.test("PacedWork does more in late turns the longer pieces wait, up to a bound", () => {
  const { clock, done, add, nextTurn } = setUp({ sliceMs: 1 });
  for (let piece = 0; piece < 100; piece++) void add(piece);
  const late = () => {
    nextTurn(4);
    clock.advance(20);
    const before = done.length;
    nextTurn(4);
    return done.length - before;
  };
  assert.equal(late(), 3);
  clock.advance(270);
  assert.equal(late(), 6, "the oldest piece has waited for about 300 ms");
  clock.advance(1_000);
  assert.deepEqual([late(), late()], [10, 10]);
});

Deno.test("PacedWork does little in each of many long turns rather than much in a few", () => {
  const { clock, done, add, nextTurn } = setUp({ sliceMs: 1 });
  for (let piece = 0; piece < 100; piece++) void add(piece);
  const inTurns = (count: number) =>
    Array.from({ length: count }, () => {
      const before = done.length;
      nextTurn(4);
      return done.length - before;
    });
  inTurns(1);
  clock.advance(440);
  inTurns(2);
  assert.deepEqual(inTurns(8), [3, 0, 3, 0, 3, 0, 3, 0], "a third of 8 ms, as it waits for 450 ms");
  clock.advance(600);
  inTurns(2);
  assert.deepEqual(inTurns(4), [2, 2, 2, 2], "half of the 4 ms of each, which is the most");
});

Deno.test("PacedWork.hurry() makes no pauses, and begins all asynchronous pieces", () => {
  const { paced, done, clock, add, begin, nextTurn } = setUp({ sliceMs: 1 });
  for (let piece = 0; piece < 60; piece++) void add(piece);
  nextTurn(4);
  for (let piece = 60; piece < 90; piece++) begin(piece);
  assert.deepEqual(done, [0], "the turn was long");
  paced.hurry();
  assert.equal(done.length, 51, "a large slice, that leaves the loop some time");
  nextTurn(50);
  assert.deepEqual([paced.waiting(), paced.underWay], [0, 30]);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("PacedWork.hurry() goes on when all places are taken", () => {
  const { paced, clock, done, begin } = setUp();
  for (let piece = 0; piece < 20; piece++) begin(piece);
  assert.equal(done.length, 2);
  paced.hurry();
  assert.deepEqual([done.length, paced.waiting()], [20, 0]);
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("PacedWork does a piece at once that comes long after a long turn", () => {
  const { clock, done, add, nextTurn } = setUp();
  void add(1);
  nextTurn(50);
  clock.advance(20);
  void add(2);
  assert.deepEqual(done, [1, 2]);
});

Deno.test("PacedWork begins a bounded number of asynchronous pieces, and the next as each ends", async () => {
  const { paced, done, begin } = setUp();
  const ends = Array.from({ length: 12 }, (_, piece) => begin(piece));
  assert.deepEqual([done.length, paced.underWay, paced.waiting()], [2, 2, 10]);
  ends[0]!();
  await settled();
  assert.deepEqual([done.length, paced.underWay], [3, 2]);
  ends[1]!();
  await settled();
  assert.deepEqual([done.length, paced.underWay], [4, 2]);
  for (const end of ends) end();
  await settled();
  assert.deepEqual([paced.underWay, paced.waiting()], [0, 0]);
});

Deno.test("PacedWork no longer counts a piece that waits long, so that a dead database holds up nobody", () => {
  const { clock, paced, done, begin } = setUp();
  for (let piece = 0; piece < 100; piece++) begin(piece);
  assert.equal(done.length, 2);
  clock.advance(49);
  assert.equal(done.length, 2);
  clock.advance(1);
  assert.equal(done.length, 2 + 4, "more at once, as the loop has time");
  clock.advance(50);
  assert.equal(done.length, 2 + 4 + 8);
  for (const _ of [1, 2, 3, 4]) clock.advance(50);
  assert.equal(paced.waiting(), 0);
});

Deno.test("PacedWork has more pieces under way after short turns, and fewer after long ones", () => {
  const { clock, paced, begin, nextTurn } = setUp();
  for (let piece = 0; piece < 500; piece++) begin(piece);
  assert.equal(paced.underWay, 2);
  clock.advance(50);
  assert.equal(paced.underWay, 4);
  clock.advance(50);
  assert.equal(paced.underWay, 8);
  nextTurn(10);
  clock.advance(50);
  assert.equal(paced.underWay, 4);
  for (const _ of [1, 2, 3]) {
    nextTurn(10);
    clock.advance(50);
  }
  assert.equal(paced.underWay, 2, "never fewer");
});

Deno.test("PacedWork does four pieces for sessions before each one for a stranger", () => {
  const { done, add, nextTurn } = setUp({ sliceMs: 1 });
  void add(0);
  for (const piece of [-1, -2, -3]) void add(piece, "stranger");
  for (const piece of [1, 2, 3, 4, 5, 6]) void add(piece);
  for (let turn = 0; turn < 9; turn++) nextTurn();
  assert.deepEqual(done, [0, 1, 2, 3, -1, 4, 5, 6, -2, -3]);
});

Deno.test("PacedWork does half of its pieces for strangers who have waited long", () => {
  const { done, add, clock, nextTurn } = setUp({ sliceMs: 4 });
  void add(0);
  for (let piece = 1; piece <= 12; piece++) void add(piece);
  for (const piece of [-1, -2, -3, -4]) void add(piece, "stranger");
  assert.deepEqual(done, [0, 1, 2, 3]);
  clock.advance(1_000);
  nextTurn();
  assert.deepEqual(done.slice(4), [-1, 4, -2, 5, -3, 6, -4, 7, 8, 9]);
});

Deno.test("PacedWork does the steps of all strangers long before their logins time out", async () => {
  const bounds = { sliceMs: 0.3, maxPauseMs: 10, lateSliceMs: 0.5 }; // those of a node
  const { paced, add, clock, nextTurn } = setUp(bounds);
  let left = 1_000; // as many as may connect at once
  for (let piece = 0; piece < 1_000; piece++) void add(piece, "stranger").then(() => left--);
  while (left > 0 && clock.monotonicMs() < 60_000) {
    while (paced.waiting("session") < 1_000) void add(0);
    nextTurn(4); // each turn is too long
    await settled();
  }
  const tookMs = clock.monotonicMs();
  assert.ok(tookMs < 10_000, `${tookMs} ms`);
});

Deno.test("PacedWork does them in time although each waits for a slow database", async () => {
  const bounds = { sliceMs: 0.3, maxPauseMs: 10, lateSliceMs: 0.5 }; // those of a node
  const { paced, clock, nextTurn } = setUp(bounds);
  const piece = () => new Promise<void>((resolve) => void clock.after(200, resolve));
  let left = 1_000; // as many as may connect at once
  for (let i = 0; i < 1_000; i++) void paced.run(piece, "stranger").then(() => left--);
  while (left > 0 && clock.monotonicMs() < 60_000) {
    while (paced.waiting("session") < 1_000) void paced.run(piece);
    nextTurn(4); // each turn is too long
    await settled();
  }
  const tookMs = clock.monotonicMs();
  assert.ok(tookMs < 10_000, `${tookMs} ms`);
});

Deno.test("PacedWork lets the event loop read between two slices", async () => {
  const paced = new PacedWork({ sliceMs: 0.1 });
  const order: string[] = [];
  const busy = (name: string) => () => {
    const endMs = performance.now() + 1;
    while (performance.now() < endMs);
    order.push(name);
  };
  const pieces = [paced.run(busy("first")), paced.run(busy("second")), paced.run(busy("third"))];
  assert.deepEqual(order, ["first"]);
  assert.equal(paced.waiting(), 2);
  await Promise.all(pieces);
  assert.deepEqual(order, ["first", "second", "third"]);
});

/** Lets promises settle. */
async function settled(): Promise<void> {
  for (let i = 0; i < 5; i++) await undefined;
}

Deno.test("PacedWork.task() does its pieces before what came for sessions since it began", async () => {
  const { paced, clock, done, add, nextTurn } = setUp();
  for (const piece of [1, 2, 3]) void add(piece);
  clock.advance(1);
  const task = paced.task();
  clock.advance(1);
  for (const piece of [4, 5, 6, 7, 8, 9]) void add(piece);
  const all = (async () => {
    for (const piece of [101, 102, 103]) await task.run(() => void done.push(piece));
  })();
  assert.equal(paced.waiting("session"), 8);
  assert.equal(paced.waiting("stranger"), 0);
  for (let turn = 0; turn < 3; turn++) {
    nextTurn();
    await new Promise((resolve) => setTimeout(resolve));
  }
  // A task has one piece in a slice: the next one comes when its promise has settled.
  assert.deepEqual(done.filter((piece) => piece > 100), [101, 102, 103]);
  assert.deepEqual(done.slice(0, 4), [1, 2, 3, 101]);
  assert.ok(!done.includes(9), `${done}`);
  await all;
});

Deno.test("PacedWork gives single pieces a turn while older tasks have ever more to do", () => {
  const { paced, clock, done, add, nextTurn } = setUp();
  const tasks = Array.from({ length: 20 }, () => paced.task());
  clock.advance(1);
  for (const piece of [1, 2]) void add(piece); // this turn has no time left
  for (const task of tasks) {
    void task.run(() => {
      clock.advance(1);
      done.push(100);
    });
  }
  void add(3);
  for (let turn = 0; turn < 3; turn++) nextTurn();
  assert.deepEqual(done, [1, 2, 100, 100, 100, 100, 3, 100]);
});

Deno.test("PacedWork.task() keeps the order of tasks for their pieces", () => {
  const { paced, clock, done, add, nextTurn } = setUp();
  const older = paced.task();
  clock.advance(1);
  const newer = paced.task();
  for (const piece of [1, 2]) void add(piece); // this turn has no time left
  for (const [task, piece] of [[newer, 201], [older, 101], [newer, 202], [older, 102]] as const) {
    void task.run(() => {
      clock.advance(1);
      done.push(piece);
    });
  }
  for (let turn = 0; turn < 2; turn++) nextTurn();
  assert.deepEqual(done, [1, 2, 101, 102, 201, 202]);
});
