import { decodeValue } from "./attribute_value.ts";
import { XML_NAMESPACE, XMLNS_NAMESPACE } from "./namespaces.ts";
import { failScan } from "./scan_failure.ts";

/**
 * Longest namespace in characters; the longest in use have about 70. A name written once may apply
 * thousands of times, and each time costs whoever writes it out in full.
 */
export const MAX_NAMESPACE_LENGTH = 1024;

/** Longer names are checked anew each time. */
const MAX_REMEMBERED_BYTES = 128;
/** Number of remembered names; a power of two. */
const SLOTS = 256;

const AMP = 0x26;

/** A URI reference of RFC 3986 §4.1 without IP literals, which no namespace needs. */
const URI_REFERENCE = makeUriReference();

const slots: string[] = new Array<string>(SLOTS).fill("");

/**
 * Returns the namespace that the attribute value [`start`, `end`) names; empty for an empty value.
 *
 * XML Namespaces §2.2 requires a URI reference, and parsers treat anything else differently. libxml2
 * reports an error. expat refuses a name that holds the character by which its caller divides names,
 * such as `}` or a space. Names that are not URI references are therefore refused, and so are reserved
 * names. A name that was accepted lately is not checked again.
 *
 * @throws StreamFailure
 */
export function namespaceName(bytes: Uint8Array, start: number, end: number): string {
  const length = end - start;
  if (length > MAX_REMEMBERED_BYTES) return checked(bytes, start, end);
  let hash = length;
  for (let i = start; i < end; i++) hash = (Math.imul(hash, 31) + bytes[i]!) | 0;
  const slot = (hash ^ (hash >>> 12)) & (SLOTS - 1);
  const known = slots[slot]!;
  if (known.length === length && isSame(known, bytes, start)) return known;
  const name = checked(bytes, start, end);
  // A value written with a reference is not the text of the name.
  if (bytes.subarray(start, end).indexOf(AMP) === -1) slots[slot] = name;
  return name;
}

/** True for a name that `namespaceName` accepts. */
export function isNamespaceName(name: string): boolean {
  return name.length <= MAX_NAMESPACE_LENGTH && URI_REFERENCE.test(name);
}

function checked(bytes: Uint8Array, start: number, end: number): string {
  const name = decodeValue(bytes, start, end);
  if (name.length > MAX_NAMESPACE_LENGTH) {
    failScan("policy-violation", `a namespace of more than ${MAX_NAMESPACE_LENGTH} characters`);
  }
  if (!URI_REFERENCE.test(name)) failScan("policy-violation", "a namespace that is not a URI");
  return name;
}

function isSame(text: string, bytes: Uint8Array, start: number): boolean {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) !== bytes[start + i]) return false;
  }
  return true;
}

/** True for the namespaces reserved for `xml` and `xmlns` (XML Namespaces §3). */
export function isReservedNamespace(name: string): boolean {
  return name === XML_NAMESPACE || name === XMLNS_NAMESPACE;
}

/**
 * Builds the expression. Only one part of it looks at each character of the input, so it runs in linear
 * time.
 */
function makeUriReference(): RegExp {
  const escaped = "%[0-9A-Fa-f]{2}";
  const plain = "A-Za-z0-9._~!$&'()*+,;=\\-";
  const scheme = "[A-Za-z][A-Za-z0-9+.-]*:";
  const user = `(?:[${plain}:]|${escaped})*@`;
  const host = `(?:[${plain}]|${escaped})*`;
  const authority = `//(?:${user})?${host}(?::[0-9]{1,5})?(?![^/?#])`;
  const segments = `(?:[${plain}:@/]|${escaped})*`;
  const path = `(?!//)${segments}`;
  const relative = `(?!//)(?![^/?#]*:)${segments}`;
  const tail = `(?:\\?(?:[${plain}:@/?]|${escaped})*)?(?:#(?:[${plain}:@/?]|${escaped})*)?`;
  return new RegExp(
    `^(?:(?:${scheme})?${authority}${segments}|${scheme}${path}|${relative})${tail}$`,
  );
}
