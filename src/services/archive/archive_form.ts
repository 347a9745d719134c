import { joinBytes } from "../../base/mod.ts";
import { ENCRYPTED } from "../../storage/mod.ts";
import type { ChildElement, Stanza } from "../../xmpp/mod.ts";
import {
  attributeOf,
  childElements,
  CLIENT_NAMESPACE,
  escapeValue,
  stanzaSource,
  tryParseJid,
} from "../../xmpp/mod.ts";

/** Namespace of the ids that a server gives to messages (XEP-0359). */
export const STANZA_IDS = "urn:xmpp:sid:0";
const HINTS = "urn:xmpp:hints";
const CHAT_MARKERS = "urn:xmpp:chat-markers:0";
const ROOM_INVITATIONS = "http://jabber.org/protocol/muc#user";
const DIRECT_INVITATIONS = "jabber:x:conference";
const LT = 0x3c;

/** Options of which messages are archived. */
export interface ArchivableOptions {
  /** Chat markers without a body (XEP-0333), too. */
  readonly hasChatMarkers: boolean;
  /** Messages of type `groupchat`, too. */
  readonly hasGroupchats: boolean;
  /** Changes of a room's subject, too. @default false */
  readonly hasSubjects?: boolean;
}

/**
 * Returns true for a message that archives take: one with a body or an encrypted payload, an
 * invitation into a room, or one with the hint `store`, and without a hint against it (XEP-0334).
 * Errors and headlines are for the moment. Pure.
 */
export function isArchivable(
  { kind, type, bytes }: Pick<Stanza, "kind" | "type" | "bytes">,
  options: ArchivableOptions,
): boolean {
  if (kind !== "message") return false;
  const isTaken = type === "chat" || type === "normal" ||
    (type === "groupchat" && options.hasGroupchats);
  if (!isTaken) return false;
  let isWanted = false;
  for (const child of childElements(stanzaSource(bytes))) {
    const { name, namespace } = child;
    if (namespace === HINTS) {
      if (name === "no-store" || name === "no-permanent-store") return false;
      isWanted ||= name === "store";
    } else if (namespace === CLIENT_NAMESPACE) {
      isWanted ||= name === "body" || (name === "subject" && options.hasSubjects === true);
    } else if (namespace === CHAT_MARKERS) {
      isWanted ||= options.hasChatMarkers && name !== "markable";
    } else if (type !== "groupchat" && isInvitation(child)) isWanted = true;
    else isWanted ||= ENCRYPTED.has(namespace);
  }
  return isWanted;
}

/**
 * True for an invitation into a room, by the room itself (XEP-0045 §7.8.2) or by a person (XEP-0249). A
 * request to the room to invite somebody is none yet: it names nobody who invites.
 */
function isInvitation(child: ChildElement): boolean {
  if (child.name !== "x") return false;
  if (child.namespace === DIRECT_INVITATIONS) return true;
  return child.namespace === ROOM_INVITATIONS &&
    childElements(child).some((inner) =>
      inner.name === "invite" && inner.namespace === ROOM_INVITATIONS &&
      attributeOf(inner, "from") !== undefined
    );
}

/**
 * Returns a message's bytes without the ids that claim to be from `account` (XEP-0359 §6), and with
 * the one that its archive has given it, if any. Pure.
 */
export function withArchiveId(
  { bytes }: Stanza,
  account: string,
  id: string | undefined,
): Uint8Array {
  const parts: Uint8Array[] = [];
  let from = 0;
  for (const child of childElements(stanzaSource(bytes))) {
    if (!isIdOf(child, account)) continue;
    parts.push(bytes.subarray(from, child.start));
    from = child.end;
  }
  if (id === undefined) {
    if (from === 0) return bytes;
    parts.push(bytes.subarray(from));
    return joinBytes(parts);
  }
  // It was archived, so it has children: the last tag is the end tag of the root.
  const end = bytes.lastIndexOf(LT);
  parts.push(bytes.subarray(from, end), elementOf(account, id), bytes.subarray(end));
  return joinBytes(parts);
}

function elementOf(account: string, id: string): Uint8Array {
  return new TextEncoder().encode(
    `<stanza-id xmlns='${STANZA_IDS}' by='${escapeValue(account)}' id='${id}'/>`,
  );
}

function isIdOf(child: ChildElement, account: string): boolean {
  if (child.namespace !== STANZA_IDS || child.name !== "stanza-id") return false;
  const by = attributeOf(child, "by");
  return by !== undefined && tryParseJid(by)?.text === account;
}
