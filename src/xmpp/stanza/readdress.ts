import { SlabAllocator } from "../../base/mod.ts";
import type { Jid } from "../jid/jid.ts";
import type { Stanza } from "./stanza.ts";
import { attributeSpan } from "./stanza_attributes.ts";
import { encodeAttribute } from "../xml/escape.ts";

/** Memory for stanzas with another recipient, which live about equally long. */
const SLAB = new SlabAllocator();
/** `to` attributes by recipient: a session is the recipient of many. */
const WRITTEN = new WeakMap<Jid, Uint8Array>();

/** Returns the same stanza for another recipient; all other bytes stay as they are. */
export function readdress(stanza: Stanza, to: Jid): Stanza {
  const { bytes } = stanza;
  const [start, end] = attributeSpan(stanza, "to");
  let written = WRITTEN.get(to);
  if (written === undefined) WRITTEN.set(to, written = encodeAttribute("to", to.text));
  const readdressed = SLAB.allocate(start + written.length + bytes.length - end);
  readdressed.set(bytes.subarray(0, start));
  readdressed.set(written, start);
  readdressed.set(bytes.subarray(end), start + written.length);
  return { ...stanza, to, bytes: readdressed };
}
