import type { BareJid, Jid, Stanza, XmlElement } from "../../xmpp/mod.ts";
import { buildStanza, element, FullJid, stanzaElement } from "../../xmpp/mod.ts";

/** Namespace of the ids of a message in an archive or a room (XEP-0359). */
const STANZA_IDS = "urn:xmpp:sid:0";

/**
 * Returns the message of an occupant as the room sends it, to `to`. It has the room's number as its
 * id there (XEP-0359), and no other one of that room.
 *
 * @param message has few enough elements
 */
export function roomMessage(
  message: Stanza,
  { room, to, number }: { readonly room: BareJid; readonly to: Jid; readonly number: number },
): Stanza {
  const { name, attributes, children } = stanzaElement(message);
  const kept = children.filter((child) => typeof child === "string" || !isIdOf(child, room));
  const id = element("stanza-id", { xmlns: STANZA_IDS, by: room.text, id: `${number}` });
  const from = new FullJid(room, message.from.bare.text);
  return buildStanza(element(name, attributes, ...kept, id), { from, to });
}

function isIdOf(child: XmlElement, room: BareJid): boolean {
  return child.name === "stanza-id" && child.namespace === STANZA_IDS &&
    child.attribute("by") === room.text;
}

/** Returns a message of the room itself about a change. */
export function roomEvent(
  room: BareJid,
  to: Jid,
  { id, content }: { readonly id: string | undefined; readonly content: readonly XmlElement[] },
): Stanza {
  const message = element("message", { type: "groupchat", id }, ...content, element("body"));
  return buildStanza(message, { from: room, to });
}
