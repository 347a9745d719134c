import type { Clock } from "../../base/mod.ts";
import { isReply, stanzaId } from "../../xmpp/mod.ts";
import type { Envelope } from "../envelope.ts";
import { FingerprintSet } from "./fingerprint_set.ts";

/** Bounds of what the filter remembers. */
export interface ResendFilterOptions {
  /** Stanzas; the older half is forgotten at once. @default 262144 */
  readonly maxStanzas?: number;
  /**
   * Milliseconds for which a stanza is remembered at least, while there is room; twice as long at most:
   * by then its client has been told or has given up. @default 660_000
   */
  readonly resendLifetimeMs?: number;
}

/** Stanzas that are remembered, unless configured. */
export const DEFAULT_MAX_STANZAS = 262_144;

/** Of these, how many may be what was sent again: one in so many. */
const RESENT_SHARE = 16;

/** What is looked at of a stanza on its way. */
export type Sent = Pick<Envelope, "stanza" | "process" | "isResent" | "sentAtUs">;

/** What was delivered in a stretch of time. */
interface Generation {
  readonly prints: FingerprintSet;
  /** What of it was sent again, the oldest first. */
  readonly resent: Map<number, Resent>;
}

/** A stanza that was sent again, and delivered. */
interface Resent {
  readonly process: number;
  /** Wall-clock microseconds when it entered the mesh, by the clock that was behind. */
  readonly sentAtUs: number;
}

/**
 * Remembers what was delivered here by its text, so that a stanza which a client sends again after its
 * node has died, on another stream and through another process, is delivered once, whichever of the
 * two comes first. The answer to a request that was delivered finds the client where it is by then.
 *
 * The text holds the sender, whatever its resource is by now, recipient, id and payload as they were
 * stamped. Compared is only what may have been sent again, and what entered before such a one through
 * another process; of both only what has an id, and for so long as its client may send it again: people
 * do say the same thing twice. It takes no memory until there is something to remember, and 16 bytes
 * for each of `maxStanzas` from then on.
 */
export class ResendFilter {
  readonly #clock: Clock;
  readonly #half: number;
  readonly #maxResent: number;
  readonly #lifetimeMs: number;
  #young: Generation | undefined;
  #old: Generation | undefined;
  #youngSinceMs = 0;

  constructor(options: ResendFilterOptions, clock: Clock) {
    const { maxStanzas = DEFAULT_MAX_STANZAS, resendLifetimeMs = 660_000 } = options;
    this.#clock = clock;
    this.#half = maxStanzas >> 1;
    this.#maxResent = Math.ceil(this.#half / RESENT_SHARE);
    this.#lifetimeMs = resendLifetimeMs;
  }

