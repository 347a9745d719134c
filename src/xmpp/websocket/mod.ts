export type { DiscoveryFacts } from "./discovery.ts";
export { discoveryPage, WEBSOCKET_PATH } from "./discovery.ts";
export { XMPP_SUBPROTOCOL } from "./framing.ts";
export { WebSocketTransport } from "./websocket_transport.ts";
