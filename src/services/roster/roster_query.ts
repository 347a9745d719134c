import type { RosterItem } from "../../storage/mod.ts";
import type { StanzaErrorCondition, XmlElement } from "../../xmpp/mod.ts";
import { escapeText, escapeValue, tryParseJid } from "../../xmpp/mod.ts";

/** Namespace of roster queries (RFC 6121 §2.1.1). */
export const ROSTER_NAMESPACE = "jabber:iq:roster";

/** Limits on rosters and their items. */
export interface RosterBounds {
  /** Items of a roster; one more is refused. At least 1. @default 10000 */
  readonly maxItems?: number;
  /** Requests that wait for one account's answers; one more is ignored. At least 1. @default 1000 */
  readonly maxRequests?: number;
  /** Groups of an item; at least 1. @default 100 */
  readonly maxGroups?: number;
  /** Bytes of the name of a contact or a group; at least 1. @default 1023 */
  readonly maxNameBytes?: number;
}

/** Fills in the defaults. */
export function resolveRosterBounds(bounds: RosterBounds = {}): Required<RosterBounds> {
  const { maxItems = 10_000, maxRequests = 1000, maxGroups = 100, maxNameBytes = 1023 } = bounds;
  return Object.freeze({ maxItems, maxRequests, maxGroups, maxNameBytes });
}

/** The state of a contact that a client wants its roster to have. */
export type RosterSet =
  | { readonly kind: "remove"; readonly contact: string }
  | {
    readonly kind: "update";
    readonly contact: string;
    readonly name: string;
    readonly groups: readonly string[];
  };

/**
 * Reads a roster set (RFC 6121 §2.3, §2.5). The subscription of the contact is not the client's to
 * set, so all of it but `remove` is ignored. Pure.
 *
 * @param owner bare JID of the account
 * @returns the condition of the error when the set breaks a rule
 */
export function readRosterSet(
  query: XmlElement,
  owner: string,
  bounds: Required<RosterBounds>,
): RosterSet | StanzaErrorCondition {
  const [item, ...others] = query.elements;
  if (item === undefined || others.length > 0) return "bad-request";
  if (item.name !== "item" || item.namespace !== ROSTER_NAMESPACE) return "bad-request";
  const text = item.attribute("jid");
  if (text === undefined) return "bad-request";
  const contact = tryParseJid(text)?.bare.text;
  if (contact === undefined) return "jid-malformed";
  if (contact === owner) return "not-allowed";
  if (item.attribute("subscription") === "remove") return { kind: "remove", contact };
  const name = item.attribute("name") ?? "";
  const groups = item.elements
    .filter((child) => child.name === "group" && child.namespace === ROSTER_NAMESPACE)
    .map((group) => group.text);
  if (new Set(groups).size < groups.length) return "bad-request";
  if (groups.includes("") || groups.length > bounds.maxGroups) return "not-acceptable";
  const isTooLong = (each: string) => utf8Bytes(each) > bounds.maxNameBytes;
  if (isTooLong(name) || groups.some(isTooLong)) return "not-acceptable";
  return { kind: "update", contact, name, groups };
}

/**
 * Writes an item as clients see it (RFC 6121 §2.1.2), for a roster query. Rosters are long, and asked
 * for at each login: trees of them would take several times as long.
 */
export function writeItem(item: RosterItem): string {
  const { jid, name, subscription, isAsking, isApproved, groups } = item;
  const start = `<item jid='${escapeValue(jid)}'` +
    (name === "" ? "" : ` name='${escapeValue(name)}'`) +
    ` subscription='${subscription}'` +
    (isAsking ? " ask='subscribe'" : "") +
    (isApproved ? " approved='true'" : "");
  if (groups.length === 0) return `${start}/>`;
  let written = `${start}>`;
  for (const group of groups) written += `<group>${escapeText(group)}</group>`;
  return `${written}</item>`;
}

/** Writes the item that tells clients of the end of one. */
export function writeRemoved(contact: string): string {
  return `<item jid='${escapeValue(contact)}' subscription='remove'/>`;
}

/**
 * Writes a roster query with these items.
 * @param version undefined: none is told
 */
export function writeRosterQuery(items: string, version: number | undefined): string {
  const ver = version === undefined ? "" : ` ver='${version}'`;
  return `<query xmlns='${ROSTER_NAMESPACE}'${ver}>${items}</query>`;
}

const ENCODER = new TextEncoder();

function utf8Bytes(text: string): number {
  return ENCODER.encode(text).length;
}
