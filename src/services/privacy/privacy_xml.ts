import type { StanzaErrorCondition, XmlElement } from "../../xmpp/mod.ts";
import { element, parseElement, serialize, tryParseJid } from "../../xmpp/mod.ts";
import type { PrivacyItem, PrivacyKind, PrivacyMatch } from "./privacy_list.ts";
import { PRIVACY_KINDS, PrivacyList } from "./privacy_list.ts";

/** Namespace of privacy lists (XEP-0016). */
export const PRIVACY_NAMESPACE = "jabber:iq:privacy";
/** Namespace of the blocking command (XEP-0191). */
export const BLOCKING_NAMESPACE = "urn:xmpp:blocking";

const ORDER = /^(0|[1-9][0-9]{0,9})$/;
const MAX_ORDER = 0xffff_ffff;
const SUBSCRIPTIONS = ["none", "to", "from", "both"] as const;

/**
 * Reads the items of a list.
 * @returns the condition of the error when the list breaks a rule
 */
export function readItems(list: XmlElement): readonly PrivacyItem[] | StanzaErrorCondition {
  const items: PrivacyItem[] = [];
  const orders = new Set<number>();
  for (const child of list.elements) {
    if (child.name !== "item" || child.namespace !== list.namespace) return "bad-request";
    const item = readItem(child);
    if (typeof item === "string") return item;
    if (orders.has(item.order)) return "bad-request";
    orders.add(item.order);
    items.push(item);
  }
  return items;
}

/** Returns the element of a list with all of its items. */
export function listElement({ name, items }: Pick<PrivacyList, "name" | "items">): XmlElement {
  return element("list", { xmlns: PRIVACY_NAMESPACE, name }, ...items.map(itemElement));
}

/** Returns the text of a list, as it is stored. */
export function listText(list: Pick<PrivacyList, "name" | "items">): string {
  return serialize(listElement(list));
}

/** Reads a list as it is stored; undefined for a text that is not ours. */
export function tryReadStored(name: string, xml: string): PrivacyList | undefined {
  let items;
  try {
    items = readItems(parseElement(new TextEncoder().encode(xml)));
  } catch {
    return undefined; // the caller says so
  }
  return typeof items === "string" ? undefined : new PrivacyList(name, items);
}

/**
 * Reads the JIDs of a blocking command.
 * @returns the condition of the error when the command breaks a rule
 */
export function readBlockedJids(command: XmlElement): readonly string[] | StanzaErrorCondition {
  const jids: string[] = [];
  for (const child of command.elements) {
    if (child.name !== "item" || child.namespace !== BLOCKING_NAMESPACE) return "bad-request";
    const text = child.attribute("jid");
    if (text === undefined) return "bad-request";
    const jid = tryParseJid(text);
    if (jid === undefined) return "jid-malformed";
    jids.push(jid.text);
  }
  return jids;
}

/** Returns an element of the blocking command, with items for these JIDs. */
export function blockingElement(
  name: "block" | "unblock" | "blocklist",
  jids: readonly string[],
): XmlElement {
  const items = jids.map((jid) => element("item", { jid }));
  return element(name, { xmlns: BLOCKING_NAMESPACE }, ...items);
}

/** Returns the push that tells of a changed list (XEP-0016 §2.2). */
export function listPush(name: string): XmlElement {
  return element("query", { xmlns: PRIVACY_NAMESPACE }, element("list", { name }));
}

function itemElement({ match, action, order, kinds }: PrivacyItem): XmlElement {
  const about = match.type === "any" ? {} : { type: match.type, value: match.value };
  return element(
    "item",
    { ...about, action, order: String(order) },
    ...kinds.map((kind) => element(kind)),
  );
}

function readItem(item: XmlElement): PrivacyItem | StanzaErrorCondition {
  const action = item.attribute("action");
  if (action !== "allow" && action !== "deny") return "bad-request";
  const written = item.attribute("order") ?? "";
  const order = Number(written);
  if (!ORDER.test(written) || order > MAX_ORDER) return "bad-request";
  const match = readMatch(item.attribute("type"), item.attribute("value"));
  if (typeof match === "string") return match;
  const named = new Set<string>();
  for (const { name, namespace } of item.elements) {
    if (namespace !== item.namespace || !isKind(name)) return "bad-request";
    named.add(name);
  }
  return { match, action, order, kinds: PRIVACY_KINDS.filter((kind) => named.has(kind)) };
}

function readMatch(
  type: string | undefined,
  value: string | undefined,
): PrivacyMatch | StanzaErrorCondition {
  if (type === undefined) return { type: "any" };
  if (value === undefined) return "bad-request";
  switch (type) {
    case "jid": {
      const jid = tryParseJid(value);
      return jid === undefined ? "jid-malformed" : { type, value: jid.text };
    }
    case "group":
      return { type, value };
    case "subscription": {
      const found = SUBSCRIPTIONS.find((each) => each === value);
      return found === undefined ? "bad-request" : { type, value: found };
    }
    default:
      return "bad-request";
  }
}

function isKind(name: string): name is PrivacyKind {
  return PRIVACY_KINDS.some((kind) => kind === name);
}
