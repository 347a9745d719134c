import type { Jid } from "./jid.ts";

/** Number of texts in one generation; the cache keeps two generations. */
export const JID_GENERATION_SIZE = 32_768;
/** Longer texts are not remembered, so that the memory of a full cache stays in proportion. */
export const MAX_CACHED_JID_UNITS = 160;

/**
 * Remembers parsed JIDs by the text they were written as, at most 65 536 of them.
 *
 * Eviction is by generation. When the young map is full it becomes the old one, and an entry moves over
 * on its next use, so that entries need no bookkeeping.
 */
export class JidCache {
  #young = new Map<string, Jid>();
  #old = new Map<string, Jid>();
  readonly #generationSize: number;

  constructor(generationSize = JID_GENERATION_SIZE) {
    this.#generationSize = generationSize;
  }

  /** Entries held, both generations counted. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  get(text: string): Jid | undefined {
    const young = this.#young.get(text);
    if (young !== undefined) return young;
    const old = this.#old.get(text);
    if (old === undefined) return undefined;
    this.set(text, old);
    return old;
  }

  set(text: string, jid: Jid): void {
    if (text.length > MAX_CACHED_JID_UNITS) return;
    if (this.#young.size >= this.#generationSize) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(text, jid);
  }
}
