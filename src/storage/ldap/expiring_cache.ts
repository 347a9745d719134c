import type { Clock } from "../../base/mod.ts";

/** Bounds of a cache. */
export interface CacheBounds {
  /** Values that are kept; the one that was asked for longest ago goes first. At least 1. */
  readonly maxValues: number;
  /** Milliseconds after which a value is loaded anew. */
  readonly lifetimeMs: number;
}

interface Kept<V> {
  readonly value: V;
  readonly untilMs: number;
}

/** Milliseconds for which an old value is kept on when no new one can be had. */
const RETRY_MS = 5_000;

/**
 * Values that are loaded at need and kept for a while. When a value cannot be loaded, the one that was
 * there before is served, however old it is.
 */
export class ExpiringCache<V> {
  readonly #bounds: CacheBounds;
  readonly #clock: Clock;
  readonly #kept = new Map<string, Kept<V>>();
  readonly #loading = new Map<string, Promise<V>>();

  constructor(bounds: CacheBounds, clock: Clock) {
    this.#bounds = bounds;
    this.#clock = clock;
  }

  /**
   * Returns the value of a key. Callers who ask at the same time share one load.
   *
   * @throws what `load` throws when nothing was kept
   */
  async get(key: string, load: () => Promise<V>): Promise<V> {
    const kept = this.#kept.get(key);
    if (kept !== undefined && this.#clock.monotonicMs() < kept.untilMs) {
      this.#keep(key, kept);
      return kept.value;
    }
    let loading = this.#loading.get(key);
    if (loading === undefined) {
      loading = this.#load(key, load).finally(() => this.#loading.delete(key));
      this.#loading.set(key, loading);
    }
    return await loading;
  }

  async #load(key: string, load: () => Promise<V>): Promise<V> {
    let value: V;
    let lifetimeMs = this.#bounds.lifetimeMs;
    try {
      value = await load();
    } catch (thrown) {
      const old = this.#kept.get(key);
      if (old === undefined) throw thrown;
      value = old.value;
      lifetimeMs = Math.min(RETRY_MS, lifetimeMs);
    }
    this.#keep(key, { value, untilMs: this.#clock.monotonicMs() + lifetimeMs });
    return value;
  }

  #keep(key: string, kept: Kept<V>): void {
    this.#kept.delete(key); // to the end of the order
    this.#kept.set(key, kept);
    if (this.#kept.size <= this.#bounds.maxValues) return;
    const [oldest] = this.#kept.keys();
    this.#kept.delete(oldest!); // there is one
  }
}
