import type { Subscription } from "../../storage/mod.ts";
import type { Jid, Stanza } from "../../xmpp/mod.ts";
import { FullJid, tryParseJid } from "../../xmpp/mod.ts";

/** A kind of stanza that an item may name (XEP-0016 §2.1). */
export type PrivacyKind = "message" | "iq" | "presence-in" | "presence-out";

/** All kinds, in the order in which an item names them. */
export const PRIVACY_KINDS: readonly PrivacyKind[] = [
  "message",
  "iq",
  "presence-in",
  "presence-out",
];

/** Kind of a stanza. `other` is what no item can name by itself: only items for all stanzas apply. */
export type StanzaAspect = PrivacyKind | "other";

/** The addresses that an item applies to; `any` is the fall-through case. */
export type PrivacyMatch =
  | { readonly type: "jid"; readonly value: string }
  | { readonly type: "group"; readonly value: string }
  | { readonly type: "subscription"; readonly value: Subscription }
  | { readonly type: "any" };

/** One rule of a privacy list. */
export interface PrivacyItem {
  readonly match: PrivacyMatch;
  readonly action: "allow" | "deny";
  /** Unique in its list; the lowest comes first. */
  readonly order: number;
  /** Empty: all stanzas, in both directions. */
  readonly kinds: readonly PrivacyKind[];
}

/** Facts of a roster that rules by group or subscription depend on. */
export interface PrivacyContact {
  readonly subscription: Subscription;
  readonly groups: readonly string[];
}

/** Returns the contact with this bare JID; undefined for one that is not in the roster. */
export type ContactOf = (bareJid: string) => PrivacyContact | undefined;

/** Returns the kind of a stanza on its way to the owner of a list. */
export function aspectInbound({ kind, type }: Stanza): StanzaAspect {
  if (kind !== "presence") return kind;
  return type === "available" || type === "unavailable" ? "presence-in" : "other";
}

/** Returns the kind of a stanza on its way from the owner of a list. */
export function aspectOutbound({ kind, type }: Stanza): StanzaAspect {
  const isNotification = kind === "presence" && (type === "available" || type === "unavailable");
  return isNotification ? "presence-out" : "other";
}

/** One privacy list, ready to be applied: a lookup takes the same time however long the list is. */
export class PrivacyList {
  readonly name: string;
  /** In their order. */
  readonly items: readonly PrivacyItem[];
  /** True when a rule depends on the owner's roster. */
  readonly needsRoster: boolean;
  readonly #byJid = new Map<string, PrivacyItem[]>();
  /** Items without a JID, in their order. */
  readonly #others: readonly PrivacyItem[];

  constructor(name: string, items: readonly PrivacyItem[]) {
    this.name = name;
    this.items = items.toSorted((one, other) => one.order - other.order);
    for (const item of this.items) {
      if (item.match.type !== "jid") continue;
      const found = this.#byJid.get(item.match.value);
      if (found === undefined) this.#byJid.set(item.match.value, [item]);
      else found.push(item);
    }
    this.#others = this.items.filter(({ match }) => match.type !== "jid");
    this.needsRoster = this.#others.some(({ match }) => match.type !== "any");
  }

