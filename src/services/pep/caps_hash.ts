import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { XmlElement } from "../../xmpp/mod.ts";
import { DATA_FORM } from "./namespaces.ts";

/** Entity capabilities as presence names them (XEP-0115 §4). */
export interface Caps {
  /** Name of the hash function; undefined in the legacy format. */
  readonly hash: string | undefined;
  readonly node: string;
  readonly ver: string;
}

/** Hash functions by their names in XEP-0300. */
const HASHES: ReadonlyMap<string, string> = new Map([
  ["sha-1", "sha1"],
  ["sha-256", "sha256"],
  ["sha-512", "sha512"],
]);

/** Suffix of features that ask for notifications (XEP-0060 §9.2). */
const NOTIFY = "+notify";
/** Nodes that one client may be interested in: each costs its node more queries at login. */
const MAX_INTERESTS = 100;
/** Characters of all node names that one client may be interested in; the rest is left out. */
const MAX_INTEREST_CHARS = 8_192;

/** True when the capabilities can be checked against their hash. */
export function isVerifiable({ hash }: Caps): boolean {
  return hash !== undefined && HASHES.has(hash);
}

/**
 * Returns the nodes that a client wants to be notified of.
 *
 * The names are taken from the very text that the hash is made of, not from the answer: different
 * answers may make the same text (XEP-0115 §8.2, security considerations). Whoever knows a text for
 * a hash, however it was written down, knows the same names. So no client can give the hash of
 * another one a meaning of its own.
 *
 * @param query the answer to disco#info
 * @returns undefined for an answer that is not what the hash says, or is ill-formed
 */
export function verifiedInterests(query: XmlElement, caps: Caps): ReadonlySet<string> | undefined {
  const text = verificationText(query);
  const hash = HASHES.get(caps.hash ?? "");
  if (text === undefined || hash === undefined) return undefined;
  if (createHash(hash).update(text).digest("base64") !== caps.ver) return undefined;
  return interestsIn(text.split("<"));
}

/** Returns the nodes of an answer that nobody vouches for: they count for its own client alone. */
export function statedInterests(query: XmlElement): ReadonlySet<string> {
  return interestsIn(featuresIn(query));
}

/**
 * Returns the text that capabilities are a hash of (XEP-0115 §5.1); undefined where features,
 * identities or forms are there twice (§5.4).
 */
export function verificationText(query: XmlElement): string | undefined {
  const identities = query.elements.filter(({ name }) => name === "identity").map((each) =>
    ["category", "type", "xml:lang", "name"].map((name) => each.attribute(name) ?? "").join("/")
  );
  const features = featuresIn(query);
  const forms = query.elements.filter(({ name, namespace }) =>
    name === "x" && namespace === DATA_FORM
  ).map(formText).filter((form) => form !== undefined);
  const types = forms.map(([type]) => type);
  if ([identities, features, types].some((each) => new Set(each).size < each.length)) {
    return undefined;
  }
  const parts = [
    ...sorted(identities),
    ...sorted(features),
    ...forms.toSorted(([one], [other]) => compare(one, other)).flat(),
  ];
  return parts.map((part) => `${part}<`).join("");
}

/** Returns the parts of a form, its type first; undefined for a form without a type (§5.4). */
function formText(form: XmlElement): [string, ...string[]] | undefined {
  const fields = form.elements.filter(({ name }) => name === "field");
  const valuesOf = (field: XmlElement) =>
    field.elements.filter(({ name }) => name === "value").map(({ text }) => text);
  const typeField = fields.find((field) => field.attribute("var") === "FORM_TYPE");
  if (typeField === undefined || typeField.attribute("type") !== "hidden") return undefined;
  const others = fields.filter((field) => field !== typeField)
    .toSorted((one, other) => compare(one.attribute("var") ?? "", other.attribute("var") ?? ""));
  return [
    valuesOf(typeField)[0] ?? "",
    ...others.flatMap((field) => [field.attribute("var") ?? "", ...sorted(valuesOf(field))]),
  ];
}

function featuresIn(query: XmlElement): readonly string[] {
  return query.elements.filter(({ name }) => name === "feature")
    .map((each) => each.attribute("var") ?? "");
}

function interestsIn(parts: readonly string[]): ReadonlySet<string> {
  const names = new Set<string>();
  let chars = 0;
  for (const part of parts) {
    if (!part.endsWith(NOTIFY)) continue;
    chars += part.length;
    if (chars > MAX_INTEREST_CHARS || names.size >= MAX_INTERESTS) break;
    names.add(part.slice(0, -NOTIFY.length));
  }
  return names;
}

function sorted(texts: readonly string[]): string[] {
  return texts.toSorted(compare);
}

/** Compares byte by byte ("i;octet", RFC 4790 §9.3). */
function compare(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}
