import assert from "node:assert/strict";
import { setImmediate } from "node:timers";
import { Flushing, LATE_FLUSH_MS } from "./flush_schedule.ts";

/** A target that notes the number of the event-loop turn of each of its flushes. */
class Target {
  readonly flushing = new Flushing(this);
  readonly flushes: number[] = [];
  readonly #turns: Turns;
  readonly #passes: () => void;
  #told: (() => void) | undefined;

  /** @param passes called by each flush, for the time that it takes */
  constructor(turns: Turns, passes = () => {}) {
    this.#turns = turns;
    this.#passes = passes;
  }

  flush(): void {
    this.#passes();
    this.flushes.push(this.#turns.number);
    this.#told?.();
  }

  /** Waits for the next flush. */
  flushed(): Promise<void> {
    return new Promise((resolve) => this.#told = resolve);
  }
}

/** The turns of the event loop, counted while the test runs. */
class Turns implements Disposable {
  number = 0;
  #isOver = false;

  constructor() {
    const count = () => {
      this.number++;
      if (!this.#isOver) setImmediate(count);
    };
    setImmediate(count);
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
  }
}

/** A monotonic clock that stands still: a busy machine may stop a test for longer than bytes wait. */
class StoppedClock implements Disposable {
  readonly #now = performance.now;
  #nowMs = 1_000;

  constructor() {
    performance.now = () => this.#nowMs;
  }

  advance(ms: number): void {
    this.#nowMs += ms;
  }

  [Symbol.dispose](): void {
    performance.now = this.#now;
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

Deno.test("Flushing.soon() flushes once at the end of the turn", async () => {
  using turns = new Turns();
  const target = new Target(turns);
  target.flushing.soon();
  target.flushing.soon();
  assert.deepEqual(target.flushes, []);
  assert.ok(target.flushing.isSoon);
  await nextTurn();
  assert.equal(target.flushes.length, 1);
  assert.ok(!target.flushing.isSoon);
});

Deno.test("Flushing.late() flushes the first bytes at once and those after them together", async () => {
  using turns = new Turns();
  using clock = new StoppedClock();
  const target = new Target(turns);
  target.flushing.late();
  await nextTurn();
  assert.equal(target.flushes.length, 1, "nothing came before, so nothing is waited for");
  for (let turn = 0; turn < 10; turn++) {
    target.flushing.late();
    assert.ok(target.flushing.isLate);
    await nextTurn();
  }
  clock.advance(LATE_FLUSH_MS - 1);
  for (let turn = 0; turn < 10; turn++) await nextTurn();
  assert.equal(target.flushes.length, 1, "its time has not come");
  clock.advance(1);
  await target.flushed();
  await nextTurn();
  assert.equal(target.flushes.length, 2);
  assert.ok(!target.flushing.isLate);
});

Deno.test("Flushing.soon() takes along what waits, and leaves no timer", async () => {
  using turns = new Turns();
  using _clock = new StoppedClock();
  const target = new Target(turns);
  target.flushing.late();
  await nextTurn();
  target.flushing.late();
  target.flushing.soon();
  await nextTurn();
  assert.equal(target.flushes.length, 2);
  assert.ok(!target.flushing.isLate);
});

Deno.test("Flushing.cancel() leaves no timer and flushes nothing", async () => {
  using turns = new Turns();
  using _clock = new StoppedClock();
  const target = new Target(turns);
  target.flushing.late();
  await nextTurn();
  target.flushing.late();
  target.flushing.cancel();
  assert.ok(!target.flushing.isLate);
  await nextTurn();
  assert.equal(target.flushes.length, 1);
});

Deno.test("Flushing spreads late flushes that take long over turns, in the order in which they waited", async () => {
  using turns = new Turns();
  using clock = new StoppedClock();
  const targets = Array.from({ length: 10 }, () => new Target(turns, () => clock.advance(2)));
  for (const { flushing } of targets) flushing.late();
  await nextTurn();
  for (const { flushing } of targets) flushing.late();
  clock.advance(LATE_FLUSH_MS);
  await Promise.all(targets.map((target) => target.flushed()));
  const turnOf = targets.map(({ flushes }) => flushes[1]!);
  assert.deepEqual(turnOf, turnOf.toSorted((a, b) => a - b));
  assert.equal(new Set(turnOf).size, targets.length);
});
