import type { Jid } from "./jid.ts";
import type { Stanza } from "./stanza.ts";
import { jidAttribute } from "./stanza_parser.ts";
import { stanzaType } from "./stanza_type.ts";
import { FrameScanner } from "./xml/frame_scanner.ts";
import { StreamFailure } from "./xml/scan_failure.ts";
import type { ScannedElement } from "./xml/scanner_types.ts";

/**
 * More than any configuration lets a client write, with what is stamped on it, so that servers that are
 * configured differently understand each other. How long it may be, a frame says.
 */
const LIMITS = { maxStanzaBytes: Number.MAX_SAFE_INTEGER, maxDepth: 1_000, maxAttributes: 2_048 };

/** Scratch: nothing in it is read after the call that filled it. */
const SCANNER = new FrameScanner(LIMITS);

/**
 * True when the bytes of a stanza that another server wrote are what `Stanza` promises: one whole
 * element and nothing else, well-formed, of that kind and type, from and to those addresses. Whoever
 * reads it believes the bytes; whoever lets it pass has looked at the rest.
 */
export function isAsItSays({ kind, type, from, to, bytes }: Stanza): boolean {
  const element = scan(bytes);
  if (element === undefined || element.end !== bytes.length) return false;
  if (element.name !== kind || element.prefix !== "") return false;
  if (element.attributeIndex("xmlns") !== -1) return false;
  if (kind === "iq" && element.attributeIndex("id") === -1) return false; // RFC 6120 §8.1.3
  if (stanzaType(kind, element.attribute("type")) !== type) return false;
  return isAddress(element, "from", from) && isAddress(element, "to", to);
}

function scan(bytes: Uint8Array): ScannedElement | undefined {
  try {
    return SCANNER.scan(bytes);
  } catch (error) {
    if (error instanceof StreamFailure) return undefined;
    throw error;
  }
}

function isAddress(element: ScannedElement, name: string, jid: Jid): boolean {
  const index = element.attributeIndex(name);
  return index !== -1 && jidAttribute(element, index)?.text === jid.text;
}
