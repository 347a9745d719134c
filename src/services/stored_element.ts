import { randomHex } from "../base/mod.ts";
import type { XmlElement } from "../xmpp/mod.ts";
import { serialize } from "../xmpp/mod.ts";

/** Bytes by which a stored element is longer than what the client sees of it. */
export const STORED_MARK_BYTES = markOf().length;

/**
 * Writes an element as an account stores it. The root declares a namespace that nothing uses, another
 * one each time, which parsing drops. A store that compares what it replaces thus tells the element
 * from a later one with the same content, such as one of the next owner of the account's name.
 */
export function storedElement(element: XmlElement): string {
  const text = serialize(element);
  const end = /[\s/>]/.exec(text)!.index; // behind the name of the root
  return `${text.slice(0, end)}${markOf()}${text.slice(end)}`;
}

function markOf(): string {
  return ` xmlns:_='causeway:${randomHex(8)}'`;
}
