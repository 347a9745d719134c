import { failScan } from "./scan_failure.ts";
import {
  CHAR_CLASS,
  NAME_PART,
  NAME_START,
  nameStep,
  notAChar,
  SPACE,
  utf8Step,
  VALUE,
} from "./xml_chars.ts";
import { skipReference } from "./xml_references.ts";

/**
 * Numbers kept for an attribute: start and end of its name, its colon or -1, start and end of its value.
 */
export const SPAN = 5;

/**
 * Longest name with its prefix, in bytes. libxml2 refuses names of more than 50 000; honest ones have
 * about 30.
 */
export const MAX_NAME_BYTES = 1024;

/** Largest number of attributes for which comparing all pairs is cheaper than a set. */
const PAIRWISE_ATTRIBUTES = 12;

const LT = 0x3c;
const GT = 0x3e;
const SLASH = 0x2f;
const EQUALS = 0x3d;
const AMP = 0x26;
const DOUBLE_QUOTE = 0x22;
const SINGLE_QUOTE = 0x27;
const COLON = 0x3a;

/**
 * Reads one whole start tag and remembers the positions of its parts. They are valid until its next
 * `scan`; all offsets are into the scanned buffer.
 */
export class TagScanner {
  nameStart = 0;
  nameEnd = 0;
  /** Position of the colon in the name, or -1. */
  colon = -1;
  isEmpty = false;
  /** Number of attributes, `SPAN` numbers each in `spans`. */
  count = 0;
  spans: Int32Array = new Int32Array(16 * SPAN);
  /** Index of the `xmlns` attribute, or -1. */
  xmlnsIndex = -1;
  /** True when element or attributes use or declare a prefix other than `xml`. */
  hasPrefixes = false;
  #nameColon = -1;

  /**
   * Reads the tag whose `<` is before `from`. Returns the position after its `>`, or -1 when `end` cuts
   * it off.
   * @throws StreamFailure
   */
  scan(bytes: Uint8Array, from: number, end: number, maxAttributes: number): number {
    this.count = 0;
    this.xmlnsIndex = -1;
    this.nameStart = from;
    let p = this.#skipName(bytes, from, end);
    if (p === -1) return -1;
    this.nameEnd = p;
    this.colon = this.#nameColon;
    this.hasPrefixes = this.colon !== -1 && !isXmlPrefix(bytes, from, this.colon);
    for (;;) {
      const before = p;
      while (p < end && (CHAR_CLASS[bytes[p]!]! & SPACE) !== 0) p++;
      if (p >= end) return -1;
      const byte = bytes[p]!;
      if (byte === GT) {
        this.isEmpty = false;
        p++;
        break;
      }
      if (byte === SLASH) {
        if (p + 1 >= end) return -1;
        if (bytes[p + 1] !== GT) failScan("not-well-formed", "a slash inside a tag");
        this.isEmpty = true;
        p += 2;
        break;
      }
      if (p === before) failScan("not-well-formed", "a tag whose parts no white space divides");
      if (this.count >= maxAttributes) {
        failScan("policy-violation", `more than ${maxAttributes} attributes on one element`);
      }
      p = this.#scanAttribute(bytes, p, end);
      if (p === -1) return -1;
    }
    if (this.count > 1) this.#refuseRepeats(bytes);
    return p;
  }

