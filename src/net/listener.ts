import type { CausewayError } from "../base/mod.ts";
import type { Connection } from "./connection.ts";
import type { Listener, ListenOptions } from "./listener_options.ts";
import { SocketConnection } from "./socket_connection.ts";
import { SocketListener } from "./socket_listener.ts";

/** Callbacks of a listener to its owner. */
export interface ListenerEvents {
  /** A peer has connected; in `direct` and `mutual` its handshake is complete and verified. */
  accepted(connection: Connection): void;
  /**
   * A peer was turned away before it became a connection: `net/tls-untrusted`, `net/tls-failed`,
   * `net/tls-protocol-unknown`, `net/handshake-timeout`, `net/too-many-handshakes`, `net/too-many-connections`, `net/reset`.
   */
  refused?(error: CausewayError, remoteAddress: string): void;
  /**
   * Accepting failed, with `net/not-accepting` where the listener had stopped (for want of file
   * descriptors, for example). The listener is opened again.
   */
  failed?(error: CausewayError): void;
}

/**
 * Listens on a port.
 * @throws {CausewayError} `net/address-in-use`, `net/address-unavailable`, `net/address-forbidden`,
 *   `net/name-not-found`
 */
export async function listen(
  options: ListenOptions,
  events: ListenerEvents,
): Promise<Listener> {
  const isStartTls = options.tls?.mode === "starttls";
  const listener = new SocketListener(options, {
    accepted: (socket, { carrier, acceptor, serverEndPoint }) =>
      events.accepted(
        new SocketConnection(socket, {
          limits: listener.limits,
          clock: listener.clock,
          ...(isStartTls ? { acceptor: acceptor! } : {}), // TLS modes always have one
          ...(carrier === undefined ? {} : { carrier }),
          ...(serverEndPoint === undefined ? {} : { serverEndPoint }),
        }),
      ),
    refused: (error, remoteAddress) => events.refused?.(error, remoteAddress),
    failed: (error) => events.failed?.(error),
  });
  await listener.open();
  return listener;
}
