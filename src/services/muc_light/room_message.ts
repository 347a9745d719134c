import type { BareJid, Jid, Stanza, XmlElement } from "../../xmpp/mod.ts";
import { buildStanza, element, FullJid, stanzaElement } from "../../xmpp/mod.ts";
import { STANZA_IDS } from "../archive/mod.ts";
import { namesRoom } from "../rooms/mod.ts";
import { MUC_LIGHT } from "./namespaces.ts";

const DELAY = "urn:xmpp:delay";

/**
 * Returns the message of an occupant as the room sends it, without `to` and without elements that only
 * the room itself may put into it.
 *
 * @param message has few enough elements
 */
export function roomMessage(message: Stanza, room: BareJid): XmlElement {
  const { name, attributes, children } = stanzaElement(message);
  const kept = children.filter((child) => typeof child === "string" || !isRooms(child, room));
  const { to: _, ...others } = attributes;
  const from = new FullJid(room, message.from.bare.text).text;
  return element(name, { ...others, from }, ...kept);
}

/**
 * Returns such a message for `to`.
 *
 * @param number the room's number, which is its id there (XEP-0359); undefined when the archive of the
 * room has it not
 */
export function numberedMessage(
  { name, attributes, children }: XmlElement,
  { room, to, number }: {
    readonly room: BareJid;
    readonly to: Jid;
    readonly number: number | undefined;
  },
): Stanza {
  const id = number === undefined
    ? undefined
    : element("stanza-id", { xmlns: STANZA_IDS, by: room.text, id: `${number}` });
  return buildStanza(element(name, attributes, ...children, id), { to });
}

/** True for an element that only the room itself may put into a message. */
function isRooms({ name, namespace, attributes }: XmlElement, room: BareJid): boolean {
  if (namespace === DELAY) return namesRoom(attributes["from"], room.text);
  if (namespace === STANZA_IDS) {
    return name === "stanza-id" && namesRoom(attributes["by"], room.text);
  }
  return namespace === MUC_LIGHT || namespace.startsWith(`${MUC_LIGHT}#`);
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
