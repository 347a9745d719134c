import { textOf } from "./ascii_interner.ts";
import { expandReference } from "./xml_references.ts";

const AMP = 0x26;
const SEMICOLON = 0x3b;
/** Up to this many bytes a loop is faster than a view. */
const LOOPED_BYTES = 48;

/**
 * Returns the value of a well-formed attribute between its quotes: references expanded, white space
 * normalised (XML 1.0 §3.3.3).
 */
export function decodeValue(bytes: Uint8Array, start: number, end: number): string {
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!;
    if (byte === AMP || byte < 0x20) return decodeSlowly(bytes, start, end);
  }
  return textOf(bytes, start, end);
}

/**
 * Returns character data as XML reads it: references expanded, every line end a line feed (XML 1.0
 * §2.11).
 */
export function decodeText(bytes: Uint8Array, start: number, end: number): string {
  return expand(bytes, start, end, lineEnds);
}

/** Returns the text of a CDATA section, in which nothing is a reference. */
export function decodeCdata(bytes: Uint8Array, start: number, end: number): string {
  return lineEnds(textOf(bytes, start, end));
}

function decodeSlowly(bytes: Uint8Array, start: number, end: number): string {
  return expand(bytes, start, end, spaced);
}

/** Expands references, and passes the text between them through `normalise`. */
function expand(
  bytes: Uint8Array,
  start: number,
  end: number,
  normalise: (text: string) => string,
): string {
  let value = "";
  let plainFrom = start;
  for (let i = findAmp(bytes, start, end); i !== -1; i = findAmp(bytes, i, end)) {
    value += normalise(textOf(bytes, plainFrom, i));
    const semicolon = bytes.indexOf(SEMICOLON, i);
    value += expandReference(bytes, i + 1, semicolon);
    plainFrom = i = semicolon + 1;
  }
  return value + normalise(textOf(bytes, plainFrom, end));
}

/** Looks no further than `end`: what lies behind may be long, and is looked at for each of many texts. */
function findAmp(bytes: Uint8Array, start: number, end: number): number {
  if (end - start > LOOPED_BYTES) {
    const found = bytes.subarray(start, end).indexOf(AMP);
    return found === -1 ? -1 : start + found;
  }
  for (let i = start; i < end; i++) if (bytes[i] === AMP) return i;
  return -1;
}

function lineEnds(text: string): string {
  return text.replace(/\r\n?/g, "\n");
}

/** Replaces a line end, however written, by one space (XML 1.0 §2.11 and §3.3.3). */
function spaced(text: string): string {
  return text.replace(/\r\n|[\t\n\r]/g, " ");
}
