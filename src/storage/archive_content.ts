import type { ChildElement, XmlElement } from "../xmpp/mod.ts";
import {
  childElements,
  CLIENT_NAMESPACE,
  directText,
  FullJid,
  parseElement,
  stanzaSource,
  tryParseJid,
} from "../xmpp/mod.ts";
import type { ArchivePeer } from "./archive_store.ts";

/** Payloads of encrypted messages, which need not have a body. */
export const ENCRYPTED: ReadonlySet<string> = new Set([
  "eu.siacs.conversations.axolotl",
  "urn:xmpp:omemo:2",
]);
/** Elements of messages whose body is encrypted, or stands in for what is. */
const HIDING: ReadonlySet<string> = new Set([
  ...ENCRYPTED,
  "urn:xmpp:eme:0",
  "urn:xmpp:openpgp:0",
  "jabber:x:encrypted",
]);
/** Longest text of a message that searches look at, in UTF-16 units. */
const MAX_TEXT = 65_536;

/**
 * Returns the text that searches find a message by: the beginning of its bodies. Empty for a message
 * that is encrypted. Pure.
 */
export function searchableText({ bytes }: { readonly bytes: Uint8Array }): string {
  const bodies: ChildElement[] = [];
  for (const child of childElements(stanzaSource(bytes))) {
    if (HIDING.has(child.namespace)) return "";
    if (child.namespace === CLIENT_NAMESPACE && child.name === "body") bodies.push(child);
  }
  let text = "";
  for (const body of bodies) {
    text += `${text === "" ? "" : "\n"}${directText(body)}`;
    if (text.length > MAX_TEXT) break;
  }
  // The cut may be in the middle of a character.
  return text.length <= MAX_TEXT ? text : text.slice(0, MAX_TEXT).toWellFormed();
}

/**
 * Returns the other side of an archived message, as its addresses show it. Undefined when the stanza
 * shows none. Pure.
 *
 * @param owner bare JID of the archive
 */
export function peerIn(stanza: Uint8Array, owner: string): ArchivePeer | undefined {
  let addresses: readonly (string | undefined)[];
  try {
    const { attributes } = parseElement(stanza);
    addresses = [attributes["from"], attributes["to"]];
  } catch {
    return undefined; // no stanza that this program stored
  }
  const [from, to] = addresses.map((text) => text === undefined ? undefined : tryParseJid(text));
  const peer = from?.bare.text === owner ? to : from;
  if (peer === undefined) return undefined;
  const resourcepart = peer instanceof FullJid ? peer.resourcepart : "";
  return { bare: peer.bare.text, resourcepart };
}

/**
 * Returns who has written a message in the archive of a room: the room, with the resource that the
 * message comes from. Pure.
 *
 * @param room bare JID of the room
 */
export function roomPeerIn(
  { attributes }: Pick<XmlElement, "attributes">,
  room: string,
): ArchivePeer {
  const from = attributes["from"] ?? room;
  const resourcepart = from.startsWith(`${room}/`) ? from.slice(room.length + 1) : "";
  return { bare: room, resourcepart };
}
