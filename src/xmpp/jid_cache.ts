import type { Jid } from "./jid.ts";

/** Texts in one generation; two are kept. */
export const JID_GENERATION_SIZE = 32_768;
/** Longer texts are not remembered, so that the memory of a full cache stays in proportion. */
export const MAX_CACHED_JID_UNITS = 160;
/** Slots for texts looked up by their bytes; a power of two. */
const SLOTS = 16_384;

interface ByteEntry {
  readonly text: string;
  readonly jid: Jid;
}

/**
 * Remembers parsed JIDs by the text they were written as, at most 65 536 of them.
 *
 * Eviction is by generation: when the young map is full it becomes the old one and what is still
 * used moves over on its next use, so nothing is paid per entry. Beside it lies a table by the hash
 * of the bytes, for callers that hold bytes and would otherwise make a string only to look it up.
 */
export class JidCache {
  #young = new Map<string, Jid>();
  #old = new Map<string, Jid>();
  #slots: (ByteEntry | undefined)[] | undefined;
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

  /** The JID remembered for these ASCII bytes by `setBytes`. */
  getBytes(buffer: Uint8Array, start: number, end: number): Jid | undefined {
    if (this.#slots === undefined || end - start > MAX_CACHED_JID_UNITS) return undefined;
    const entry = this.#slots[slotOf(buffer, start, end)];
    if (entry === undefined) return undefined;
    const text = entry.text;
    const length = end - start;
    if (text.length !== length) return undefined;
    for (let i = 0; i < length; i++) {
      if (text.charCodeAt(i) !== buffer[start + i]) return undefined;
    }
    return entry.jid;
  }

  /** Remembers `jid` for bytes that `text` is the decoding of; non-ASCII is left to the maps. */
  setBytes(buffer: Uint8Array, start: number, end: number, text: string, jid: Jid): void {
    if (text.length !== end - start || text.length > MAX_CACHED_JID_UNITS) return;
    this.#slots ??= new Array<ByteEntry | undefined>(SLOTS).fill(undefined);
    this.#slots[slotOf(buffer, start, end)] = { text, jid };
  }
}

function slotOf(buffer: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  for (let i = start; i < end; i++) hash = (Math.imul(hash, 31) + buffer[i]!) | 0;
  // Bytes at the end reach only the low bits of a multiplicative hash: fold the high ones in.
  return (hash ^ (hash >>> 15)) & (SLOTS - 1);
}
