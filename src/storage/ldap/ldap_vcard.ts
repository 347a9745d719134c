import { Buffer } from "node:buffer";
import type { XmlElement } from "../../xmpp/mod.ts";
import { element, serialize } from "../../xmpp/mod.ts";
import type { LdapEntry } from "./ldap_entry.ts";

/** Fields of a vCard that an attribute can fill, as MongooseIM names them. */
export const VCARD_FIELDS = [
  ...["FN", "FAMILY", "GIVEN", "MIDDLE", "NICKNAME", "BDAY", "PHOTO", "STREET", "LOCALITY"],
  ...["REGION", "PCODE", "CTRY", "TEL", "EMAIL", "TITLE", "ROLE", "ORGNAME", "ORGUNIT", "URL"],
  "DESC",
] as const;

/** Source of one field of the vCards. */
export interface VcardMapping {
  readonly field: string;
  /** Its text: `%s` stands for the attribute's value, `%u` for the localpart, `%d` for the host. */
  readonly pattern: string;
  /** Empty for a pattern without `%s`. */
  readonly attribute: string;
}

/** Sources of the fields by default: the attributes of `inetOrgPerson` (RFC 2798). */
export const DEFAULT_VCARD_MAP: readonly VcardMapping[] = [
  ...([
    ["FN", "displayName"],
    ["FN", "cn"],
    ["FAMILY", "sn"],
    ["GIVEN", "givenName"],
    ["MIDDLE", "initials"],
    ["ORGNAME", "o"],
    ["ORGUNIT", "ou"],
    ["CTRY", "c"],
    ["LOCALITY", "l"],
    ["STREET", "street"],
    ["REGION", "st"],
    ["PCODE", "postalCode"],
    ["TITLE", "title"],
    ["URL", "labeledURI"],
    ["DESC", "description"],
    ["TEL", "telephoneNumber"],
    ["EMAIL", "mail"],
    ["BDAY", "birthDay"],
    ["ROLE", "employeeType"],
    ["PHOTO", "jpegPhoto"],
  ] as const).map(([field, attribute]) => ({ field, pattern: "%s", attribute })),
  { field: "NICKNAME", pattern: "%u", attribute: "" },
];

/** UTF-16 units of a text; the rest of a longer one is left out. */
const MAX_UNITS = 4_096;
/** Bytes of a photo; a larger one is left out, as few clients would take the stanza. */
const MAX_PHOTO_BYTES = 96 * 1024;
/** Characters that XML 1.0 §2.2 has not. */
// deno-lint-ignore no-control-regex -- controls are what is left out
const NO_XML = /[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\p{Cs}]/gu;

/** Returns the vCard (XEP-0054) of an entry as XML. */
export function vcardOf(
  entry: LdapEntry,
  map: readonly VcardMapping[],
  account: { readonly localpart: string; readonly domainpart: string },
): string {
  const texts = new Map<string, string>();
  for (const { field, pattern, attribute } of map) {
    if (texts.has(field) || field === "PHOTO") continue;
    const value = attribute === "" ? "" : entry.text(attribute);
    if (value === "" && pattern.includes("%s")) continue;
    const variables: Readonly<Record<string, string>> = {
      s: value,
      u: account.localpart,
      d: account.domainpart,
    };
    const text = pattern.replace(/%([sud])/g, (_, name: string) => variables[name]!);
    texts.set(field, text.replace(NO_XML, "").slice(0, MAX_UNITS));
  }
  const photos = map.filter(({ field }) => field === "PHOTO");
  const photo = photos.map(({ attribute }) => entry.bytes(attribute)).find((each) => each);
  return serialize(
    element("vCard", { xmlns: "vcard-temp" }, ...elementsOf(texts), ...photoElements(photo)),
  );
}

function elementsOf(texts: ReadonlyMap<string, string>): readonly XmlElement[] {
  const of = (...fields: readonly (string | readonly [name: string, field: string])[]) =>
    fields.flatMap((each) => {
      const [name, field] = typeof each === "string" ? [each, each] : each;
      const text = texts.get(field) ?? "";
      return text === "" ? [] : [element(name, {}, text)];
    });
  const group = (name: string, kinds: readonly string[], children: readonly XmlElement[]) =>
    children.length === 0
      ? []
      : [element(name, {}, ...kinds.map((kind) => element(kind)), ...children)];
  return [
    ...of("FN"),
    ...group("N", [], of("FAMILY", "GIVEN", "MIDDLE")),
    ...of("NICKNAME", "BDAY"),
    ...group("ADR", ["WORK"], of("STREET", "LOCALITY", "REGION", "PCODE", "CTRY")),
    ...group("TEL", ["WORK", "VOICE"], of(["NUMBER", "TEL"])),
    ...group("EMAIL", ["INTERNET", "PREF"], of(["USERID", "EMAIL"])),
    ...of("TITLE", "ROLE"),
    ...group("ORG", [], of("ORGNAME", "ORGUNIT")),
    ...of("URL", "DESC"),
  ];
}

function photoElements(photo: Uint8Array | undefined): readonly XmlElement[] {
  if (photo === undefined || photo.length === 0 || photo.length > MAX_PHOTO_BYTES) return [];
  const type = photo[0] === 0x89 && photo[1] === 0x50 ? "image/png" : "image/jpeg";
  const text = Buffer.from(photo).toString("base64");
  return [element("PHOTO", {}, element("TYPE", {}, type), element("BINVAL", {}, text))];
}
