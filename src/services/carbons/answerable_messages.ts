import { beginPrint, endPrint, FingerprintSet, mixAscii, mixText } from "../../base/mod.ts";
import type { Stanza } from "../../xmpp/mod.ts";
import { idSpan, stanzaId } from "../../xmpp/mod.ts";

/** Messages that are remembered at least. Twice as many at most, with 26 bytes for each. */
const REMEMBERED = 10_000;
/** Characters of an id that is remembered. */
const MAX_ID = 128;
const AMPERSAND = 0x26;

/**
 * Messages of this node's sessions of which other sessions were sent carbons. An error that answers
 * one of them is part of the same conversation (XEP-0280 §6.1).
 *
 * Each is a number made of its addresses and its id: to remember a message costs no object. Messages are
 * forgotten by the thousand. There is no memory for any until the first one.
 */
export class AnswerableMessages {
  #newer: FingerprintSet | undefined;
  #older: FingerprintSet | undefined;

  /** Remembers a message that has an id. */
  add(message: Stanza): void {
    const print = printOf(message, message.from.text, message.to.text);
    if (print === undefined) return;
    if (this.#newer === undefined || this.#newer.isFull) this.#turnOver();
    this.#newer!.add(print);
  }

  /** True for an error that answers a remembered message. Only the first one does. */
  take(error: Stanza): boolean {
    if (this.#newer === undefined) return false;
    const print = printOf(error, error.to.text, error.from.text);
    if (print === undefined) return false;
    let isKnown = false; // a client may have used the id twice
    for (const prints of [this.#newer, this.#older]) {
      if (prints?.has(print) !== true) continue;
      prints.delete(print);
      isKnown = true;
    }
    return isKnown;
  }

  #turnOver(): void {
    const oldest = this.#older;
    oldest?.clear();
    this.#older = this.#newer;
    this.#newer = oldest ?? new FingerprintSet(REMEMBERED);
  }
}

function printOf(stanza: Stanza, own: string, other: string): number | undefined {
  const span = idSpan(stanza);
  if (span === undefined) return undefined;
  const [start, end] = span;
  beginPrint(0);
  mixText(own);
  mixText(other);
  if (isPlain(stanza.bytes, start, end)) {
    if (end - start > MAX_ID) return undefined;
    mixAscii(stanza.bytes, start, end);
    return endPrint();
  }
  const id = stanzaId(stanza)!; // its span was found
  if (id.length > MAX_ID) return undefined;
  mixText(id);
  return endPrint();
}

/** True for characters that stand for themselves. An answer may write others in another way. */
function isPlain(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    if (byte < 0x20 || byte > 0x7e || byte === AMPERSAND) return false;
  }
  return true;
}
