import type { Jid } from "../jid/jid.ts";
import type { Stanza } from "./stanza.ts";
import { jidAttribute } from "./stanza_parser.ts";
import { stanzaType } from "./stanza_type.ts";
import type { ScannedElement } from "../xml/scanner_types.ts";
import { scanSelfContained } from "../xml/self_contained.ts";

/**
 * True when the bytes of a stanza that another server wrote are what `Stanza` promises: one whole
 * element and nothing else, well-formed, of that kind and type, from and to those addresses. Readers of
 * the stanza trust the bytes; the caller has checked the other fields.
 */
export function isAsItSays({ kind, type, from, to, bytes }: Stanza): boolean {
  const element = scanSelfContained(bytes);
  if (element === undefined || element.name !== kind) return false;
  if (kind === "iq" && element.attributeIndex("id") === -1) return false; // RFC 6120 §8.1.3
  if (stanzaType(kind, element.attribute("type")) !== type) return false;
  return isAddress(element, "from", from) && isAddress(element, "to", to);
}

function isAddress(element: ScannedElement, name: string, jid: Jid): boolean {
  const index = element.attributeIndex(name);
  return index !== -1 && jidAttribute(element, index)?.text === jid.text;
}