  /** True when the first rule that applies says so (XEP-0016 §2.2). */
  denies(address: Jid, aspect: StanzaAspect, contactOf: ContactOf): boolean {
    let first: PrivacyItem | undefined;
    const consider = (item: PrivacyItem | undefined) => {
      if (item !== undefined && (first === undefined || item.order < first.order)) first = item;
    };
    if (this.#byJid.size > 0) {
      for (const name of namesOf(address)) {
        consider(this.#byJid.get(name)?.find((item) => covers(item, aspect)));
      }
    }
    if (this.#others.length > 0) {
      const contact = this.needsRoster ? contactOf(address.bare.text) : undefined;
      consider(
        this.#others.find((item) => covers(item, aspect) && isAbout(item.match, contact)),
      );
    }
    return first?.action === "deny";
  }
}

/** True when a list denies stanzas between its owner and everybody whom no other rule is about. */
export function deniesOthers({ items }: PrivacyList, aspect: StanzaAspect): boolean {
  return items.find((item) => item.match.type === "any" && covers(item, aspect))?.action === "deny";
}

/** Returns the JIDs that a list blocks for all stanzas: what the block list shows (XEP-0191 §4). */
export function blockedIn(list: PrivacyList | undefined): readonly string[] {
  return (list?.items ?? []).flatMap((item) =>
    isBlock(item) && item.match.type === "jid" ? [item.match.value] : []
  );
}

/** Returns the clients of people that a list names by their full JIDs. */
export function devicesIn({ items }: PrivacyList): readonly FullJid[] {
  return items.flatMap(({ match }) => {
    const jid = match.type === "jid" ? tryParseJid(match.value) : undefined;
    return jid instanceof FullJid && jid.localpart !== "" ? [jid] : [];
  });
}

/** True when a list blocks these JIDs before all other rules, which might let them in. */
export function blocksFirst(list: PrivacyList | undefined, jids: readonly string[]): boolean {
  const blocked = new Set<string>();
  for (const item of list?.items ?? []) {
    if (!isBlock(item) || item.match.type !== "jid") break;
    blocked.add(item.match.value);
  }
  return jids.every((jid) => blocked.has(jid));
}

/** Returns the items of a list with these JIDs blocked, before all other items. */
export function withBlocked(
  list: PrivacyList | undefined,
  jids: readonly string[],
): readonly PrivacyItem[] {
  const known = new Set(blockedIn(list));
  const added = [...new Set(jids)].filter((jid) => !known.has(jid)).map((value): PrivacyItem => ({
    match: { type: "jid", value },
    action: "deny",
    order: 0,
    kinds: [],
  }));
  const items = list?.items ?? [];
  return renumbered([
    ...added,
    ...items.filter(isBlock),
    ...items.filter((item) => !isBlock(item)),
  ]);
}

/**
 * Returns the items of a list without the blocks of these JIDs.
 * @param jids undefined: without all blocks
 */
export function withoutBlocked(
  list: PrivacyList | undefined,
  jids: readonly string[] | undefined,
): readonly PrivacyItem[] {
  const freed = jids === undefined ? undefined : new Set(jids);
  return renumbered(
    (list?.items ?? []).filter((item) =>
      !isBlock(item) || item.match.type !== "jid" || freed?.has(item.match.value) === false
    ),
  );
}

/** Returns the names by which items may mean an address (XEP-0016 §2.1). */
function* namesOf(address: Jid): Generator<string> {
  const { text, bare, domainpart } = address;
  yield text;
  if (address instanceof FullJid) {
    yield bare.text;
    if (address.localpart !== "") yield `${domainpart}/${address.resourcepart}`;
  }
  if (address.localpart !== "") yield domainpart;
  for (let dot = domainpart.indexOf("."); dot !== -1; dot = domainpart.indexOf(".", dot + 1)) {
    yield domainpart.slice(dot + 1);
  }
}

function covers({ kinds }: PrivacyItem, aspect: StanzaAspect): boolean {
  return kinds.length === 0 || (aspect !== "other" && kinds.includes(aspect));
}

function isAbout(match: PrivacyMatch, contact: PrivacyContact | undefined): boolean {
  switch (match.type) {
    case "any":
      return true;
    case "group":
      return contact?.groups.includes(match.value) === true;
    case "subscription":
      return (contact?.subscription ?? "none") === match.value;
    case "jid":
      return false; // these are found by their names
    default:
      return match satisfies never;
  }
}

/** True for an item that the block list shows: it blocks a JID for all stanzas (XEP-0191 §4). */
export function isBlock({ match, action, kinds }: PrivacyItem): boolean {
  return match.type === "jid" && action === "deny" && kinds.length === 0;
}

/** Returns the items in this order, with orders that say so. */
export function renumbered(items: readonly PrivacyItem[]): readonly PrivacyItem[] {
  return items.map((item, index) => ({ ...item, order: index + 1 }));
}

/** Returns the groups of the roster that items name. */
export function groupsIn(items: readonly PrivacyItem[]): readonly string[] {
  return items.flatMap(({ match }) => match.type === "group" ? [match.value] : []);
}
