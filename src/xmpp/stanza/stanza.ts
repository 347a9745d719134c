import type { Jid } from "../jid/jid.ts";

/** The three top-level elements that are routed (RFC 6120 §8). */
export type StanzaKind = "message" | "presence" | "iq";

/** RFC 6121 §5.2.2; an unknown or absent type reads as `normal`. */
export type MessageType = "normal" | "chat" | "groupchat" | "headline" | "error";
/** RFC 6121 §4.7.1; `available` stands for an absent type. */
export type PresenceType =
  | "available"
  | "unavailable"
  | "subscribe"
  | "subscribed"
  | "unsubscribe"
  | "unsubscribed"
  | "probe"
  | "error";
/** RFC 6120 §8.2.3. */
export type IqType = "get" | "set" | "result" | "error";

export type StanzaType = MessageType | PresenceType | IqType;

/**
 * One addressed stanza as it travels: the fields that routing needs, parsed once, and the bytes as they
 * are sent.
 *
 * `bytes` is one whole element in UTF-8 and *self-contained*: its root carries `from`, `to` and, where
 * the stream gave one, `xml:lang`. It has no `xmlns` of its own, so that it takes the content namespace
 * of any stream it is written to (`jabber:client` or `jabber:component:accept`, RFC 6120 §4.8.2). It
 * declares every other prefix it uses. Nobody changes the bytes.
 */
export interface Stanza {
  readonly kind: StanzaKind;
  readonly type: StanzaType;
  readonly from: Jid;
  readonly to: Jid;
  readonly bytes: Uint8Array;
  /**
   * Wall-clock microseconds when the presence began that this one repeats, passes on or ends. It
   * takes the place of the time at which the stanza enters the mesh. Absent from all other stanzas.
   */
  readonly sinceUs?: number;
}

/** True for stanzas that are answers themselves, and therefore are never answered with an error. */
export function isReply(stanza: Stanza): boolean {
  return stanza.type === "error" || stanza.type === "result";
}

/** True for presence that manages subscriptions, which must not be lost (RFC 6121 §3). */
export function isSubscription(stanza: Stanza): boolean {
  switch (stanza.type) {
    case "subscribe":
    case "subscribed":
    case "unsubscribe":
    case "unsubscribed":
      return stanza.kind === "presence";
    default:
      return false;
  }
}
