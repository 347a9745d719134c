import type { Stanza } from "../../xmpp/mod.ts";
import { stanzaId } from "../../xmpp/mod.ts";

/** Messages that are remembered; one more forgets the oldest. */
const MAX_REMEMBERED = 10_000;
/** Characters of an id that is remembered. */
const MAX_ID = 128;

/**
 * Messages of this node's sessions of which other sessions were sent carbons. An error that answers
 * one of them is part of the same conversation (XEP-0280 §6.1).
 */
export class AnswerableMessages {
  readonly #keys = new Set<string>();

  /** Remembers a message that has an id. */
  add(message: Stanza): void {
    const key = keyOf(message, message.from.text, message.to.text);
    if (key === undefined) return;
    this.#keys.add(key);
    if (this.#keys.size <= MAX_REMEMBERED) return;
    const [oldest] = this.#keys;
    this.#keys.delete(oldest!); // there are several
  }

  /** True for an error that answers a remembered message. Only the first one does. */
  take(error: Stanza): boolean {
    if (this.#keys.size === 0) return false;
    const key = keyOf(error, error.to.text, error.from.text);
    return key !== undefined && this.#keys.delete(key);
  }
}

/** No JID has a line break in it. */
function keyOf(stanza: Stanza, own: string, other: string): string | undefined {
  const id = stanzaId(stanza);
  return id === undefined || id.length > MAX_ID ? undefined : `${own}\n${other}\n${id}`;
}
