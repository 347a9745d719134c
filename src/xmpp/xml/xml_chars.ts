import { BEGINS_NAME, CONTINUES_NAME, nameClassOf } from "./name_characters.ts";
import { failScan } from "./scan_failure.ts";

/** Classes of ASCII bytes, one bit each, in `CHAR_CLASS`; bytes above 0x7F have none. */
export const NAME_START = 1;
/**
 * Bytes that may stand in a name. The colon is not among them, because it divides prefix and local name.
 */
export const NAME_PART = 2;
export const SPACE = 4;
/** Bytes that mean nothing special in character data. */
export const TEXT = 8;
/** Bytes that mean nothing special in an attribute value, whichever the quote. */
export const VALUE = 16;

export const CHAR_CLASS: Uint8Array = makeClasses();

function makeClasses(): Uint8Array {
  const classes = new Uint8Array(256);
  for (let code = 0; code < 0x80; code++) {
    const char = String.fromCharCode(code);
    let bits = 0;
    if (/[A-Za-z_]/.test(char)) bits |= NAME_START;
    if (/[A-Za-z0-9_.-]/.test(char)) bits |= NAME_PART;
    if (/[ \t\n\r]/.test(char)) bits |= SPACE;
    if (code >= 0x20 || (bits & SPACE) !== 0) {
      if (!/[<&>]/.test(char)) bits |= TEXT;
      if (!/[<&"']/.test(char)) bits |= VALUE;
    }
    classes[code] = bits;
  }
  return classes;
}

/**
 * Returns the length of the UTF-8 character at `at`, which is not ASCII: 2 to 4 bytes, or 0 when `end`
 * cuts it off. Throws `StreamFailure` for bytes that are not UTF-8 (overlong forms and surrogates
 * included) and for code points that XML 1.0 §2.2 does not count as characters.
 */
export function utf8Step(bytes: Uint8Array, at: number, end: number): number {
  const lead = bytes[at]!;
  if (lead < 0xc2 || lead > 0xf4) notUtf8(lead);
  if (at + 1 >= end) return 0;
  const second = bytes[at + 1]!;
  if ((second & 0xc0) !== 0x80) notUtf8(second);
  if (lead < 0xe0) return 2;
  if (lead < 0xf0) {
    if ((lead === 0xe0 && second < 0xa0) || (lead === 0xed && second > 0x9f)) notUtf8(second);
    if (at + 2 >= end) return 0;
    const third = bytes[at + 2]!;
    if ((third & 0xc0) !== 0x80) notUtf8(third);
    if (lead === 0xef && second === 0xbf && third >= 0xbe) notAChar(0xffc0 | third & 0x3f);
    return 3;
  }
  if ((lead === 0xf0 && second < 0x90) || (lead === 0xf4 && second > 0x8f)) notUtf8(second);
  if (at + 2 >= end) return 0;
  if ((bytes[at + 2]! & 0xc0) !== 0x80) notUtf8(bytes[at + 2]!);
  if (at + 3 >= end) return 0;
  if ((bytes[at + 3]! & 0xc0) !== 0x80) notUtf8(bytes[at + 3]!);
  return 4;
}

/** Does the same as `utf8Step`, for a character of a name that every parser reads (see `nameClassOf`). */
export function nameStep(bytes: Uint8Array, at: number, end: number, isFirst: boolean): number {
  const step = utf8Step(bytes, at, end);
  if (step === 0) return 0;
  const code = codePointAt(bytes, at, step);
  if ((nameClassOf(code) & (isFirst ? BEGINS_NAME : CONTINUES_NAME)) === 0) {
    failScan("not-well-formed", `U+${code.toString(16)} in a name`);
  }
  return step;
}

/** True for a code point that XML 1.0 §2.2 counts as a character. */
export function isXmlCode(code: number): boolean {
  if (code < 0x20) return code === 0x9 || code === 0xa || code === 0xd;
  return code <= 0xd7ff || (code >= 0xe000 && code <= 0xfffd) ||
    (code >= 0x10000 && code <= 0x10ffff);
}

/** Refuses a control character. */
export function notAChar(code: number): never {
  failScan("not-well-formed", `U+${code.toString(16).padStart(4, "0")} is not an XML character`);
}

function notUtf8(byte: number): never {
  failScan("unsupported-encoding", `byte 0x${byte.toString(16)} is not UTF-8 here`);
}

function codePointAt(bytes: Uint8Array, at: number, step: number): number {
  const lead = bytes[at]!;
  let code = step === 2 ? lead & 0x1f : step === 3 ? lead & 0x0f : lead & 0x07;
  for (let i = 1; i < step; i++) code = (code << 6) | (bytes[at + i]! & 0x3f);
  return code;
}
