import type { Clock } from "../base/mod.ts";

/**
 * Time budget of a whole stop. Each step takes at most a part of the time left. A slow step leaves
 * some time to the steps after it, and a quick step leaves them all of it.
 */
export class StopBudget {
  readonly #clock: Clock;
  readonly #deadlineMs: number;

  constructor(totalMs: number, clock: Clock) {
    this.#clock = clock;
    this.#deadlineMs = clock.monotonicMs() + totalMs;
  }

  /** Milliseconds left. */
  get leftMs(): number {
    return Math.max(0, this.#deadlineMs - this.#clock.monotonicMs());
  }

  /** Returns half of the time left, and never more than `mostMs`. */
  halfMs(mostMs = Infinity): number {
    return Math.min(this.leftMs / 2, mostMs);
  }

  /** Waits for `step`, but no longer than `withinMs`. A late step continues in the background. */
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
