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

/** An item as it is written. */
export interface WrittenPrivacyItem {
  readonly type: string | undefined;
  readonly value: string | undefined;
  readonly action: string | undefined;
  readonly order: string | undefined;
  /** Names of the stanzas that it is about; empty: all. */
  readonly kinds: readonly string[];
}

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
  if (item.elements.some(({ namespace }) => namespace !== item.namespace)) return "bad-request";
  return toPrivacyItem(writtenItem(item));
}

/** Returns what the element of an item says, unchecked. */
export function writtenItem(item: XmlElement): WrittenPrivacyItem {
  return {
    type: item.attribute("type"),
    value: item.attribute("value"),
    action: item.attribute("action"),
    order: item.attribute("order"),
    kinds: item.elements.map(({ name }) => name),
  };
}

/**
 * Makes an item of what is written.
 * @returns the condition of the error when it breaks a rule
 */
export function toPrivacyItem(written: WrittenPrivacyItem): PrivacyItem | StanzaErrorCondition {
  const { action, order = "", kinds } = written;
  if (action !== "allow" && action !== "deny") return "bad-request";
  if (!ORDER.test(order) || Number(order) > MAX_ORDER) return "bad-request";
  const match = readMatch(written.type, written.value);
  if (typeof match === "string") return match;
  if (!kinds.every(isKind)) return "bad-request";
  return {
    match,
    action,
    order: Number(order),
    kinds: PRIVACY_KINDS.filter((kind) => kinds.includes(kind)),
  };
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