  /** Notes that the stanza has been delivered. */
  remember({ stanza, process, isResent, sentAtUs }: Sent): void {
    // Answers are of no use twice to whoever sees them, and without an id nothing is the same again.
    if (isReply(stanza) || stanzaId(stanza) === undefined) return;
    this.#age();
    if (this.#young === undefined || this.#young.prints.isFull) this.#turnOver();
    const print = fingerprint(stanza.bytes);
    this.#young!.prints.add(print);
    if (isResent) this.#rememberResent(print, { process, sentAtUs });
  }

  /** The stanza was taken back from where it had been delivered: it is to be delivered anew. */
  forget({ stanza }: Sent): void {
    if (isReply(stanza) || this.#young === undefined) return;
    const print = fingerprint(stanza.bytes);
    for (const generation of [this.#young, this.#old]) {
      generation?.prints.delete(print);
      generation?.resent.delete(print);
    }
  }

  /**
   * True when one of the very same text, id included, was delivered before, and one of the two was sent
   * again after the other.
   */
  has(sent: Sent): boolean {
    if (this.#young === undefined || isReply(sent.stanza)) return false;
    if (!sent.isResent && this.#young.resent.size === 0 && !this.#old?.resent.size) return false;
    this.#age();
    const print = fingerprint(sent.stanza.bytes);
    return sent.isResent
      ? this.#young.prints.has(print) || this.#old?.prints.has(print) === true
      : isBefore(sent, this.#young.resent.get(print) ?? this.#old?.resent.get(print));
  }

  #rememberResent(print: number, { process, sentAtUs }: Resent): void {
    const { resent } = this.#young!; // the caller has seen to it
    // A clock that is ahead, or a peer that says so, must not make a repeat of what is yet to be said.
    resent.set(print, { process, sentAtUs: Math.min(sentAtUs, this.#clock.wallUs()) });
    if (resent.size <= this.#maxResent) return;
    const [oldest] = resent.keys();
    resent.delete(oldest!);
  }

  #age(): void {
    const sinceMs = this.#youngSinceMs;
    const ageMs = this.#clock.monotonicMs() - sinceMs;
    if (this.#young === undefined || ageMs < this.#lifetimeMs) return;
    this.#turnOver(sinceMs + this.#lifetimeMs);
    if (ageMs >= 2 * this.#lifetimeMs) this.#turnOver();
  }

  #turnOver(sinceMs: number = this.#clock.monotonicMs()): void {
    const oldest = this.#old;
    oldest?.prints.clear();
    oldest?.resent.clear();
    this.#old = this.#young;
    this.#young = oldest ?? { prints: new FingerprintSet(this.#half), resent: new Map() };
    this.#youngSinceMs = sinceMs;
  }
}

/** True when `sent` may be what was sent first, and `resent` the same again. */
function isBefore({ process, sentAtUs }: Sent, resent: Resent | undefined): boolean {
  return resent !== undefined && process !== resent.process && sentAtUs < resent.sentAtUs;
}

/**
 * 53 bits, never 0, of two multiplicative hashes in one pass, four bytes at a time: about 0.1 µs for
 * 300 bytes. Every step can be undone, so that texts which differ in one place differ in both hashes.
 *
 * The resource of the sender does not count: a client that comes back may be given another one.
 */
function fingerprint(bytes: Uint8Array): number {
  const [start, end] = senderResource(bytes);
  const length = bytes.length - (end - start);
  one = 0x811c9dc5 ^ length;
  other = 0x9747b28c + length;
  mix(bytes, 0, start);
  mix(bytes, end, bytes.length);
  one = Math.imul(one, 0x85ebca6b);
  other = Math.imul(other ^ other >>> 16, 0xc2b2ae35);
  return ((one ^ one >>> 13) >>> 0) * 0x200000 + ((other ^ other >>> 16) >>> 11) + 1;
}

/** The two hashes while they are made: state of one call, so that it needs no object. */
let one = 0;
let other = 0;

function mix(bytes: Uint8Array, start: number, end: number): void {
  const wholeEnd = start + (end - start & ~3);
  let [a, b] = [one, other];
  let at = start;
  for (; at < wholeEnd; at += 4) {
    const word = bytes[at]! | bytes[at + 1]! << 8 | bytes[at + 2]! << 16 | bytes[at + 3]! << 24;
    a = Math.imul(a ^ word, 0x01000193);
    a ^= a >>> 15;
    b = Math.imul(b + word | 0, 0x5bd1e995);
    b ^= b >>> 13;
  }
  for (; at < end; at++) {
    a = Math.imul(a ^ bytes[at]!, 0x01000193);
    a ^= a >>> 15;
    b = Math.imul(b + bytes[at]! | 0, 0x5bd1e995);
    b ^= b >>> 13;
  }
  one = a;
  other = b;
}

const FROM = new TextEncoder().encode(" from=");
const SLASH = 0x2f;

/** Where the sender's resource stands, slash included: `from` is stamped right behind the name. */
function senderResource(bytes: Uint8Array): readonly [start: number, end: number] {
  let at = 1;
  while (bytes[at]! > 0x60 && bytes[at]! < 0x7b) at++;
  for (let i = 0; i < FROM.length; i++) if (bytes[at + i] !== FROM[i]) return [0, 0];
  at += FROM.length;
  const quote = bytes[at++];
  let start = at;
  while (start < bytes.length && bytes[start] !== quote && bytes[start] !== SLASH) start++;
  let end = start;
  while (end < bytes.length && bytes[end] !== quote) end++;
  return [start, end];
}
