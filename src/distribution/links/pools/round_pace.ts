/**
 * The pace of rounds that come while stanzas wait for a destination: twice as long after each, so
 * that several come before the stanzas expire.
 */
export class RoundPace {
  readonly #firstMs: number;
  readonly #mostMs: number;
  #delayMs = 0;
  /** Monotonic milliseconds of the next round; undefined while none is planned. */
  #dueMs: number | undefined;

  constructor(options: { readonly rerouteFirstMs: number; readonly expireAfterMs: number }) {
    this.#firstMs = options.rerouteFirstMs;
    this.#mostMs = Math.max(options.rerouteFirstMs, options.expireAfterMs / 4);
  }

  /** True while a round is planned. */
  get isRunning(): boolean {
    return this.#dueMs !== undefined;
  }

  /** Returns true when a round is due, and plans the next one. The first call plans the first. */
  take(nowMs: number): boolean {
    const isDue = this.#dueMs !== undefined && nowMs >= this.#dueMs;
    if (this.#dueMs === undefined) this.#delayMs = this.#firstMs;
    else if (isDue) this.#delayMs = Math.min(2 * this.#delayMs, this.#mostMs);
    else return false;
    this.#dueMs = nowMs + this.#delayMs;
    return isDue;
  }

  /** Plans no round, until `take` begins anew. */
  reset(): void {
    this.#dueMs = undefined;
  }
}
