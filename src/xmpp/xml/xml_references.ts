import { failScan } from "./scan_failure.ts";
import { isXmlCode } from "./xml_chars.ts";

/** Longest reference in bytes, leading zeros of a number included; no honest one comes near. */
export const MAX_REFERENCE_BYTES = 128;

const SEMICOLON = 0x3b;
const HASH = 0x23;
const LOWER_X = 0x78;

const ENTITIES: ReadonlyMap<string, string> = new Map([
  ["amp", "&"],
  ["lt", "<"],
  ["gt", ">"],
  ["quot", '"'],
  ["apos", "'"],
]);

/**
 * Checks the reference whose `&` is at `at`: one of the five entities (RFC 6120 §11.1) or a character.
 * Returns the position after its semicolon, or -1 when `end` cuts it off.
 */
export function skipReference(bytes: Uint8Array, at: number, end: number): number {
  const stop = Math.min(end, at + MAX_REFERENCE_BYTES);
  let p = at + 1;
  while (p < stop && isReferenceByte(bytes[p]!)) p++;
  if (p >= stop) {
    if (stop === at + MAX_REFERENCE_BYTES) {
      failScan("policy-violation", `a reference of more than ${MAX_REFERENCE_BYTES} bytes`);
    }
    return -1;
  }
  if (bytes[p] !== SEMICOLON) failScan("not-well-formed", "an ampersand without a reference");
  expandReference(bytes, at + 1, p);
  return p + 1;
}

/** Returns the character that the reference between `&` and `;` stands for. */
export function expandReference(bytes: Uint8Array, start: number, end: number): string {
  const name = String.fromCharCode(...bytes.subarray(start, end));
  if (bytes[start] !== HASH) {
    const expansion = ENTITIES.get(name);
    if (expansion !== undefined) return expansion;
    if (/^[A-Za-z]/.test(name)) failScan("restricted-xml", `the entity ${name}`);
    failScan("not-well-formed", "a reference without a name");
  }
  const isHex = bytes[start + 1] === LOWER_X;
  const digits = isHex ? name.slice(2) : name.slice(1);
  if (!(isHex ? /^[0-9A-Fa-f]+$/ : /^[0-9]+$/).test(digits)) {
    failScan("not-well-formed", "a character reference without a number");
  }
  const code = Number.parseInt(digits, isHex ? 16 : 10);
  if (!isXmlCode(code)) failScan("not-well-formed", "a reference to an invalid XML character");
  return String.fromCodePoint(code);
}

function isReferenceByte(byte: number): boolean {
  return (byte >= 0x61 && byte <= 0x7a) || (byte >= 0x30 && byte <= 0x39) || byte === HASH ||
    (byte >= 0x41 && byte <= 0x5a);
}
