export type {
  ChatClientOptions,
  ClientSecurity,
  IqOptions,
  MessageOptions,
  PresenceOptions,
} from "./chat_client.ts";
export { ChatClient, escapeXml, EXPECT_WITHIN_MS, newId, selfContained } from "./chat_client.ts";
export { Inbox } from "./inbox.ts";
export type { ReceivedStanza, StanzaPredicate } from "./received_stanza.ts";
export type { XmppJsClientOptions } from "./xmpp_js_client.ts";
export { XmppJsClient } from "./xmpp_js_client.ts";
export type { SlixmppClientOptions } from "./slixmpp_client.ts";
export { SlixmppClient } from "./slixmpp_client.ts";
export type { XmppComponentOptions } from "./xmpp_component.ts";
export { XmppComponent } from "./xmpp_component.ts";
export type { RoomServiceOptions } from "./room_service.ts";
export { RoomService } from "./room_service.ts";
export type { RawSocketOptions, RawTlsOptions } from "./raw_socket.ts";
export { RawSocket } from "./raw_socket.ts";
export type { RawCredentials, RawMechanism } from "./scram.ts";
export type { RawLoginOptions } from "./raw_client.ts";
export { bindResource, openAuthenticated, openStream, RawClient } from "./raw_client.ts";
