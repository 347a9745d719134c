import type { Clock } from "../../base/mod.ts";

/** Microseconds by which an epoch may be ahead of our wall clock and still move our own epochs. */
export const MAX_EPOCH_AHEAD_US = 60_000_000;

/**
 * How far an epoch that another datacenter tells may be ahead of our clock; one that is further ahead
 * is taken for one at this bound. Twice what clocks are corrected by at most.
 */
export const MAX_TOLD_AHEAD_US = 2 * 86_400_000_000;

/** Epochs above this are garbage: adding to them would leave the safe integers. None is drawn. */
export const MAX_EPOCH = Number.MAX_SAFE_INTEGER - 2 ** 32;

/**
 * A hybrid logical clock: epochs are wall-clock microseconds that never repeat or go back in one
 * process, and exceed what it has seen (docs/promises.md, "The session table").
 */
export class HybridClock {
  readonly #clock: Clock;
  #lastUs = 0;
  #correctionUs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Takes our wall clock to be wrong by that much: most of the mesh says so. Epochs may step back by
   * it once; what an account is known to have is exceeded nevertheless.
   */
  correct(correctionUs: number): void {
    this.#correctionUs = correctionUs;
    this.#lastUs = Math.min(this.#lastUs, this.#wallUs);
  }

  get #wallUs(): number {
    return Math.max(1, Math.round(this.#clock.wallUs() + this.#correctionUs));
  }

  /**
   * An epoch above `knownUs` and all before. An epoch more than 60 s ahead is exceeded for this one
   * call only: a clock gone wrong elsewhere must not drag ours, and all of its logins, along.
   */
  next(knownUs = 0): number {
    const wallUs = this.#wallUs;
    const epoch = Math.min(MAX_EPOCH, Math.max(wallUs, this.#lastUs + 1, knownUs + 1));
    if (epoch <= wallUs + MAX_EPOCH_AHEAD_US) this.#lastUs = epoch;
    else this.#lastUs = Math.min(MAX_EPOCH, Math.max(wallUs, this.#lastUs + 1));
    return epoch;
  }

  /** `epoch` as another datacenter tells it, no further ahead than `MAX_TOLD_AHEAD_US`. */
  bounded(epoch: number): number {
    return Math.min(epoch, Math.max(1, this.#wallUs + MAX_TOLD_AHEAD_US), MAX_EPOCH);
  }
}
