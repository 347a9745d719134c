import type { Jid } from "../jid/jid.ts";
import type { Stanza } from "./stanza.ts";
import { attributeSpan } from "./stanza_attributes.ts";
import { encodeAttribute } from "../xml/escape.ts";

/** Returns the same stanza for another recipient; all other bytes stay as they are. */
export function readdress(stanza: Stanza, to: Jid): Stanza {
  const { bytes } = stanza;
  const [start, end] = attributeSpan(stanza, "to");
  const written = encodeAttribute("to", to.text);
  const readdressed = new Uint8Array(start + written.length + bytes.length - end);
  readdressed.set(bytes.subarray(0, start));
  readdressed.set(written, start);
  readdressed.set(bytes.subarray(end), start + written.length);
  return { ...stanza, to, bytes: readdressed };
}
