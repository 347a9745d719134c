/** Handled count of one ended stream. */
interface StaleCount {
  readonly account: string;
  readonly h: number;
  readonly endsMs: number;
}

/**
 * Handled counts of streams that can no longer be resumed, which `<failed/>` reports (XEP-0198 §5).
 * Bounded in time and number; the oldest goes first.
 */
export class StaleCounts {
  readonly #lifetimeMs: number;
  readonly #maxEntries: number;
  readonly #counts = new Map<string, StaleCount>();

  constructor(
    bounds: {
      /** Milliseconds for which a count is remembered; 0 remembers nothing. */
      readonly lifetimeMs: number;
      readonly maxEntries: number;
    },
  ) {
    this.#lifetimeMs = bounds.lifetimeMs;
    this.#maxEntries = bounds.maxEntries;
  }

  get size(): number {
    return this.#counts.size;
  }

  /** Remembers that `h` stanzas were handled on the stream `id` of `account`. */
  add(id: string, account: string, end: { readonly h: number; readonly nowMs: number }): void {
    if (this.#lifetimeMs === 0) return;
    this.#counts.set(id, { account, h: end.h, endsMs: end.nowMs + this.#lifetimeMs });
    for (const [oldest, { endsMs }] of this.#counts) {
      if (this.#counts.size <= this.#maxEntries && endsMs > end.nowMs) return;
      this.#counts.delete(oldest);
    }
  }

  /** Returns the count, if the stream belonged to `account`. */
  get(id: string, account: string, nowMs: number): number | undefined {
    const count = this.#counts.get(id);
    return count === undefined || count.account !== account || count.endsMs <= nowMs
      ? undefined
      : count.h;
  }
}
