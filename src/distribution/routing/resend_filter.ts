import { isReply, stanzaId } from "../../xmpp/mod.ts";
import type { Envelope } from "../envelope.ts";
import { FingerprintSet } from "./fingerprint_set.ts";

/** Bounds of what the filter remembers. */
export interface ResendFilterOptions {
  /** Stanzas; the older half is forgotten at once. @default 262144 */
  readonly maxStanzas?: number;
}

/** Stanzas that are remembered, unless configured. */
export const DEFAULT_MAX_STANZAS = 262_144;

/** Of these, how many may be what was sent again: one in so many. */
const RESENT_SHARE = 16;

/** What is looked at of a stanza on its way. */
export type Sent = Pick<Envelope, "stanza" | "isResent" | "sentAtUs">;

/**
 * Remembers what was delivered here by its text, so that a stanza which a client sends again after its
 * node has died, on another stream and through another process, is delivered once, whichever of the
 * two comes first. The answer to a request that was delivered finds the client where it is by then.
 *
 * The text holds sender, recipient, id and payload as they were stamped. Only what may have been sent
 * again is compared, and what entered before such a one, and only with an id: people do say the same
 * thing twice. It takes no memory until there is something to remember, and 16 bytes for each of
 * `maxStanzas` from then on.
 */
export class ResendFilter {
  readonly #half: number;
  readonly #maxResent: number;
  #young: FingerprintSet | undefined;
  #old: FingerprintSet | undefined;
  /** When what was sent again entered the mesh, wall-clock microseconds; the oldest first. */
  readonly #resentAtUs = new Map<number, number>();

  constructor(options: ResendFilterOptions = {}) {
    const { maxStanzas = DEFAULT_MAX_STANZAS } = options;
    this.#half = maxStanzas >> 1;
    this.#maxResent = Math.ceil(maxStanzas / RESENT_SHARE);
  }

  /** Notes that the stanza has been delivered. */
  remember({ stanza, isResent, sentAtUs }: Sent): void {
    if (isReply(stanza)) return; // of no use twice to whoever sees it
    const print = fingerprint(stanza.bytes);
    if (this.#young === undefined || this.#young.isFull) this.#turnOver();
    this.#young!.add(print);
    if (isResent) this.#rememberResent(print, sentAtUs);
  }

  /** The stanza was taken back from where it had been delivered: it is to be delivered anew. */
  forget({ stanza }: Sent): void {
    if (isReply(stanza) || this.#young === undefined) return;
    const print = fingerprint(stanza.bytes);
    this.#young.delete(print);
    this.#old?.delete(print);
    this.#resentAtUs.delete(print);
  }

  /**
   * True when one of the very same text, id included, was delivered before, and one of the two was sent
   * again after the other.
   */
  has({ stanza, isResent, sentAtUs }: Sent): boolean {
    if (this.#young === undefined || !(isResent || this.#resentAtUs.size > 0)) return false;
    if (isReply(stanza)) return false;
    const print = fingerprint(stanza.bytes);
    const isKnown = isResent
      ? this.#young.has(print) || this.#old?.has(print) === true
      : sentAtUs < (this.#resentAtUs.get(print) ?? -Infinity);
    return isKnown && stanzaId(stanza) !== undefined;
  }

  #rememberResent(print: number, sentAtUs: number): void {
    this.#resentAtUs.set(print, sentAtUs);
    if (this.#resentAtUs.size <= this.#maxResent) return;
    for (const oldest of this.#resentAtUs.keys()) {
      this.#resentAtUs.delete(oldest);
      return;
    }
  }

  #turnOver(): void {
    const oldest = this.#old;
    oldest?.clear();
    this.#old = this.#young;
    this.#young = oldest ?? new FingerprintSet(this.#half);
  }
}

/**
 * 53 bits, never 0, of two multiplicative hashes in one pass, four bytes at a time: about 0.1 µs for
 * 300 bytes. Every step can be undone, so that texts which differ in one place differ in both hashes.
 */
function fingerprint(bytes: Uint8Array): number {
  const { length } = bytes;
  const end = length & ~3;
  let one = 0x811c9dc5 ^ length;
  let other = 0x9747b28c + length;
  let at = 0;
  for (; at < end; at += 4) {
    const word = bytes[at]! | bytes[at + 1]! << 8 | bytes[at + 2]! << 16 | bytes[at + 3]! << 24;
    one = Math.imul(one ^ word, 0x01000193);
    one ^= one >>> 15;
    other = Math.imul(other + word | 0, 0x5bd1e995);
    other ^= other >>> 13;
  }
  for (; at < length; at++) {
    one = Math.imul(one ^ bytes[at]!, 0x01000193);
    one ^= one >>> 15;
    other = Math.imul(other + bytes[at]! | 0, 0x5bd1e995);
    other ^= other >>> 13;
  }
  one = Math.imul(one, 0x85ebca6b);
  other = Math.imul(other ^ other >>> 16, 0xc2b2ae35);
  return ((one ^ one >>> 13) >>> 0) * 0x200000 + ((other ^ other >>> 16) >>> 11) + 1;
}
