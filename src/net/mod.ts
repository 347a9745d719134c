export type { Connection, ConnectionEvents } from "./connection.ts";
export type { ConnectionLimits } from "./connection_limits.ts";
export { formatAddress, isLoopbackAddress } from "./address.ts";
export type { DialOptions } from "./dial.ts";
export { dial } from "./dial.ts";
export type {
  HandshakePeer,
  Listener,
  ListenerLimits,
  ListenerTls,
  ListenOptions,
} from "./listener_options.ts";
export { resolveListenerLimits } from "./listener_options.ts";
export type { ListenerEvents } from "./listener.ts";
export { listen } from "./listener.ts";
export type { MemoryPairOptions } from "./memory_connection.ts";
export { MemoryConnection, memoryConnectionPair } from "./memory_connection.ts";
export type { TlsContext, TlsFiles } from "./tls_context.ts";
export { loadTlsContext } from "./tls_context.ts";
export { TlsAcceptor } from "./tls_acceptor.ts";
export { peerCertificateNames } from "./tls_peer.ts";
export type { PreparedTls } from "./tls_context_holder.ts";
export { TlsContextHolder } from "./tls_context_holder.ts";
export type { MessageConnection, MessageConnectionEvents } from "./message_connection.ts";
export type {
  WebPage,
  WebSocketLimits,
  WebSocketListener,
  WebSocketListenerEvents,
  WebSocketListenOptions,
} from "./websocket_listener.ts";
export { listenWebSocket } from "./websocket_listener.ts";
export type { CertificateFacts, TlsFilesFacts } from "./certificate_facts.ts";
export { inspectTlsFiles } from "./certificate_facts.ts";
export { coversHost } from "./certificate_names.ts";
export type { ProbeOptions, ProbeResult } from "./probe_tls.ts";
export { probeTls } from "./probe_tls.ts";
