import { SlabAllocator } from "../../base/mod.ts";
import type { Jid, Stanza, StanzaType } from "../../xmpp/mod.ts";
import {
  attributeOf,
  buildStanza,
  CARBONS_NAMESPACE,
  escapeValue,
  hasChild,
  isAsItSays,
  stanzaElement,
  stanzaSource,
  startsWith,
  tryParseJid,
} from "../../xmpp/mod.ts";

const FORWARD_NAMESPACE = "urn:xmpp:forward:0";
const HINTS_NAMESPACE = "urn:xmpp:hints";
const MUC_USER_NAMESPACE = "http://jabber.org/protocol/muc#user";

/**
 * Carbon of a message from another datacenter, for the sessions of its sender here. It is wrapped for each
 * of them when it is given, and as a whole only for another node.
 */
export class BroughtCarbon implements Stanza {
  readonly kind = "message";
  readonly type: StanzaType;
  /** Bare JID of the account. */
  readonly from: Jid;
  readonly to: Jid;
  readonly #message: Stanza;
  #bytes: Uint8Array | undefined;

  private constructor(message: Stanza) {
    this.type = message.type;
    this.from = this.to = message.from.bare;
    this.#message = message;
  }

  /** Returns the carbon of a message; undefined when that is nested too deeply. */
  static of(message: Stanza): Stanza | undefined {
    return isSurelyShallow(message)
      ? new BroughtCarbon(message)
      : carbonOf("sent", message, message.from.bare);
  }

  /** Address of the message. */
  get recipient(): Jid {
    return this.#message.to;
  }

  get bytes(): Uint8Array {
    return this.#bytes ??= wrap("sent", this.#message, this.from);
  }

  /** Returns the carbon for one session of the account. */
  for(session: Jid): Stanza {
    const { kind, type, from } = this;
    return { kind, type, from, to: session, bytes: wrap("sent", this.#message, session) };
  }
}

/** Direction of a message, as its account sees it. */
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

/**
 * Returns the recipient of the message that a carbon wraps which its account has sent; undefined for any
 * other stanza. Such a carbon begins with what `carbonOf` writes. Pure.
 */
export function recipientInSent(carbon: Stanza): Jid | undefined {
  if (carbon instanceof BroughtCarbon) return carbon.recipient;
  const { type, to, bytes } = carbon;
  const source = stanzaSource(bytes);
  const start = startOf("sent", type, to);
  let written: string | undefined;
  if (beginsWith(bytes, start)) {
    const inner = { ...source, start: start.length - INNER_START.length };
    written = attributeOf(inner, "to");
  } else if (startsWith(source, "sent", CARBONS_NAMESPACE)) {
    // A node of another version may write the same in other words.
    written = stanzaElement(carbon).child("sent", CARBONS_NAMESPACE)
      ?.child("forwarded", FORWARD_NAMESPACE)?.child("message", "jabber:client")?.attribute("to");
  }
  return written === undefined ? undefined : tryParseJid(written);
}

/**
 * Returns the error that a carbon of the account's own node wraps; undefined for any other stanza.
 * Pure.
 */
export function errorInCarbon(carbon: Stanza): Stanza | undefined {
  const { type, to, bytes } = carbon;
  if (type !== "error") return undefined;
  if (!startsWith(stanzaSource(bytes), "received", CARBONS_NAMESPACE)) return undefined;
  const wrapped = stanzaElement(carbon).child("received", CARBONS_NAMESPACE)
    ?.child("forwarded", FORWARD_NAMESPACE)?.child("message", "jabber:client");
  const from = tryParseJid(wrapped?.attribute("from") ?? "");
  return wrapped?.attribute("type") === "error" && from !== undefined
    ? buildStanza(wrapped, { from, to })
    : undefined;
}

const ENCODER = new TextEncoder();
/** Memory for carbons, which live about equally long. */
const SLAB = new SlabAllocator();
const ENDS: Readonly<Record<CarbonDirection, Uint8Array>> = {
  sent: ENCODER.encode("</forwarded></sent></message>"),
  received: ENCODER.encode("</forwarded></received></message>"),
};
/** Begin of the copied message, without its attributes. */
const INNER_START = "<message xmlns='jabber:client'";
/** Bytes of `<message`, behind which the copied element declares its namespace. */
const TAG_BYTES = "<message".length;
/**
 * Bytes up to which a message cannot be nested so deeply that the wrapped one could not be read: an
 * element with content takes seven.
 */
const SURELY_SHALLOW_BYTES = 1_024;

/** Beginnings of carbons of chat, by recipient: an account, or a session, gets many. */
const STARTS: Readonly<Record<CarbonDirection, WeakMap<Jid, Uint8Array>>> = {
  sent: new WeakMap(),
  received: new WeakMap(),
};

/**
 * Wraps a message for the other sessions of `account`, and addresses it to the bare JID (XEP-0280
 * §5, §6). Undefined when that would not be a stanza any more that every node reads: the message is
 * nested too deeply.
 */
export function carbonOf(
  direction: CarbonDirection,
  message: Stanza,
  account: Jid,
): Stanza | undefined {
  const bytes = wrap(direction, message, account);
  const { type } = message;
  const carbon: Stanza = { kind: "message", type, from: account, to: account, bytes };
  return isSurelyShallow(message) || isAsItSays(carbon) ? carbon : undefined;
}

function isSurelyShallow({ bytes }: Stanza): boolean {
  return bytes.length <= SURELY_SHALLOW_BYTES;
}

/** Returns a carbon of a message, for an account or one of its sessions. */
function wrap(direction: CarbonDirection, { type, bytes }: Stanza, to: Jid): Uint8Array {
  const start = startOf(direction, type, to);
  const end = ENDS[direction];
  const wrapped = SLAB.allocate(start.length + bytes.length - TAG_BYTES + end.length);
  wrapped.set(start);
  wrapped.set(bytes.subarray(TAG_BYTES), start.length);
  wrapped.set(end, wrapped.length - end.length);
  return wrapped;
}

function startOf(direction: CarbonDirection, type: StanzaType, to: Jid): Uint8Array {
  const known = type === "chat" ? STARTS[direction].get(to) : undefined;
  if (known !== undefined) return known;
  const typeAttribute = type === "normal" ? "" : ` type='${type}'`;
  const start = ENCODER.encode(
    `<message from=${quoted(to.bare)} to=${quoted(to)}${typeAttribute}>` +
      `<${direction} xmlns='${CARBONS_NAMESPACE}'><forwarded xmlns='${FORWARD_NAMESPACE}'>` +
      INNER_START,
  );
  if (type === "chat") STARTS[direction].set(to, start);
  return start;
}

function beginsWith(bytes: Uint8Array, start: Uint8Array): boolean {
  if (bytes.length < start.length) return false;
  for (let i = 0; i < start.length; i++) if (bytes[i] !== start[i]) return false;
  return true;
}

function quoted({ text }: Jid): string {
  return `'${escapeValue(text)}'`;
}