  #scanAttribute(bytes: Uint8Array, from: number, end: number): number {
    let p = this.#skipName(bytes, from, end);
    if (p === -1) return -1;
    const nameEnd = p;
    const colon = this.#nameColon;
    while (p < end && (CHAR_CLASS[bytes[p]!]! & SPACE) !== 0) p++;
    if (p >= end) return -1;
    if (bytes[p] !== EQUALS) failScan("not-well-formed", "an attribute without a value");
    p++;
    while (p < end && (CHAR_CLASS[bytes[p]!]! & SPACE) !== 0) p++;
    if (p >= end) return -1;
    const quote = bytes[p]!;
    if (quote !== SINGLE_QUOTE && quote !== DOUBLE_QUOTE) {
      failScan("not-well-formed", "an attribute value without quotes");
    }
    const valueStart = p + 1;
    p = skipValue(bytes, valueStart, end, quote);
    if (p === -1) return -1;
    const index = this.count++;
    if (colon !== -1) {
      if (!isXmlPrefix(bytes, from, colon)) this.hasPrefixes = true;
      else if (nameEnd - colon === 3) refuseXmlId(bytes, colon + 1);
    } else if (nameEnd - from === 5 && isXmlnsName(bytes, from)) {
      this.xmlnsIndex = index;
    }
    let at = index * SPAN;
    if (at === this.spans.length) {
      const larger = new Int32Array(at * 2);
      larger.set(this.spans);
      this.spans = larger;
    }
    const spans = this.spans;
    spans[at++] = from;
    spans[at++] = nameEnd;
    spans[at++] = colon;
    spans[at++] = valueStart;
    spans[at] = p;
    return p + 1;
  }

  /** Returns the position after the name (XML Namespaces §4), or -1; leaves its colon in `#nameColon`. */
  #skipName(bytes: Uint8Array, from: number, end: number): number {
    let p = from;
    this.#nameColon = -1;
    for (;;) {
      if (p >= end) return -1;
      if ((CHAR_CLASS[bytes[p]!]! & NAME_START) !== 0) {
        p++;
      } else {
        if (bytes[p]! < 0x80) failScan("not-well-formed", "a name with an invalid first character");
        const step = nameStep(bytes, p, end, true);
        if (step === 0) return -1;
        p += step;
      }
      for (; p < end; p++) {
        const byte = bytes[p]!;
        if ((CHAR_CLASS[byte]! & NAME_PART) !== 0) continue;
        if (byte < 0x80) break;
        const step = nameStep(bytes, p, end, false);
        if (step === 0) return -1;
        p += step - 1;
      }
      if (p >= end) return -1;
      if (bytes[p] !== COLON) {
        if (p - from > MAX_NAME_BYTES) {
          failScan("policy-violation", `a name of more than ${MAX_NAME_BYTES} bytes`);
        }
        return p;
      }
      if (this.#nameColon !== -1) failScan("not-well-formed", "a name with two colons");
      this.#nameColon = p++;
    }
  }

  #refuseRepeats(bytes: Uint8Array): void {
    const { spans, count } = this;
    if (count > PAIRWISE_ATTRIBUTES) {
      const seen = new Set<string>();
      for (let i = 0; i < count * SPAN; i += SPAN) {
        // Latin-1 is enough to tell byte strings apart.
        let name = "";
        for (let at = spans[i]!; at < spans[i + 1]!; at++) name += String.fromCharCode(bytes[at]!);
        if (seen.has(name)) failScan("not-well-formed", "an attribute given twice");
        seen.add(name);
      }
      return;
    }
    for (let i = SPAN; i < count * SPAN; i += SPAN) {
      const start = spans[i]!;
      const length = spans[i + 1]! - start;
      for (let j = 0; j < i; j += SPAN) {
        const other = spans[j]!;
        if (spans[j + 1]! - other !== length || !isEqual(bytes, start, other, length)) continue;
        failScan("not-well-formed", "an attribute given twice");
      }
    }
  }
}

/** Returns the position of the closing quote, or -1. */
function skipValue(bytes: Uint8Array, from: number, end: number, quote: number): number {
  let p = from;
  while (p < end) {
    const byte = bytes[p]!;
    if ((CHAR_CLASS[byte]! & VALUE) !== 0) {
      p++;
    } else if (byte === quote) {
      return p;
    } else if (byte === SINGLE_QUOTE || byte === DOUBLE_QUOTE) {
      p++;
    } else if (byte === AMP) {
      p = skipReference(bytes, p, end);
      if (p === -1) return -1;
    } else if (byte >= 0x80) {
      const step = utf8Step(bytes, p, end);
      if (step === 0) return -1;
      p += step;
    } else if (byte === LT) {
      failScan("not-well-formed", "a < in an attribute value");
    } else {
      notAChar(byte);
    }
  }
  return -1;
}

/** True when the `length` bytes at `one` and at `other` are the same. */
export function isEqual(bytes: Uint8Array, one: number, other: number, length: number): boolean {
  for (let i = 0; i < length; i++) {
    if (bytes[one + i] !== bytes[other + i]) return false;
  }
  return true;
}

/**
 * Refuses `xml:id`. It must be unique in the whole document, which for a client is its whole stream. Two
 * stanzas of different senders with the same `xml:id` are an error there.
 */
function refuseXmlId(bytes: Uint8Array, start: number): void {
  if (bytes[start] !== 0x69 || bytes[start + 1] !== 0x64) return;
  failScan("policy-violation", "an attribute xml:id");
}

function isXmlPrefix(bytes: Uint8Array, start: number, colon: number): boolean {
  return colon - start === 3 && bytes[start] === 0x78 && bytes[start + 1] === 0x6d &&
    bytes[start + 2] === 0x6c;
}

function isXmlnsName(bytes: Uint8Array, start: number): boolean {
  return bytes[start] === 0x78 && bytes[start + 1] === 0x6d && bytes[start + 2] === 0x6c &&
    bytes[start + 3] === 0x6e && bytes[start + 4] === 0x73;
}
