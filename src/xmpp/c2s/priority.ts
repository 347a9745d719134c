import type { Stanza } from "../stanza.ts";
import { stanzaElement } from "../stanza_builder.ts";

/**
 * The priority in an available presence (RFC 6121 §4.7.2.3), 0 without one.
 *
 * @returns undefined when it is no integer from −128 to 127
 */
export function readPriority(presence: Stanza): number | undefined {
  const text = stanzaElement(presence).child("priority")?.text.trim();
  if (text === undefined) return 0;
  if (!/^[+-]?\d{1,3}$/.test(text)) return undefined;
  const priority = Number(text);
  return priority >= -128 && priority <= 127 ? priority : undefined;
}
