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
export type {
  NamespaceBinding,
  ScanFailureCondition,
  ScannedElement,
  ScannerHandlers,
  ScannerLimits,
  StreamHeader,
} from "./xml/scanner_types.ts";
export { FrameScanner, scanFrame } from "./xml/frame_scanner.ts";
export {
  CLIENT_NAMESPACE,
  COMPONENT_NAMESPACE,
  FRAMING_NAMESPACE,
  STREAM_NAMESPACE,
  XML_NAMESPACE,
} from "./xml/namespaces.ts";
export { StreamFailure } from "./xml/scan_failure.ts";
export { resolveScannerLimits } from "./xml/scanner_limits.ts";
export { StreamScanner } from "./xml/stream_scanner.ts";
