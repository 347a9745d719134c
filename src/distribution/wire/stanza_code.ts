import type { StanzaKind, StanzaType } from "../../xmpp/mod.ts";

/** Kind and type of a stanza that one byte stands for. */
export interface StanzaClass {
  readonly kind: StanzaKind;
  readonly type: StanzaType;
}

/** The byte's value is the index; values are part of the protocol and never change. */
const CLASSES: readonly StanzaClass[] = [
  { kind: "message", type: "normal" },
  { kind: "message", type: "chat" },
  { kind: "message", type: "groupchat" },
  { kind: "message", type: "headline" },
  { kind: "message", type: "error" },
  { kind: "presence", type: "available" },
  { kind: "presence", type: "unavailable" },
  { kind: "presence", type: "subscribe" },
  { kind: "presence", type: "subscribed" },
  { kind: "presence", type: "unsubscribe" },
  { kind: "presence", type: "unsubscribed" },
  { kind: "presence", type: "probe" },
  { kind: "presence", type: "error" },
  { kind: "iq", type: "get" },
  { kind: "iq", type: "set" },
  { kind: "iq", type: "result" },
  { kind: "iq", type: "error" },
];

/** Number of codes: every byte below it is one. */
export const STANZA_CODES = CLASSES.length;

/** Returns the byte for a stanza's kind and type. */
export function encodeStanzaClass(kind: StanzaKind, type: StanzaType): number {
  for (let code = 0; code < CLASSES.length; code++) {
    const known = CLASSES[code]!;
    if (known.type === type && known.kind === kind) return code;
  }
  throw new RangeError(`Cannot encode stanza: ${kind} has no type ${type}`);
}

/** Returns the kind and type of a byte; undefined for one that is not assigned. */
export function decodeStanzaClass(code: number): StanzaClass | undefined {
  return CLASSES[code];
}
