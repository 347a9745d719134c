import type { Jid, Stanza } from "../../xmpp/mod.ts";
import {
  attributeOf,
  element,
  FullJid,
  onlyChild,
  serialize,
  stanzaSource,
  tryParseJid,
} from "../../xmpp/mod.ts";

const NAMESPACE = "urn:causeway:presence:0";

/**
 * A request of one node to the node of a session, in the name of the session's own account: to tell
 * `contact` of the end of the session's presence. The client never gets it.
 */
export interface PresenceSignal {
  readonly session: FullJid;
  /** Bare JID of an account that may no longer see the session. */
  readonly contact: Jid;
}

/** Writes the payload of the request to tell `contact` of the end of a session's presence. */
export function partedPayload(contact: Jid): string {
  return serialize(element("parted", { xmlns: NAMESPACE, jid: contact.text }));
}

/** Reads a request of another node; undefined for all other stanzas. */
export function readSignal({ kind, type, from, to, bytes }: Stanza): PresenceSignal | undefined {
  if (kind !== "iq" || type !== "set" || !(to instanceof FullJid)) return undefined;
  if (from !== from.bare || from.text !== to.bare.text) return undefined; // no client's
  const payload = onlyChild(stanzaSource(bytes));
  if (payload?.namespace !== NAMESPACE || payload.name !== "parted") return undefined;
  const contact = tryParseJid(attributeOf(payload, "jid") ?? "");
  return contact && { session: to, contact: contact.bare };
}
