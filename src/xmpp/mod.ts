export type { Jid } from "./jid/jid.ts";
export { BareJid, FullJid, isSubdomain } from "./jid/jid.ts";
export {
  jidFromBytes,
  MAX_JID_PART_BYTES,
  normalisedJidFromBytes,
  parseJid,
  tryMakeJid,
  tryParseJid,
} from "./jid/jid_parser.ts";
export type { Fate } from "./stanza/fate.ts";
export type {
  IqType,
  MessageType,
  PresenceType,
  Stanza,
  StanzaKind,
  StanzaType,
} from "./stanza/stanza.ts";
export { isReply, isSubscription } from "./stanza/stanza.ts";
export type { StanzaErrorCondition, StanzaErrorType } from "./stanza/stanza_error.ts";
export { STANZA_ERROR_NAMESPACE, STANZA_ERROR_TYPES } from "./stanza/stanza_error.ts";
export type { ErrorReplyOptions } from "./stanza/error_reply.ts";
export { errorReply } from "./stanza/error_reply.ts";
export { recipientHolders, senderHolders } from "./stanza/holders.ts";
export type { AccountRule, DeliveryRule } from "./stanza/delivery_rules.ts";
export { deliveryRule, leastPriority, ruleForAccount } from "./stanza/delivery_rules.ts";
export { readdress } from "./stanza/readdress.ts";
export { isAsItSays } from "./stanza/stanza_check.ts";
export { idSpan, MAX_ID_BYTES, stanzaId } from "./stanza/stanza_attributes.ts";
export type { BuildOptions } from "./stanza/stanza_builder.ts";
export { buildStanza, stanzaElement } from "./stanza/stanza_builder.ts";
export type { StanzaContext } from "./stanza/stanza_parser.ts";
export { jidAttribute, RefusedStanza, stanzaFrom, stanzaKind } from "./stanza/stanza_parser.ts";
export { CARBONS_NAMESPACE } from "./stream/namespaces.ts";
export type { StreamErrorCondition } from "./stream/stream_error.ts";
export { STREAM_ERROR_NAMESPACE, streamError, streamErrorContent } from "./stream/stream_error.ts";
export type {
  NamespaceBinding,
  ScanFailureCondition,
  ScannedElement,
  ScannerLimits,
  StreamHeader,
  StreamScannerEvents,
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
export { encodeAttribute, escapeText, escapeValue } from "./xml/escape.ts";
export type { ChildElement, ElementSource } from "./xml/child_elements.ts";
export {
  attributeOf,
  childElements,
  directText,
  findChild,
  hasChild,
  hasMoreElements,
  onlyChild,
  stanzaSource,
  startsWith,
} from "./xml/child_elements.ts";
export { parseElement } from "./xml/parse_element.ts";
export type {
  DocumentEvents,
  DocumentLimits,
  DocumentStep,
  DocumentTag,
} from "./xml/document_reader.ts";
export { DocumentReader } from "./xml/document_reader.ts";
export { serialize } from "./xml/serialize.ts";
export type { StampOptions } from "./xml/stamp.ts";
export { frameStanza, stampStanza } from "./xml/stamp.ts";
export type { XmlAttributes, XmlNode } from "./xml/xml_element.ts";
export { element, XmlElement } from "./xml/xml_element.ts";
export { resolveScannerLimits } from "./xml/scanner_limits.ts";
export { StreamScanner } from "./xml/stream_scanner.ts";
export type {
  ChosenMechanism,
  CompleteCredentials,
  CountedShape,
  CredentialShape,
  CredentialSource,
  SaslCondition,
  SaslMechanism,
  ScramCredentials,
  ScramHash,
  ScramSecret,
} from "./sasl/mod.ts";
export {
  accountsWithoutKey,
  CredentialShapes,
  DEFAULT_SCRAM_ITERATIONS,
  derivePasswordLike,
  deriveScramCredentials,
  HashGate,
  SASL_MECHANISMS,
} from "./sasl/mod.ts";
export type {
  AdmissionLimits,
  DeliveryOutcome,
  EdgeRatesOptions,
  ResolvedStreamLimits,
  ResponseHeader,
  StanzaSink,
  StanzaSource,
  StreamLimits,
  StreamTransport,
  TransportEvents,
  TransportLimit,
} from "./stream/mod.ts";
export {
  EdgeRates,
  resolveStreamLimits,
  STREAM_LIMIT_RANGES,
  StreamAdmission,
  TcpTransport,
  Turns,
} from "./stream/mod.ts";
export type {
  Arrival,
  ArrivedSession,
  Delivery,
  Fetching,
  FollowedSession,
  FreezeOwner,
  Freezing,
  FrozenSession,
  ManagedEnd,
  ManagedSession,
  Relay,
  ResolvedStreamManagement,
  ResumeRequest,
  SessionOrigin,
  SessionReturn,
  SessionsElsewhere,
  SessionState,
  StreamManagementDeps,
  StreamManagementOptions,
  Unfreezing,
} from "./sm/mod.ts";
export {
  areDetached,
  isWorthRouting,
  OwnDelivery,
  resolveStreamManagement,
  STREAM_MANAGEMENT_RANGES,
  StreamManagement,
} from "./sm/mod.ts";
export type {
  AccountCreation,
  AccountFeature,
  C2sListenerOptions,
  C2sSession,
  CreationOutcome,
  LocalSession,
  SessionRegistryEvents,
  SessionRegistryOptions,
} from "./c2s/mod.ts";
export {
  C2sListener,
  DEFAULT_MAX_DIRECTED_PRESENCE,
  DEFAULT_MAX_HELD_PRESENCE,
  DEFAULT_MAX_SESSIONS_PER_ACCOUNT,
  RESENDING_MS,
  SessionRegistry,
} from "./c2s/mod.ts";
export type { DiscoveryFacts } from "./websocket/mod.ts";
export {
  discoveryPage,
  WEBSOCKET_PATH,
  WebSocketTransport,
  XMPP_SUBPROTOCOL,
} from "./websocket/mod.ts";
export type {
  ComponentDomain,
  ComponentListenerDeps,
  ComponentRegistryEvents,
  LocalComponent,
} from "./component/mod.ts";
export { ComponentListener, ComponentRegistry } from "./component/mod.ts";
