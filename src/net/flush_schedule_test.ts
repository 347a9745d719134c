import assert from "node:assert/strict";
import { setImmediate } from "node:timers";
import { Flushing, LATE_FLUSH_MS } from "./flush_schedule.ts";

/** A target that notes the number of the event-loop turn of each of its flushes. */
class Target {
  readonly flushing = new Flushing(this);
  readonly flushes: number[] = [];
  readonly #turns: Turns;
  readonly #flushMs: number;
  #told: (() => void) | undefined;

  constructor(turns: Turns, flushMs = 0) {
    this.#turns = turns;
    this.#flushMs = flushMs;
  }

  flush(): void {
    for (const untilMs = performance.now() + this.#flushMs; performance.now() < untilMs;);
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
  const target = new Target(turns);
  target.flushing.late();
  await nextTurn();
  assert.equal(target.flushes.length, 1, "nothing came before, so nothing is waited for");
  const sinceMs = performance.now();
  for (let turn = 0; turn < 10; turn++) {
    target.flushing.late();
    assert.ok(target.flushing.isLate);
    await nextTurn();
  }
  await target.flushed();
  // The timer of the runtime may fire a fraction of a millisecond early.
  assert.ok(performance.now() - sinceMs >= LATE_FLUSH_MS - 2);
  await nextTurn();
  assert.equal(target.flushes.length, 2);
  assert.ok(!target.flushing.isLate);
});

Deno.test("Flushing.soon() takes along what waits, and leaves no timer", async () => {
  using turns = new Turns();
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
  const targets = Array.from({ length: 10 }, () => new Target(turns, 2));
  for (const { flushing } of targets) flushing.late();
  await nextTurn();
  for (const { flushing } of targets) flushing.late();
  await Promise.all(targets.map((target) => target.flushed()));
  const turnOf = targets.map(({ flushes }) => flushes[1]!);
  assert.deepEqual(turnOf, turnOf.toSorted((a, b) => a - b));
  assert.equal(new Set(turnOf).size, targets.length);
});
