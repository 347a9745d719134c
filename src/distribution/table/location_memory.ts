import type { ClusterBus } from "./mesh/cluster_bus.ts";
import type { LocationCache } from "./lookup/location_cache.ts";
import type { LocationLookup } from "./lookup/location_lookup.ts";
import type { Placements } from "./lookup/placements.ts";

/** The parts that `LocationMemory` works with. */
export interface LocationMemoryDeps {
  readonly cache: LocationCache;
  readonly placements: Placements;
  readonly lookup: LocationLookup;
  readonly bus: ClusterBus;
  isRedisUp(): boolean;
  /** Called when keys (full and bare JIDs, domains) have changed. */
  onChanged(keys: readonly string[]): void;
}

/**
 * Keeps what the nodes of this datacenter remember of locations in step with the table: a changed
 * key is dropped from the cache and the results of pending lookups, and its placements are read again.
 */
export class LocationMemory {
  readonly #deps: LocationMemoryDeps;

  constructor(deps: LocationMemoryDeps) {
    this.#deps = deps;
  }

  /**
   * Tells the other nodes of this datacenter of `keys` once `written` is over.
   * @param host the value that may stay in the cache
   */
  async announce(
    written: Promise<unknown>,
    keys: readonly string[],
    host?: string,
  ): Promise<void> {
    await written;
    const { cache, placements, lookup, bus } = this.#deps;
    for (const key of keys) {
      // A lookup may have read the former value meanwhile, and cached it.
      lookup.changed(key);
      placements.expireKey(key);
      if (host === undefined || cache.hostOf(key) !== host) cache.forgetKey(key);
    }
    bus.invalidate(keys);
  }

  /** Drops keys that this node has written, here and at the other nodes. */
  changed(keys: readonly string[]): void {
    this.#drop(keys);
    this.#deps.bus.invalidate(keys);
    this.#deps.onChanged(keys);
  }

  /** Drops keys that another node of this datacenter has changed. */
  invalidated(keys: readonly string[]): void {
    this.#drop(keys);
    this.#deps.onChanged(keys);
  }

  /** Drops everything, unless Redis is away: then only old entries can answer. */
  forgetAll(): void {
    const { cache, placements, lookup, isRedisUp } = this.#deps;
    if (!isRedisUp()) return;
    lookup.allChanged();
    cache.clear();
    placements.clear();
  }

  #drop(keys: readonly string[]): void {
    const { cache, placements, lookup } = this.#deps;
    for (const key of keys) {
      lookup.changed(key);
      cache.forgetKey(key);
      placements.expireKey(key);
    }
  }
}
