import { beginPrint, endPrint, FingerprintSet, mixBytes } from "../../base/mod.ts";
import type { Clock } from "../../base/mod.ts";
import { isReply, stanzaId } from "../../xmpp/mod.ts";
import type { Envelope } from "../envelope.ts";

/** Bounds of the filter. */
export interface ResendFilterOptions {
  /** Stanzas; the older half is forgotten at once. @default 262144 */
  readonly maxStanzas?: number;
  /**
   * Milliseconds for which a stanza is remembered at least, while there is room, and twice as long
   * at most. By then its client has got its answer or no longer sends it again. @default 660_000
   */
  readonly resendLifetimeMs?: number;
}

/** Default of `maxStanzas`. */
export const DEFAULT_MAX_STANZAS = 262_144;

/** Divisor of `maxStanzas`: at most one in this many remembered stanzas is a resent one. */
const RESENT_SHARE = 16;

/** The fields of a stanza that the filter reads. */
export type Sent = Pick<Envelope, "stanza" | "process" | "entry" | "sentAtUs">;

/** Stanzas delivered in a stretch of time. */
interface Generation {
  readonly prints: FingerprintSet;
  /** The resent ones among them, the oldest first. */
  readonly resent: Map<number, Resent>;
}

/** A stanza that was sent again, and delivered. */
interface Resent {
  readonly process: number;
  /**
   * Wall-clock microseconds when it entered the mesh, or of this node's clock if that is earlier.
   */
  readonly sentAtUs: number;
}

/**
 * Remembers the text of stanzas delivered here. When a node dies, its client sends stanzas again on
 * another stream and through another process. The filter lets such a stanza be delivered once,
 * whichever of the two comes first. The answer to a delivered request goes to wherever the client
 * is by then.
 *
 * The text holds sender (without its resource, which may change), recipient, id and payload as
 * stamped. The filter compares only stanzas that may have been sent again, and those that entered
 * before such a one through another process. Both need an id, and count only as long as the client
 * may send again: people do say the same thing twice. The filter takes no memory until there is
 * something to remember, and 16 bytes for each of `maxStanzas` from then on.
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
  remember({ stanza, process, entry, sentAtUs }: Sent): void {
    // An answer that comes twice does no harm, and stanzas without an id cannot be recognised.
    if (isReply(stanza) || stanzaId(stanza) === undefined) return;
    this.#age();
    if (this.#young === undefined || this.#young.prints.isFull) this.#turnOver();
    const print = fingerprint(stanza.bytes);
    this.#young!.prints.add(print);
    if (entry === "resent") this.#rememberResent(print, { process, sentAtUs });
  }

  /** Forgets a stanza that was taken back from a session and is to be delivered anew. */
  forget({ stanza }: Sent): void {
    if (isReply(stanza) || this.#young === undefined) return;
    const print = fingerprint(stanza.bytes);
    for (const generation of [this.#young, this.#old]) {
      generation?.prints.delete(print);
      generation?.resent.delete(print);
    }
  }

  /**
   * True when a stanza of the very same text, id included, was delivered before, and one of the two
   * was resent.
   */
  has(sent: Sent): boolean {
    if (this.#young === undefined || isReply(sent.stanza)) return false;
    const isResent = sent.entry === "resent";
    if (!isResent && this.#young.resent.size === 0 && !this.#old?.resent.size) return false;
    this.#age();
    const print = fingerprint(sent.stanza.bytes);
    return isResent
      ? this.#young.prints.has(print) || this.#old?.prints.has(print) === true
      : isBefore(sent, this.#young.resent.get(print) ?? this.#old?.resent.get(print));
  }

  #rememberResent(print: number, { process, sentAtUs }: Resent): void {
    const { resent } = this.#young!; // the caller has made one
    // A clock that is ahead, or a peer that claims so, must not turn a future stanza into a repeat.
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

/** True when `sent` may be the first sending of the stanza, and `resent` the second. */
function isBefore({ process, sentAtUs }: Sent, resent: Resent | undefined): boolean {
  return resent !== undefined && process !== resent.process && sentAtUs < resent.sentAtUs;
}

/**
 * Returns the fingerprint of a stanza. The resource of the sender does not count: a client that comes
 * back may be given another one.
 */
function fingerprint(bytes: Uint8Array): number {
  const [start, end] = senderResource(bytes);
  beginPrint(bytes.length - (end - start));
  mixBytes(bytes, 0, start);
  mixBytes(bytes, end, bytes.length);
  return endPrint();
}

const FROM = new TextEncoder().encode(" from=");
const SLASH = 0x2f;

/** Finds the sender's resource, slash included: `from` is stamped right behind the name. */
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
