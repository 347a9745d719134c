import { FullJid } from "../jid/jid.ts";
import { findChild, stanzaSource } from "../xml/child_elements.ts";
import type { Stanza } from "./stanza.ts";
import { isSubscription } from "./stanza.ts";

const MUC_USER_NAMESPACE = "http://jabber.org/protocol/muc#user";

/**
 * Rule for a stanza to a user (RFC 6121 §8.5):
 *
 * | rule | meaning |
 * | --- | --- |
 * | `resource` | the addressed full JID gets it, and no other resource |
 * | `account` | available resources of the account get it, by `leastPriority` |
 * | `missing` | it is for a full JID that is not connected; without it, `service-unavailable` |
 * | `answer`, `refuse`, `ignore` | as `AccountRule` says; `ignore` also without the addressed full JID |
 */
export type DeliveryRule = "resource" | "account" | "missing" | AccountRule;

/**
 * Returns the rule for a stanza to a user. Pure.
 *
 * @param isConnected true when the addressed full JID is connected
 * @param isRerouted true when a session that should have got the message ended without acknowledging it:
 * a message of type `normal` then goes to the account's other resources, as `chat` always does
 * @param isFromRoom true for a stanza of a room of ours. What a room sends to an account is for all of its
 * resources, and not refused. What it sends to a resource is for that one alone, as the others get
 * their own if they are in the room. Private messages of other rooms are known by their content.
 * @default false
 */
export function deliveryRule(
  stanza: Stanza,
  isConnected: boolean,
  isRerouted: boolean,
  isFromRoom = false,
): DeliveryRule {
  if (!(stanza.to instanceof FullJid)) {
    const isForOccupant = isFromRoom && stanza.kind === "message" && stanza.type === "groupchat";
    return isForOccupant ? "account" : ruleForAccount(stanza) ?? "account";
  }
  if (isPresenceForServer(stanza)) return "account";
  if (isConnected) return "resource";
  return ruleForMissingResource(stanza, isRerouted, isFromRoom || isPrivateInRoom(stanza));
}

/**
 * True for a private message between occupants of a room anywhere, such as at a component (XEP-0045
 * §7.5). Each device in the room gets its own, and the others cannot answer.
 */
function isPrivateInRoom({ kind, type, from, bytes }: Stanza): boolean {
  return kind === "message" && type === "chat" && from instanceof FullJid &&
    findChild(stanzaSource(bytes), "x", MUC_USER_NAMESPACE) !== undefined;
}

/**
 * Returns the lowest priority at which an available resource of the account gets a stanza of rule
 * `account` (RFC 6121 §8.5.2.1); Infinity when none gets it. Pure.
 *
 * @param highest highest priority of other available resources of the account. Default: there is none
 */
export function leastPriority(
  { kind, type }: Stanza,
  resources: readonly { readonly priority: number | undefined }[],
  highest = -1,
): number {
  // Probes and errors concern the server, which has no answer to them without rosters.
  if (kind === "presence") return type === "probe" || type === "error" ? Infinity : -128;
  if (type === "headline" || type === "groupchat") return 0;
  for (const { priority } of resources) {
    if (priority !== undefined && priority > highest) highest = priority;
  }
  return highest < 0 ? Infinity : highest;
}

/** RFC 6121 §8.5.3.2. */
function ruleForMissingResource(
  { kind, type }: Stanza,
  isRerouted: boolean,
  isFromRoom: boolean,
): DeliveryRule {
  switch (kind) {
    case "message":
      if (type === "error") return "ignore";
      if (isFromRoom) return "missing";
      return type === "chat" || (type === "normal" && isRerouted) ? "account" : "missing";
    case "presence":
      return "ignore";
    case "iq":
      return type === "get" || type === "set" ? "missing" : "ignore";
    default:
      return kind satisfies never;
  }
}

/**
 * Rule for a stanza to a bare JID, whichever resources of the account are connected. `answer` lets the
 * server answer a request on behalf of the account, `refuse` answers `service-unavailable`, `ignore`
 * drops it.
 */
export type AccountRule = "answer" | "refuse" | "ignore";

/**
 * Applies the rows of RFC 6121 §8.5.1 and §8.5.2 that are the same for accounts that are online, offline
 * or do not exist. Undefined for a full JID, and where resources of the account decide. Pure.
 */
export function ruleForAccount({ kind, type, to }: Stanza): AccountRule | undefined {
  if (kind === "presence" || to instanceof FullJid) return undefined;
  if (kind === "iq") return type === "get" || type === "set" ? "answer" : "ignore";
  if (type === "groupchat") return "refuse";
  return type === "error" ? "ignore" : undefined;
}

/** True for presence that the server handles itself by RFC 6121 §8.5.3.1, even for a connected full JID. */
function isPresenceForServer(stanza: Stanza): boolean {
  return isSubscription(stanza) || (stanza.kind === "presence" && stanza.type === "probe");
}
