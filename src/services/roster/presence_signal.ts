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

/** A request of one node to the node of a session. The client never gets it. */
export interface PresenceSignal {
  /**
   * `parted`, in the name of the session's own account: to tell a contact of the end of the session's
   * presence. `again`, in the name of the contact: to send it the session's directed presence again.
   */
  readonly kind: "parted" | "again";
  readonly session: FullJid;
  /** Bare JID of the contact. */
  readonly contact: Jid;
}

/** Writes the payload of the request to tell `contact` of the end of a session's presence. */
export function partedPayload(contact: Jid): string {
  return serialize(element("parted", { xmlns: NAMESPACE, jid: contact.text }));
}

/** The payload of the request for directed presence. */
export const AGAIN_PAYLOAD = serialize(element("again", { xmlns: NAMESPACE }));

/** Reads a request of another node; undefined for all other stanzas. */
export function readSignal({ kind, type, from, to, bytes }: Stanza): PresenceSignal | undefined {
  if (kind !== "iq" || type !== "set" || !(to instanceof FullJid)) return undefined;
  if (from !== from.bare) return undefined; // a client's
  const payload = onlyChild(stanzaSource(bytes));
  if (payload?.namespace !== NAMESPACE) return undefined;
  if (from.text !== to.bare.text) {
    return payload.name === "again" ? { kind: "again", session: to, contact: from } : undefined;
  }
  if (payload.name !== "parted") return undefined;
  const contact = tryParseJid(attributeOf(payload, "jid") ?? "");
  return contact && { kind: "parted", session: to, contact: contact.bare };
}
