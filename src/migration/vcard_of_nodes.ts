import { ACCESS_MODEL } from "../services/pep/mod.ts";
import type { XmlElement } from "../xmpp/mod.ts";
import { element, parseElement } from "../xmpp/mod.ts";
import type { MovedNode } from "./moved_account.ts";

const VCARD4_NODE = "urn:xmpp:vcard4";
const AVATAR_DATA = "urn:xmpp:avatar:data";
const AVATAR_METADATA = "urn:xmpp:avatar:metadata";
/** Type of avatars whose metadata are missing: clients must offer it (XEP-0084 §4.2). */
const DEFAULT_TYPE = "image/png";

/** Properties with one text, by their names in vCard 4 (RFC 6350 §6). */
const TEXTS: ReadonlyMap<string, string> = new Map([
  ["fn", "FN"],
  ["nickname", "NICKNAME"],
  ["bday", "BDAY"],
  ["url", "URL"],
  ["title", "TITLE"],
  ["role", "ROLE"],
  ["note", "DESC"],
  ["uid", "UID"],
]);

/** Parts of a name and of an address, in their order (XEP-0054 §2). */
const NAME_PARTS = [
  ["surname", "FAMILY"],
  ["given", "GIVEN"],
  ["additional", "MIDDLE"],
  ["prefix", "PREFIX"],
  ["suffix", "SUFFIX"],
] as const;
const ADDRESS_PARTS = [
  ["pobox", "POBOX"],
  ["ext", "EXTADD"],
  ["street", "STREET"],
  ["locality", "LOCALITY"],
  ["region", "REGION"],
  ["code", "PCODE"],
  ["country", "CTRY"],
] as const;

/** Types of addresses and numbers that both forms have. */
const TYPES: ReadonlyMap<string, string> = new Map([
  ["home", "HOME"],
  ["work", "WORK"],
  ["voice", "VOICE"],
  ["fax", "FAX"],
  ["pager", "PAGER"],
  ["cell", "CELL"],
  ["video", "VIDEO"],
  ["text", "MSG"],
]);

/**
 * Returns the vCard (XEP-0054) that clients of the old kind see of an account whose vCard of XEP-0292
 * and avatar of XEP-0084 are in personal eventing. Everybody may read such a vCard, so that it has
 * nothing of a node that is not open. Undefined for an account without such nodes.
 */
export function vcardOfNodes(nodes: readonly MovedNode[]): XmlElement | undefined {
  const parts = [...propertiesIn(newestIn(nodes, VCARD4_NODE)), ...photoIn(nodes)];
  return parts.length === 0 ? undefined : element("vCard", { xmlns: "vcard-temp" }, ...parts);
}

/** Returns the payload of the newest item of a node that everybody may read. */
function newestIn(nodes: readonly MovedNode[], name: string): XmlElement | undefined {
  const node = nodes.find((each) => each.name === name);
  if (node?.options?.get(ACCESS_MODEL)?.[0] !== "open") return undefined;
  const item = node.items.at(-1);
  return item && parseElement(new TextEncoder().encode(item.xml));
}

function propertiesIn(card: XmlElement | undefined): readonly XmlElement[] {
  const found = new Map<string, XmlElement>();
  const several: XmlElement[] = [];
  for (const property of card?.elements ?? []) {
    const written = TEXTS.get(property.name);
    if (written !== undefined) found.set(written, element(written, {}, valueOf(property)));
    else if (property.name === "n") found.set("N", withParts("N", property, NAME_PARTS));
    else if (property.name === "org") found.set("ORG", organisation(property));
    else if (property.name === "adr") {
      several.push(withParts("ADR", property, ADDRESS_PARTS, typesOf(property, ["HOME", "WORK"])));
    } else if (property.name === "email") {
      const address = element("USERID", {}, valueOf(property));
      const types = typesOf(property, ["HOME", "WORK"]);
      several.push(element("EMAIL", {}, ...types, element("INTERNET"), address));
    } else if (property.name === "tel") {
      const number = element("NUMBER", {}, valueOf(property).replace(/^tel:/, ""));
      several.push(element("TEL", {}, ...typesOf(property, [...TYPES.values()]), number));
    }
  }
  return [...found.values(), ...several];
}

/** Returns the value of a property: behind its parameters, an element named after its type. */
function valueOf(property: XmlElement): string {
  return property.elements.find(({ name }) => name !== "parameters")?.text ?? "";
}

function withParts(
  name: string,
  property: XmlElement,
  parts: readonly (readonly [from: string, to: string])[],
  before: readonly XmlElement[] = [],
): XmlElement {
  const written = parts.map(([from, to]) => {
    const texts = property.elements.filter((each) => each.name === from).map(({ text }) => text);
    return element(to, {}, texts.join(" "));
  });
  return element(name, {}, ...before, ...written.filter(({ text }) => text !== ""));
}

function organisation(property: XmlElement): XmlElement {
  const [name = "", ...units] = property.elements.filter((each) => each.name === "text")
    .map(({ text }) => text);
  const written = units.map((unit) => element("ORGUNIT", {}, unit));
  return element("ORG", {}, element("ORGNAME", {}, name), ...written);
}

/** Returns the types of a property that are among `known`. */
function typesOf(property: XmlElement, known: readonly string[]): readonly XmlElement[] {
  const types = property.child("parameters")?.child("type")?.elements ?? [];
  const names = types.map(({ text }) => TYPES.get(text.toLowerCase()) ?? "");
  return known.filter((each) => names.includes(each)).map((each) => element(each));
}

function photoIn(nodes: readonly MovedNode[]): readonly XmlElement[] {
  const bytes = newestIn(nodes, AVATAR_DATA)?.text ?? "";
  if (bytes === "") return [];
  const type = newestIn(nodes, AVATAR_METADATA)?.child("info")?.attribute("type") ?? DEFAULT_TYPE;
  return [element("PHOTO", {}, element("TYPE", {}, type), element("BINVAL", {}, bytes))];
}
