export type { Jid } from "./jid.ts";
export { BareJid, FullJid } from "./jid.ts";
export {
  jidFromBytes,
  MAX_JID_PART_BYTES,
  parseJid,
  tryMakeJid,
  tryParseJid,
} from "./jid_parser.ts";
export type {
  IqType,
  MessageType,
  PresenceType,
  Stanza,
  StanzaKind,
  StanzaType,
} from "./stanza.ts";
export { isReply, isSubscription } from "./stanza.ts";
export type { StanzaErrorCondition } from "./stanza_error.ts";
