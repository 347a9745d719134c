import type { Stanza } from "../../xmpp/mod.ts";
import { stanzaId } from "../../xmpp/mod.ts";

/** Messages that are remembered at least, unless their addresses are long. Twice as many at most. */
const REMEMBERED = 10_000;
/** Characters of which at most twice as many are kept for them. */
const CHARACTERS = 2_097_152;
/** Characters of an id that is remembered. */
const MAX_ID = 128;

/**
 * Messages of this node's sessions of which other sessions were sent carbons. An error that answers
 * one of them is part of the same conversation (XEP-0280 §6.1).
 *
 * They are forgotten by the thousand. The oldest member of one set would be expensive to find: a walk
 * over all that were deleted before it.
 */
export class AnswerableMessages {
  #newer = new Set<string>();
  #older = new Set<string>();
  /** Characters of the newer ones. */
  #characters = 0;

  /** Remembers a message that has an id. */
  add(message: Stanza): void {
    const key = keyOf(message, message.from.text, message.to.text);
    if (key === undefined) return;
    if (this.#newer.size === REMEMBERED || this.#characters + key.length > CHARACTERS) {
      this.#older = this.#newer;
      this.#newer = new Set();
      this.#characters = 0;
    }
    this.#newer.add(key);
    this.#characters += key.length;
  }

  /** True for an error that answers a remembered message. Only the first one does. */
  take(error: Stanza): boolean {
    if (this.#newer.size === 0 && this.#older.size === 0) return false;
    const key = keyOf(error, error.to.text, error.from.text);
    if (key === undefined) return false;
    const wasOlder = this.#older.delete(key); // a client may have used the id twice
    return this.#newer.delete(key) || wasOlder;
  }
}

/** No JID has a line break in it. */
function keyOf(stanza: Stanza, own: string, other: string): string | undefined {
  const id = stanzaId(stanza);
  return id === undefined || id.length > MAX_ID ? undefined : `${own}\n${other}\n${id}`;
}
