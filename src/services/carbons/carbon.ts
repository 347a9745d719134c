import type { Jid, Stanza } from "../../xmpp/mod.ts";
import {
  CARBONS_NAMESPACE,
  escapeValue,
  hasChild,
  isAsItSays,
  stanzaSource,
} from "../../xmpp/mod.ts";

const HINTS_NAMESPACE = "urn:xmpp:hints";
const MUC_USER_NAMESPACE = "http://jabber.org/protocol/muc#user";

/** Whether the account has sent the message or received it. */
export type CarbonDirection = "sent" | "received";

/**
 * Payloads for which a message of type `normal` belongs to a conversation without having a body:
 * receipts, markers, chat states and encrypted messages.
 */
const CONVERSATION_NAMESPACES: ReadonlySet<string> = new Set([
  "urn:xmpp:receipts",
  "urn:xmpp:chat-markers:0",
  "http://jabber.org/protocol/chatstates",
  "eu.siacs.conversations.axolotl",
  "urn:xmpp:omemo:2",
]);

/**
 * True for a message of which the account's other sessions get carbons (XEP-0280 §6.1). Messages
 * from an occupant of a room go to each session that has joined it anyway. Pure.
 */
export function isEligible(stanza: Stanza, direction: CarbonDirection): boolean {
  const { kind, type, bytes } = stanza;
  if (kind !== "message" || (type !== "chat" && type !== "normal")) return false;
  let isConversation = type === "chat";
  const isRefused = hasChild(stanzaSource(bytes), (name, namespace) => {
    switch (namespace) {
      case CARBONS_NAMESPACE:
        return name === "private" || name === "sent" || name === "received";
      case HINTS_NAMESPACE:
        return name === "no-copy";
      case MUC_USER_NAMESPACE:
        return direction === "received" && name === "x";
      default:
        isConversation ||= name === "body" || CONVERSATION_NAMESPACES.has(namespace);
        return false;
    }
  });
  return isConversation && !isRefused;
}

/** True for a carbon of a message that its account has sent, and not one of any other message. Pure. */
export function isSentCarbon({ bytes }: Stanza): boolean {
  return hasChild(
    stanzaSource(bytes),
    (name, namespace) => namespace === CARBONS_NAMESPACE && name === "sent",
  );
}

const ENCODER = new TextEncoder();
const END = ENCODER.encode("</forwarded></sent></message>");
const END_RECEIVED = ENCODER.encode("</forwarded></received></message>");
/** Bytes of `<message`, behind which the copied element declares its namespace. */
const TAG_BYTES = "<message".length;

/**
 * Wraps a message for the other sessions of `account`, and addresses it to the bare JID (XEP-0280
 * §5, §6). Undefined when that would not be a stanza any more that every node reads: the message is
 * nested too deeply.
 */
export function carbonOf(
  direction: CarbonDirection,
  { type, bytes }: Stanza,
  account: Jid,
): Stanza | undefined {
  const typeAttribute = type === "normal" ? "" : ` type='${type}'`;
  const start = ENCODER.encode(
    `<message from=${quoted(account)} to=${quoted(account)}${typeAttribute}>` +
      `<${direction} xmlns='${CARBONS_NAMESPACE}'><forwarded xmlns='urn:xmpp:forward:0'>` +
      "<message xmlns='jabber:client'",
  );
  const end = direction === "sent" ? END : END_RECEIVED;
  const wrapped = new Uint8Array(start.length + bytes.length - TAG_BYTES + end.length);
  wrapped.set(start);
  wrapped.set(bytes.subarray(TAG_BYTES), start.length);
  wrapped.set(end, wrapped.length - end.length);
  const carbon: Stanza = { kind: "message", type, from: account, to: account, bytes: wrapped };
  return isAsItSays(carbon) ? carbon : undefined;
}

function quoted({ text }: Jid): string {
  return `'${escapeValue(text)}'`;
}
