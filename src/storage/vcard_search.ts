import { parseElement } from "../xmpp/mod.ts";
import type { XmlElement } from "../xmpp/mod.ts";

/**
 * Fields by which people are found, each with the path of its text in a vCard (XEP-0054). Their
 * places in this list are the numbers by which stores keep them: new ones go to its end.
 */
export const SEARCH_FIELDS = [
  ["user", []],
  ["fn", ["FN"]],
  ["first", ["N", "GIVEN"]],
  ["middle", ["N", "MIDDLE"]],
  ["last", ["N", "FAMILY"]],
  ["nick", ["NICKNAME"]],
  ["bday", ["BDAY"]],
  ["ctry", ["ADR", "CTRY"]],
  ["locality", ["ADR", "LOCALITY"]],
  ["email", ["EMAIL", "USERID"]],
  ["orgname", ["ORG", "ORGNAME"]],
  ["orgunit", ["ORG", "ORGUNIT"]],
] as const satisfies readonly (readonly [string, readonly string[]])[];

/** Name of a field by which people are found. */
export type SearchField = typeof SEARCH_FIELDS[number][0];

/** One condition of a search. */
export interface SearchTerm {
  readonly field: SearchField;
  /** Text that the field has; one that ends with `*` is the begin of the field. */
  readonly text: string;
}

/** Options of a search. */
export interface SearchOptions {
  /** People that are found at most; at least 1. */
  readonly limit: number;
  /**
   * True finds everybody with a vCard that does not say otherwise. False finds those alone whose
   * vCard says that it is public (`<CLASS><PUBLIC/></CLASS>`).
   */
  readonly findsAll: boolean;
}

/** A person that was found, with the fields of the vCard that have a text. */
export interface FoundPerson {
  readonly localpart: string;
  readonly fields: ReadonlyMap<SearchField, string>;
}

/** Whether a person wants to be found: `0` not at all, `1` says nothing, `2` wants to. */
export type Visibility = 0 | 1 | 2;

/** A vCard as it is searched. */
export interface SearchEntry {
  readonly visibility: Visibility;
  readonly fields: ReadonlyMap<SearchField, string>;
}

/** Bytes of a text that is searched or shown. */
const MAX_BYTES = 255;
/** UTF-16 units of a text that are looked at. Normalising makes a unit up to 18 units long. */
const MAX_UNITS = 1_024;
const NAMESPACE = "vcard-temp";

const NOT_FOUND: SearchEntry = { visibility: 0, fields: new Map() };

/** Returns what is searched of an account's vCard. Of XML that is no vCard, nothing is. */
export function searchEntryOf(localpart: string, xml: string): SearchEntry {
  let vcard: XmlElement;
  try {
    vcard = parseElement(new TextEncoder().encode(xml));
  } catch {
    return NOT_FOUND; // kept as it is
  }
  // Its JID could not be shown whole.
  if (new TextEncoder().encode(localpart).length > MAX_BYTES) return NOT_FOUND;
  const fields = new Map<SearchField, string>();
  for (const [field, path] of SEARCH_FIELDS) {
    const text = field === "user" ? localpart : textAt(vcard, path);
    const shown = cut(text.slice(0, MAX_UNITS).trim());
    if (shown !== "") fields.set(field, shown);
  }
  return { visibility: visibilityOf(vcard), fields };
}

/** Returns the text by which two texts are compared, whatever their case and spaces. */
export function comparedText(text: string): string {
  const folded = text.slice(0, MAX_UNITS).normalize("NFKC").toLowerCase();
  return cut(folded.replaceAll(/\s+/gu, " ").trim());
}

function visibilityOf(vcard: XmlElement): Visibility {
  if (vcard.name !== "vCard" || vcard.namespace !== NAMESPACE) return 0;
  const own = vcard.child("CLASS");
  if (own === undefined) return 1;
  return own.child("PUBLIC") === undefined ? 0 : 2;
}

function textAt(vcard: XmlElement, path: readonly string[]): string {
  let at: XmlElement | undefined = vcard;
  for (const name of path) at = at?.child(name, NAMESPACE);
  return at?.text ?? "";
}

/** Cuts a text to what a column holds, between characters. */
function cut(text: string): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= MAX_BYTES) return text;
  let end = MAX_BYTES;
  while ((bytes[end]! & 0xc0) === 0x80) end--;
  return new TextDecoder().decode(bytes.subarray(0, end));
}
