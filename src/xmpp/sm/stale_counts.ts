/** What was handled of one stream that is over. */
interface StaleCount {
  readonly account: string;
  readonly h: number;
  readonly endsMs: number;
}

/**
 * How many stanzas were handled on streams that can no longer be resumed, so that `<failed/>` can tell
 * (XEP-0198 §5). Bounded in time and number; the oldest goes first.
 */
export class StaleCounts {
  readonly #lifetimeMs: number;
  readonly #maxEntries: number;
  readonly #counts = new Map<string, StaleCount>();

  constructor(
    bounds: {
      /** 0 remembers nothing. */
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

  /** Remembers that of the stream `id` of `account` `h` stanzas were handled. */
  add(id: string, account: string, end: { readonly h: number; readonly nowMs: number }): void {
    if (this.#lifetimeMs === 0) return;
    this.#counts.set(id, { account, h: end.h, endsMs: end.nowMs + this.#lifetimeMs });
    for (const [oldest, { endsMs }] of this.#counts) {
      if (this.#counts.size <= this.#maxEntries && endsMs > end.nowMs) return;
      this.#counts.delete(oldest);
    }
  }

  /** The count, for the account whose stream it was. */
  get(id: string, account: string, nowMs: number): number | undefined {
    const count = this.#counts.get(id);
    return count === undefined || count.account !== account || count.endsMs <= nowMs
      ? undefined
      : count.h;
  }
}
