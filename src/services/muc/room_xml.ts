import { createHmac } from "node:crypto";
import type { BareJid, Jid, Stanza, XmlElement } from "../../xmpp/mod.ts";
import { buildStanza, element, parseElement, serialize } from "../../xmpp/mod.ts";
import { namesRoom } from "../rooms/mod.ts";
import { DELAY, MUC, MUC_USER, OCCUPANT_ID, STANZA_IDS } from "./namespaces.ts";
import type { Affiliation, Standing } from "./room_standing.ts";

/** Facts about a presence that the room adds to it (XEP-0045 §7, §9). */
export interface PresenceNotes {
  /** Status codes. */
  readonly codes?: readonly string[];
  /** New nickname of somebody who changes it. */
  readonly newNick?: string;
  /** Affiliation of somebody who leaves because of it. @default the one that they had */
  readonly affiliation?: Affiliation;
  /** Nickname of the one who has caused it. */
  readonly actor?: string;
  readonly reason?: string;
  /** Set when the room is gone. */
  readonly destroyed?: { readonly alternate?: string; readonly reason?: string };
}

/** Returns the id of an occupant, or of a session, which says nothing of its address (XEP-0421). */
export function occupantId(secret: string, jid: string): string {
  return createHmac("sha256", secret).update(jid).digest("hex").slice(0, 32);
}

export function occupantIdElement(secret: string, account: string): XmlElement {
  return element("occupant-id", { xmlns: OCCUPANT_ID, id: occupantId(secret, account) });
}

/** Returns the presence of an occupant. `jid` is shown to those who may see it. */
export function occupantPresence(
  { from, to, type, payload, standing, jid, notes = {}, id, occupant }: {
    readonly from: Jid;
    readonly to: Jid;
    readonly type?: "unavailable" | undefined;
    readonly payload: readonly XmlElement[];
    readonly standing: Standing;
    readonly jid?: string | undefined;
    readonly notes?: PresenceNotes;
    readonly id?: string | undefined;
    readonly occupant?: XmlElement | undefined;
  },
): Stanza {
  const { codes = [], newNick, actor, reason, destroyed } = notes;
  const item = element(
    "item",
    {
      affiliation: notes.affiliation ?? standing.affiliation,
      role: type === "unavailable" && newNick === undefined ? "none" : standing.role,
      jid,
      nick: newNick,
    },
    actor === undefined ? undefined : element("actor", { nick: actor }),
    reason === undefined || reason === "" ? undefined : element("reason", {}, reason),
  );
  const x = element(
    "x",
    { xmlns: MUC_USER },
    item,
    destroyed === undefined ? undefined : element(
      "destroy",
      { jid: destroyed.alternate },
      destroyed.reason === undefined ? undefined : element("reason", {}, destroyed.reason),
    ),
    ...codes.map((code) => element("status", { code })),
  );
  const presence = element("presence", { type, id }, ...payload, occupant, x);
  return buildStanza(presence, { from, to });
}

/** Returns a message of the room itself with status codes. */
export function statusMessage(room: BareJid, to: Jid, codes: readonly string[]): Stanza {
  const x = element(
    "x",
    { xmlns: MUC_USER },
    ...codes.map((code) => element("status", { code })),
  );
  return buildStanza(element("message", { type: "groupchat" }, x), { from: room, to });
}

/**
 * Returns a message that sets the subject as rooms store it: with the time at which it did so, which
 * newcomers are told (XEP-0045 §7.2.15).
 */
export function writeSubject(
  text: string,
  { room, sentAtMs }: { readonly room: string; readonly sentAtMs: number },
): string {
  return serialize(pastMessage(text, { room, number: undefined, sentAtMs }));
}

/**
 * Returns the message that tells a newcomer the subject; an empty one without any (§7.2.15).
 * @param subject as `writeSubject` has written it
 */
export function subjectMessage(room: BareJid, to: Jid, subject: string): Stanza {
  if (subject === "") {
    const message = element("message", { type: "groupchat" }, element("subject"));
    return buildStanza(message, { from: room, to });
  }
  return buildStanza(numberedMessage(subject, { room: room.text, number: undefined }), { to });
}

/** True for an element that only the room itself may put into a stanza. */
export function isRooms(child: XmlElement, room: string): boolean {
  switch (child.namespace) {
    case MUC:
    case MUC_USER:
    case OCCUPANT_ID:
      return true;
    case DELAY:
      return namesRoom(child.attribute("from"), room);
    case STANZA_IDS:
      return child.name === "stanza-id" && namesRoom(child.attribute("by"), room);
    default:
      return false;
  }
}

/** Returns the elements of a stanza that its sender may put into it. */
export function ownElements(stanza: XmlElement, room: string): readonly XmlElement[] {
  return stanza.elements.filter((child) => !isRooms(child, room));
}

/**
 * Returns the elements of an occupant's presence as the room shows them. A status has its language with
 * it, which may be that of the whole presence (RFC 6120 §8.1.5): the room's own presence is in none.
 */
export function shownElements(presence: XmlElement, room: string): readonly XmlElement[] {
  const lang = presence.attribute("xml:lang");
  const own = ownElements(presence, room);
  if (lang === undefined) return own;
  return own.map((child) => {
    const isStatus = child.name === "status" && child.namespace === presence.namespace;
    if (!isStatus || child.attribute("xml:lang") !== undefined) return child;
    return element("status", { ...child.attributes, "xml:lang": lang }, ...child.children);
  });
}

/**
 * Returns the message of an occupant as the room sends it to everybody, without `to`. It has the
 * room's number as its id there (XEP-0359).
 */
export function numberedMessage(
  text: string,
  { room, number }: { readonly room: string; readonly number: number | undefined },
): XmlElement {
  const { name, attributes, children } = readMessage(text);
  const id = number === undefined
    ? undefined
    : element("stanza-id", { xmlns: STANZA_IDS, by: room, id: `${number}` });
  return element(name, attributes, ...children, id);
}

/** Returns such a message as newcomers get it, with the time when it was sent (XEP-0203). */
export function pastMessage(
  text: string,
  { room, number, sentAtMs }: {
    readonly room: string;
    readonly number: number | undefined;
    readonly sentAtMs: number;
  },
): XmlElement {
  const { name, attributes, children } = numberedMessage(text, { room, number });
  const stamp = new Date(sentAtMs).toISOString();
  return element(
    name,
    attributes,
    ...children,
    element("delay", { xmlns: DELAY, from: room, stamp }),
  );
}

/** Writes a message of an occupant as rooms store it. */
export function writeMessage(
  message: XmlElement,
  { from, room, occupant }: {
    readonly from: string;
    readonly room: string;
    readonly occupant: XmlElement;
  },
): string {
  const { attributes } = message;
  const kept = {
    from,
    type: "groupchat",
    id: attributes["id"],
    "xml:lang": message.attribute("xml:lang"),
  };
  return serialize(element("message", kept, ...ownElements(message, room), occupant));
}

/** Reads a message that `writeMessage` has written. */
export function readMessage(text: string): XmlElement {
  return parseElement(new TextEncoder().encode(text));
}

/** True for a message that sets the subject of its room (XEP-0045 §8.1). */
export function setsSubject(message: XmlElement): boolean {
  const has = (name: string) => message.child(name) !== undefined;
  return has("subject") && !has("body") && !has("thread");
}
