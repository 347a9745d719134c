import { textOf } from "./ascii_interner.ts";
import { expandReference } from "./xml_references.ts";

const AMP = 0x26;
const SEMICOLON = 0x3b;

/**
 * The value of a well-formed attribute between its quotes: references expanded, white space
 * normalised (XML 1.0 §3.3.3).
 */
export function decodeValue(bytes: Uint8Array, start: number, end: number): string {
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!;
    if (byte === AMP || byte < 0x20) return decodeSlowly(bytes, start, end);
  }
  return textOf(bytes, start, end);
}

function decodeSlowly(bytes: Uint8Array, start: number, end: number): string {
  let value = "";
  let plainFrom = start;
  for (let i = start; i < end; i++) {
    if (bytes[i] !== AMP) continue;
    value += spaced(textOf(bytes, plainFrom, i));
    const semicolon = bytes.indexOf(SEMICOLON, i);
    value += expandReference(bytes, i + 1, semicolon);
    plainFrom = semicolon + 1;
    i = semicolon;
  }
  return value + spaced(textOf(bytes, plainFrom, end));
}

/** A line end, however written, is one space (XML 1.0 §2.11 and §3.3.3). */
function spaced(text: string): string {
  return text.replace(/\r\n|[\t\n\r]/g, " ");
}
