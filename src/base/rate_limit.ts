import type { Clock } from "./clock.ts";

/**
 * The allowed frequency of something: `burst` times at once, and `perSec` times a second in the long
 * run.
 */
export interface Rate {
  /** Above 0. */
  readonly perSec: number;
  /** At least 1. */
  readonly burst: number;
}

/** Options of a rate limit. */
export interface RateLimitOptions extends Rate {
  /** Keys remembered at once; at least 1. @default 10000 */
  readonly maxKeys?: number;
}

/** Default number of keys that a rate limit remembers. */
export const DEFAULT_MAX_KEYS = 10_000;
/** Length at which a key is cut, because strangers choose keys. */
const MAX_KEY_LENGTH = 256;

/**
 * A token bucket for each key, such as an address or an account.
 *
 * The limit keeps one number for each bucket: the moment at which it is full again. A key whose bucket
 * is full is forgotten. Past `maxKeys` the least recently used key is forgotten too: a stranger with
 * very many keys wins a fresh bucket, but does not fill our memory.
 */
export class RateLimit {
  readonly #clock: Clock;
  readonly #intervalMs: number;
  readonly #burstMs: number;
  readonly #maxKeys: number;
  /** Monotonic time at which a key's bucket is full, by key; the most recently used key comes last. */
  readonly #fullAtMs = new Map<string, number>();

  /** @throws RangeError for a rate that lets nothing pass */
  constructor(options: RateLimitOptions, clock: Clock) {
    const { perSec, burst, maxKeys = DEFAULT_MAX_KEYS } = options;
    for (
      const [name, value, isRight] of [
        ["perSec", perSec, perSec > 0 && Number.isFinite(perSec)],
        ["burst", burst, Number.isSafeInteger(burst) && burst >= 1],
        ["maxKeys", maxKeys, Number.isSafeInteger(maxKeys) && maxKeys >= 1],
      ] as const
    ) {
      if (!isRight) throw new RangeError(`Cannot use rate limit ${name}: ${value} is out of range`);
    }
    this.#clock = clock;
    this.#intervalMs = 1000 / perSec;
    this.#burstMs = burst * this.#intervalMs;
    this.#maxKeys = maxKeys;
  }

  /** Keys whose bucket is not known to be full. */
  get keyCount(): number {
    return this.#fullAtMs.size;
  }

  /**
   * Takes `tokens`, at most `burst`, out of the key's bucket. Returns false, and takes nothing, when the
   * bucket holds fewer.
   */
  take(key: string, tokens = 1): boolean {
    const nowMs = this.#clock.monotonicMs();
    const fullAtMs = this.#after(key, nowMs, tokens);
    if (fullAtMs - nowMs > this.#burstMs) return false;
    this.#remember(key, fullAtMs, nowMs);
    return true;
  }

  /**
   * Takes one token out of the key's bucket, even when it is empty.
   * @returns milliseconds until the bucket is no longer overdrawn, 0 while it is not
   */
  charge(key: string): number {
    const nowMs = this.#clock.monotonicMs();
    const fullAtMs = this.#after(key, nowMs, 1);
    this.#remember(key, fullAtMs, nowMs);
    return Math.max(0, fullAtMs - nowMs - this.#burstMs);
  }

  /** Puts one taken token back. */
  giveBack(key: string): void {
    const name = key.slice(0, MAX_KEY_LENGTH);
    const fullAtMs = this.#fullAtMs.get(name);
    if (fullAtMs !== undefined) this.#fullAtMs.set(name, fullAtMs - this.#intervalMs);
  }

  #after(key: string, nowMs: number, tokens: number): number {
    return Math.max(this.#fullAtMs.get(key.slice(0, MAX_KEY_LENGTH)) ?? 0, nowMs) +
      tokens * this.#intervalMs;
  }

  #remember(key: string, fullAtMs: number, nowMs: number): void {
    const name = key.slice(0, MAX_KEY_LENGTH);
    this.#fullAtMs.delete(name);
    this.#fullAtMs.set(name, fullAtMs);
    if (this.#fullAtMs.size <= this.#maxKeys) return;
    let isOldest = true;
    for (const [each, eachFullAtMs] of this.#fullAtMs) {
      if (!isOldest && eachFullAtMs > nowMs) break;
      this.#fullAtMs.delete(each);
      isOldest = false;
    }
  }
}
