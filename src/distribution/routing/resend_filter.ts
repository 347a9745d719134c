import type { Stanza } from "../../xmpp/mod.ts";
import { stanzaId } from "../../xmpp/mod.ts";

/** Bounds of what the filter remembers. */
export interface ResendFilterOptions {
  /** Stanzas; the older half is forgotten at once. @default 262144 */
  readonly maxStanzas?: number;
}

/**
 * Remembers what was delivered here by its text, so that a message which a client sends again after
 * its node has died, on another stream and through another process, is delivered once.
 *
 * The text holds sender, recipient, id and payload as they were stamped. Only what may have been sent
 * again is compared, and only with an id: people do say the same thing twice.
 */
export class ResendFilter {
  readonly #half: number;
  #young = new Set<number>();
  #old = new Set<number>();

  constructor(options: ResendFilterOptions = {}) {
    this.#half = (options.maxStanzas ?? 262_144) >> 1;
  }

  /** Notes that the message has been delivered. */
  remember(stanza: Stanza): void {
    if (stanza.kind !== "message") return;
    if (this.#young.size >= this.#half) {
      this.#old = this.#young;
      this.#young = new Set();
    }
    this.#young.add(fingerprint(stanza.bytes));
  }

  /** The message was taken back from where it had been delivered: it is to be delivered anew. */
  forget(stanza: Stanza): void {
    if (stanza.kind !== "message") return;
    const print = fingerprint(stanza.bytes);
    this.#young.delete(print);
    this.#old.delete(print);
  }

  /** True when a message of the very same text, id included, was delivered before. */
  has(stanza: Stanza): boolean {
    if (stanza.kind !== "message") return false;
    const print = fingerprint(stanza.bytes);
    if (!this.#young.has(print) && !this.#old.has(print)) return false;
    return stanzaId(stanza) !== undefined;
  }
}

/** 53 bits of two multiplicative hashes in one pass: about half a microsecond for 300 bytes. */
function fingerprint(bytes: Uint8Array): number {
  let one = 0x811c9dc5;
  let other = 0x9747b28c;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    one = Math.imul(one ^ byte, 0x01000193);
    other = Math.imul(other + byte, 0x5bd1e995);
    other ^= other >>> 15;
  }
  return (one >>> 0) * 0x200000 + (other >>> 11);
}
