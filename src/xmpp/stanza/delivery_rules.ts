import { FullJid } from "../jid/jid.ts";
import type { Stanza } from "./stanza.ts";
import { isSubscription } from "./stanza.ts";

/**
 * Rule for a stanza whose full JID is not connected: `account` treats it like one for the bare JID,
 * `refuse` answers `service-unavailable`, `ignore` drops it.
 */
export type MissingResourceRule = "account" | "refuse" | "ignore";

/**
 * Applies RFC 6121 §8.5.3.2. Pure.
 *
 * @param isRerouted true when a session that should have got the message ended without acknowledging it:
 * a message of type `normal` then goes to the account's other resources, as `chat` always does
 */
export function ruleForMissingResource(stanza: Stanza, isRerouted: boolean): MissingResourceRule {
  const { kind, type } = stanza;
  switch (kind) {
    case "message":
      if (type === "error") return "ignore";
      return type === "chat" || (type === "normal" && isRerouted) ? "account" : "refuse";
    case "presence":
      return isPresenceForServer(stanza) ? "account" : "ignore";
    case "iq":
      return type === "get" || type === "set" ? "refuse" : "ignore";
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
export function isPresenceForServer(stanza: Stanza): boolean {
  return isSubscription(stanza) || (stanza.kind === "presence" && stanza.type === "probe");
}
