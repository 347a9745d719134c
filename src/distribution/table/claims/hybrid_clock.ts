import type { Clock } from "../../../base/mod.ts";

/** Microseconds by which an epoch may be ahead of our wall clock and still move our own epochs. */
export const MAX_EPOCH_AHEAD_US = 60_000_000;

/**
 * Microseconds by which another datacenter's epoch may be ahead of our clock; a later one counts as
 * one at this bound. Twice the largest clock correction.
 */
export const MAX_TOLD_AHEAD_US = 2 * 86_400_000_000;

/**
 * Highest epoch that is drawn. Adding to a higher one would leave the safe integers: it is garbage.
 */
export const MAX_EPOCH = Number.MAX_SAFE_INTEGER - 2 ** 32;

/**
 * A hybrid logical clock. Its epochs are wall-clock microseconds that never repeat or go back in
 * one process, and exceed all that it has seen (docs/promises.md, "The session table").
 */
export class HybridClock {
  readonly #clock: Clock;
  #lastUs = 0;
  #correctionUs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Corrects our wall clock by that much, as most of the mesh says it is wrong. Epochs may step
   * back by it once, but still exceed the known epochs of an account.
   */
  correct(correctionUs: number): void {
    this.#correctionUs = correctionUs;
    this.#lastUs = Math.min(this.#lastUs, this.#wallUs);
  }

  get #wallUs(): number {
    return Math.max(1, Math.round(this.#clock.wallUs() + this.#correctionUs));
  }

  /**
   * Returns an epoch above `knownUs` and all before. An epoch more than 60 s ahead is exceeded in
   * this one call only: a wrong clock elsewhere must not drag ours, and all of its logins, along.
   */
  next(knownUs = 0): number {
    const wallUs = this.#wallUs;
    const epoch = Math.min(MAX_EPOCH, Math.max(wallUs, this.#lastUs + 1, knownUs + 1));
    if (epoch <= wallUs + MAX_EPOCH_AHEAD_US) this.#lastUs = epoch;
    else this.#lastUs = Math.min(MAX_EPOCH, Math.max(wallUs, this.#lastUs + 1));
    return epoch;
  }

  /** Returns another datacenter's `epoch`, no further ahead than `MAX_TOLD_AHEAD_US`. */
  bounded(epoch: number): number {
    return Math.min(epoch, Math.max(1, this.#wallUs + MAX_TOLD_AHEAD_US), MAX_EPOCH);
  }
}
