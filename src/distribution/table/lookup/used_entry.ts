import type { LRUCache } from "lru-cache";

/** Milliseconds in which further uses of an entry are not noted. */
const NOTE_EACH_MS = 1_000;

/** An entry of a cache whose least recently used entries go first. */
export interface UsedEntry {
  /** Monotonic milliseconds of the last use that was noted. */
  usedMs: number;
}

/**
 * Returns an entry, and notes its use once a second at most: moving an entry to the end of the cache's
 * list costs more than finding it, and every stanza looks for several.
 */
export function useEntry<Entry extends UsedEntry>(
  cache: LRUCache<string, Entry>,
  key: string,
  nowMs: number,
): Entry | undefined {
  const entry = cache.peek(key);
  if (entry !== undefined && nowMs - entry.usedMs >= NOTE_EACH_MS) {
    entry.usedMs = nowMs;
    cache.get(key);
  }
  return entry;
}
