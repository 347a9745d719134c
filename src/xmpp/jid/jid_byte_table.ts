import type { Jid } from "./jid.ts";

/** Longer addresses are looked up as strings. */
export const MAX_TABLE_JID_BYTES = 96;
/** Number of slots, a power of two. A new entry replaces the one in its slot. */
const SLOTS = 16_384;

const AMP = 0x26;

/**
 * JIDs by the bytes that write them, for callers that hold bytes and would otherwise make a string only
 * to look it up.
 *
 * The table holds ASCII texts that are their own normalised form and read the same in an XML attribute.
 * A hit proves all of that, so nobody needs to look at the bytes again. It takes about 2 MB from its
 * first use on.
 */
export class JidByteTable {
  #texts: Uint8Array<ArrayBuffer> | undefined;
  #lengths = new Uint8Array(0);
  #jids: (Jid | undefined)[] = [];

  /** Returns the JID that is remembered for the bytes [`start`, `end`). */
  get(buffer: Uint8Array, start: number, end: number): Jid | undefined {
    const texts = this.#texts;
    const length = end - start;
    if (texts === undefined || length > MAX_TABLE_JID_BYTES) return undefined;
    const slot = slotOf(buffer, start, end);
    if (this.#lengths[slot] !== length) return undefined;
    const at = slot * MAX_TABLE_JID_BYTES;
    for (let i = 0; i < length; i++) {
      if (texts[at + i] !== buffer[start + i]) return undefined;
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
      this.#texts = new Uint8Array(SLOTS * MAX_TABLE_JID_BYTES);
      this.#lengths = new Uint8Array(SLOTS);
      this.#jids = new Array<Jid | undefined>(SLOTS).fill(undefined);
    }
    const slot = slotOf(buffer, start, end);
    this.#texts.set(buffer.subarray(start, end), slot * MAX_TABLE_JID_BYTES);
    this.#lengths[slot] = length;
    this.#jids[slot] = jid;
  }
}

/** Hashes four bytes at a time, because this runs three times for each stanza that comes over a link. */
function slotOf(buffer: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  let at = start;
  for (; at + 4 <= end; at += 4) {
    const word = buffer[at]! | buffer[at + 1]! << 8 | buffer[at + 2]! << 16 | buffer[at + 3]! << 24;
    hash = Math.imul(hash ^ word, 0x5bd1e995);
    hash ^= hash >>> 15;
  }
  for (; at < end; at++) hash = Math.imul(hash ^ buffer[at]!, 0x01000193);
  return (hash ^ (hash >>> 15)) & (SLOTS - 1);
}
