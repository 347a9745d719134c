import type { CancelTimer, Clock } from "../../base/mod.ts";
import { backoffMs } from "../../base/mod.ts";
import type { Counter } from "../metrics.ts";

/**
 * Items of one request at most, as in OpenTelemetry's own libraries. A request costs as much as encoding
 * a hundred spans.
 */
const MAX_BATCH = 512;

const RETRY = { firstMs: 1_000, maxMs: 30_000 };

/** Fate of one batch. */
export type BatchOutcome =
  /** The collector has all but `rejected` of the items. */
  | { readonly kind: "taken"; readonly rejected: number }
  /** The collector will never take it. */
  | { readonly kind: "refused" }
  /** It can be sent again. */
  | { readonly kind: "away" };

/** Bounds and counters of a queue. */
export interface OtlpQueueOptions<T> {
  /** Items that wait at most, those under way included. */
  readonly maxItems: number;
  /** Milliseconds that an item waits for others. */
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly sent: Counter;
  readonly dropped: Counter;
  /** Sends a batch; must not throw. */
  readonly send: (batch: readonly T[]) => Promise<BatchOutcome>;
}

/**
 * Items on their way to the collector, in order and one batch at a time. While the collector is away
 * they wait, and the bound says how many; further ones are dropped and counted.
 */
export class OtlpQueue<T> {
  readonly #options: OtlpQueueOptions<T>;
  readonly #items: T[] = [];
  #sending: Promise<void> | undefined;
  #cancelTimer: CancelTimer | undefined;
  #failures = 0;
  #isClosed = false;

  constructor(options: OtlpQueueOptions<T>) {
    this.#options = options;
  }

  /** Items that wait, those under way included. */
  get size(): number {
    return this.#items.length;
  }

  /** Takes an item; drops it when the queue is full or closed. */
  add(item: T): void {
    if (this.#isClosed || this.#items.length >= this.#options.maxItems) {
      return this.#options.dropped.inc();
    }
    this.#items.push(item);
    if (this.#failures > 0) return; // the next attempt is planned
    const isEnough = this.#items.length >= Math.min(MAX_BATCH, this.#options.maxItems);
    if (isEnough) this.#begin();
    else this.#later(this.#options.intervalMs);
  }

  /** Makes one more attempt to send what waits, and drops what is left. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#failures = 0;
    this.#begin();
    await this.#sending;
    this.#cancelTimer?.();
    this.#options.dropped.inc(this.#items.splice(0).length);
  }

  #later(afterMs: number): void {
    this.#cancelTimer ??= this.#options.clock.after(afterMs, () => {
      this.#cancelTimer = undefined;
      this.#begin();
    });
  }

  #begin(): void {
    if (this.#sending !== undefined || this.#items.length === 0) return;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#sending = this.#sendAll().finally(() => {
      this.#sending = undefined;
      if (this.#items.length === 0 || this.#isClosed) return;
      if (this.#failures > 0) this.#later(backoffMs(this.#failures, RETRY));
      else this.#later(this.#options.intervalMs);
    });
  }

  /** Sends until nothing is left, or the collector is away. */
  async #sendAll(): Promise<void> {
    const { send, sent, dropped } = this.#options;
    while (this.#items.length > 0) {
      const batch = this.#items.slice(0, MAX_BATCH);
      const outcome = await send(batch);
      if (outcome.kind === "away") {
        this.#failures++;
        return;
      }
      this.#failures = 0;
      this.#items.splice(0, batch.length);
      const lost = outcome.kind === "refused"
        ? batch.length
        : Math.min(outcome.rejected, batch.length);
      sent.inc(batch.length - lost);
      dropped.inc(lost);
    }
  }
}
