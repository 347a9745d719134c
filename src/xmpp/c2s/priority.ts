import type { Stanza } from "../stanza/stanza.ts";
import { directText, findChild, stanzaSource } from "../xml/child_elements.ts";
import { CLIENT_NAMESPACE } from "../xml/namespaces.ts";

/** Bytes past which a `<priority/>` is invalid: an integer from −128 to 127 has at most four characters. */
const MAX_PRIORITY_BYTES = 1024;

/**
 * Returns the priority in an available presence (RFC 6121 §4.7.2.3), 0 without one.
 *
 * @returns undefined when it is not an integer from −128 to 127
 */
export function readPriority(presence: Stanza): number | undefined {
  const child = findChild(stanzaSource(presence.bytes), "priority", CLIENT_NAMESPACE);
  if (child === undefined) return 0;
  if (child.end - child.start > MAX_PRIORITY_BYTES) return undefined;
  const text = directText(child).trim();
  if (!/^[+-]?\d{1,3}$/.test(text)) return undefined;
  const priority = Number(text);
  return priority >= -128 && priority <= 127 ? priority : undefined;
}
