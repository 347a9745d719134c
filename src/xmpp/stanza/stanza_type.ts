import type { IqType, MessageType, PresenceType, StanzaKind, StanzaType } from "./stanza.ts";

/** Returns the type that the attribute `type` gives a stanza of that kind; undefined for an unknown one. */
export function stanzaType(kind: StanzaKind, type: string | undefined): StanzaType | undefined {
  if (kind === "message") return messageType(type);
  return kind === "iq" ? iqType(type) : presenceType(type);
}

/** Reads an unknown type as `normal` (RFC 6121 §5.2.2). */
function messageType(type: string | undefined): MessageType {
  switch (type) {
    case "chat":
    case "groupchat":
    case "headline":
    case "error":
      return type;
    default:
      return "normal";
  }
}

/** RFC 6121 §4.7.1. */
function presenceType(type: string | undefined): PresenceType | undefined {
  switch (type) {
    case undefined:
      return "available";
    case "unavailable":
    case "subscribe":
    case "subscribed":
    case "unsubscribe":
    case "unsubscribed":
    case "probe":
    case "error":
      return type;
    default:
      return undefined;
  }
}

/** RFC 6120 §8.2.3. */
function iqType(type: string | undefined): IqType | undefined {
  switch (type) {
    case "get":
    case "set":
    case "result":
    case "error":
      return type;
    default:
      return undefined;
  }
}
