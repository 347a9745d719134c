import type { StanzaKind, StanzaType } from "../../xmpp/mod.ts";

/** Kind and type of a stanza that one byte stands for. */
export interface StanzaClass {
  readonly kind: StanzaKind;
  readonly type: StanzaType;
}

/** Meaning of the byte in a STANZA frame. */
interface StanzaCode extends StanzaClass {
  /** True for a message of which the sender's own sessions at the destination get a carbon. */
  readonly bringsCarbon: boolean;
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

/** Number of kinds and types: every byte below it stands for one. */
export const STANZA_CODES = CLASSES.length;

/** Codes of messages that bring their carbon begin here, in the order of `CLASSES`. */
const FIRST_CARBON_CODE = STANZA_CODES;
/** Codes of STANZA frames. Carbons are of normal messages and of chat, the first two. */
const CODES: readonly StanzaCode[] = [
  ...CLASSES.map((each) => ({ ...each, bringsCarbon: false })),
  ...CLASSES.slice(0, 2).map((each) => ({ ...each, bringsCarbon: true })),
];

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

/** Returns the meaning of a byte in a STANZA frame; undefined for one that is not assigned. */
export function decodeStanzaCode(code: number): StanzaCode | undefined {
  return CODES[code];
}

/** Returns the code of the same message with its carbon; undefined for a stanza that has none. */
export function withCarbon(code: number): number | undefined {
  const changed = code + FIRST_CARBON_CODE;
  return changed < CODES.length ? changed : undefined;
}

/** Returns the code of the same stanza without a carbon. */
export function withoutCarbon(code: number): number {
  return code < FIRST_CARBON_CODE ? code : code - FIRST_CARBON_CODE;
}
