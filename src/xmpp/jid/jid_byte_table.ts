import type { Jid } from "./jid.ts";

/** Longer addresses are looked up as strings. A multiple of four. */
export const MAX_TABLE_JID_BYTES = 96;
/** Words of four bytes in the longest text. */
const MAX_WORDS = MAX_TABLE_JID_BYTES / 4;
/** Number of slots, a power of two. A new entry replaces the one in its slot. */
const SLOTS = 16_384;

const AMP = 0x26;

/** Words of the text that `readWords` has read last. */
const WORDS = new Int32Array(MAX_WORDS);

/**
 * JIDs by the bytes that write them, for callers that hold bytes and would otherwise make a string only
 * to look it up.
 *
 * The table holds ASCII texts that are their own normalised form and read the same in an XML attribute.
 * A hit proves all of that, so nobody needs to look at the bytes again. It takes about 2 MB from its
 * first use on.
 */
export class JidByteTable {
  /** The texts as words, with `MAX_WORDS` for each slot. Comparing words takes a quarter of the steps. */
  #texts: Int32Array<ArrayBuffer> | undefined;
  #lengths = new Uint8Array(0);
  #jids: (Jid | undefined)[] = [];

  /** Returns the JID that is remembered for the bytes [`start`, `end`). */
  get(buffer: Uint8Array, start: number, end: number): Jid | undefined {
    const texts = this.#texts;
    const length = end - start;
    if (texts === undefined || length > MAX_TABLE_JID_BYTES) return undefined;
    const slot = readWords(buffer, start, end);
    if (this.#lengths[slot] !== length) return undefined;
    const at = slot * MAX_WORDS;
    const words = length + 3 >> 2;
    for (let i = 0; i < words; i++) {
      if (texts[at + i] !== WORDS[i]) return undefined;
    }
    return this.#jids[slot];
  }

  /** Remembers `jid`, whose normalised text the bytes are. Skips texts that the table does not hold. */
  set(buffer: Uint8Array, start: number, end: number, jid: Jid): void {
    const length = end - start;
    // A text beyond ASCII has more bytes than UTF-16 units.
    if (length > MAX_TABLE_JID_BYTES || length !== jid.text.length) return;
    for (let at = start; at < end; at++) if (buffer[at] === AMP) return;
    if (this.#texts === undefined) {
      this.#texts = new Int32Array(SLOTS * MAX_WORDS);
      this.#lengths = new Uint8Array(SLOTS);
      this.#jids = new Array<Jid | undefined>(SLOTS).fill(undefined);
    }
    const slot = readWords(buffer, start, end);
    this.#texts.set(WORDS.subarray(0, length + 3 >> 2), slot * MAX_WORDS);
    this.#lengths[slot] = length;
    this.#jids[slot] = jid;
  }
}

/**
 * Reads a text into `WORDS`, the last word filled up with zeros, and returns its slot. This runs three
 * times for each stanza that comes over a link.
 */
function readWords(buffer: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  let count = 0;
  let at = start;
  for (; at + 4 <= end; at += 4) {
    const word = buffer[at]! | buffer[at + 1]! << 8 | buffer[at + 2]! << 16 | buffer[at + 3]! << 24;
    WORDS[count++] = word;
    hash = Math.imul(hash ^ word, 0x5bd1e995);
    hash ^= hash >>> 15;
  }
  if (at < end) {
    let word = buffer[at]!;
    if (at + 1 < end) word |= buffer[at + 1]! << 8;
    if (at + 2 < end) word |= buffer[at + 2]! << 16;
    WORDS[count] = word;
    hash = Math.imul(hash ^ word, 0x5bd1e995);
  }
  return (hash ^ (hash >>> 15)) & (SLOTS - 1);
}
