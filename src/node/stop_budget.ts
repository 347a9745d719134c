import type { Clock } from "../base/mod.ts";

/**
 * The time that a stop may take in all. Each step takes a part of what is left at most, so that a slow
 * one leaves something to those behind it, and one that is done at once leaves them everything.
 */
export class StopBudget {
  readonly #clock: Clock;
  readonly #deadlineMs: number;

  constructor(totalMs: number, clock: Clock) {
    this.#clock = clock;
    this.#deadlineMs = clock.monotonicMs() + totalMs;
  }

  /** Milliseconds that are left. */
  get leftMs(): number {
    return Math.max(0, this.#deadlineMs - this.#clock.monotonicMs());
  }

  /** Half of what is left, and never more than `mostMs`. */
  halfMs(mostMs = Infinity): number {
    return Math.min(this.leftMs / 2, mostMs);
  }

  /** Waits for `step`, but no longer than `withinMs`: it then goes on by itself. */
  async wait(step: Promise<unknown>, withinMs = this.halfMs()): Promise<"done" | "late"> {
    const late = Promise.withResolvers<"late">();
    const cancel = this.#clock.after(withinMs, () => late.resolve("late"));
    try {
      return await Promise.race([step.then(() => "done" as const), late.promise]);
    } finally {
      cancel();
    }
  }
}
