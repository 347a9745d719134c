import type { AddressInfo, Server, Socket } from "node:net";
import { createServer } from "node:net";
import type { Clock } from "../base/mod.ts";
import { CausewayError, SystemClock } from "../base/mod.ts";
import { formatAddress } from "./address.ts";
import type { Connection } from "./connection.ts";
import type { ConnectionLimits } from "./connection_limits.ts";
import { resolveConnectionLimits } from "./connection_limits.ts";
import { toNetError } from "./net_error.ts";
import { lateHandshake, SocketConnection } from "./socket_connection.ts";
import { TlsAcceptor } from "./tls_acceptor.ts";
import type { TlsContextHolder } from "./tls_context_holder.ts";

/**
 * How a listener encrypts: `starttls` when the peer asks within the plain connection, `direct` from
 * the first byte, `mutual` likewise with TLS 1.3 and a certificate that the peer must present.
 */
export interface ListenerTls {
  readonly mode: "starttls" | "direct" | "mutual";
  readonly context: TlsContextHolder;
}

/** What bounds a listener and each of its connections. */
export interface ListenerLimits extends ConnectionLimits {
  /** Connections open at once; one more is refused. @default 10_000 */
  readonly maxConnections?: number;
  /** TLS handshakes under way at once in `direct` and `mutual`; one more is refused. @default 256 */
  readonly maxHandshakes?: number;
}

/** Where and how to listen. */
export interface ListenOptions {
  /** Address of ours; `0.0.0.0` and `::` for all. */
  readonly host: string;
  /** 0 lets the system choose; `Listener.address` tells what it chose. */
  readonly port: number;
  readonly tls?: ListenerTls;
  readonly limits?: ListenerLimits;
  /** @default the system's */
  readonly clock?: Clock;
}

/** What a listener tells its owner. */
export interface ListenerHandlers {
  /** A peer is there; in `direct` and `mutual` its handshake is complete and verified. */
  accepted(connection: Connection): void;
  /**
   * A peer was turned away before it became a connection: `net/tls-untrusted`, `net/tls-failed`,
   * `net/handshake-timeout`, `net/too-many-handshakes`, `net/too-many-connections`, `net/reset`.
   */
  refused?(error: CausewayError, remoteAddress: string): void;
  /** Accepting failed, for want of file descriptors for example; the listener goes on. */
  failed?(error: CausewayError): void;
}

/** A port that accepts connections. */
export interface Listener {
  /** What is listened on, `127.0.0.1:40312` or `[::1]:40312`. */
  readonly address: string;
  readonly host: string;
  readonly port: number;
  /** Connections open now, those amid their first handshake included. */
  readonly connectionCount: number;
  /** Stops accepting and drops unfinished handshakes; accepted connections stay. */
  close(): Promise<void>;
}

/**
 * Listens on a port.
 * @throws {CausewayError} `net/address-in-use`, `net/address-unavailable`, `net/address-forbidden`,
 *   `net/name-not-found`
 */
export async function listen(
  options: ListenOptions,
  handlers: ListenerHandlers,
): Promise<Listener> {
  const listener = new SocketListener(options, handlers);
  await listener.open();
  return listener;
}

const DEFAULT_MAX_CONNECTIONS = 10_000;
const DEFAULT_MAX_HANDSHAKES = 256;

class SocketListener implements Listener {
  readonly #options: ListenOptions;
  readonly #handlers: ListenerHandlers;
  readonly #limits: Required<ConnectionLimits>;
  readonly #maxConnections: number;
  readonly #maxHandshakes: number;
  readonly #clock: Clock;
  readonly #acceptor: TlsAcceptor | undefined;
  readonly #server: Server;
  readonly #handshaking = new Set<Socket>();
  #address: AddressInfo = { address: "", family: "IPv4", port: 0 };
  #connectionCount = 0;

  constructor(options: ListenOptions, handlers: ListenerHandlers) {
    const { maxConnections, maxHandshakes, ...limits } = options.limits ?? {};
    this.#options = options;
    this.#handlers = handlers;
    this.#limits = resolveConnectionLimits(limits);
    this.#maxConnections = maxConnections ?? DEFAULT_MAX_CONNECTIONS;
    this.#maxHandshakes = maxHandshakes ?? DEFAULT_MAX_HANDSHAKES;
    this.#clock = options.clock ?? new SystemClock();
    const { tls } = options;
    if (tls !== undefined) {
      this.#acceptor = new TlsAcceptor(tls.context, { isMutual: tls.mode === "mutual" });
    }
    this.#server = createServer(
      { allowHalfOpen: true, noDelay: true },
      (socket) => this.#incoming(socket),
    );
  }

  get address(): string {
    return formatAddress(this.#address.address, this.#address.port);
  }

  get host(): string {
    return this.#address.address;
  }

  get port(): number {
    return this.#address.port;
  }

  get connectionCount(): number {
    return this.#connectionCount;
  }

  open(): Promise<void> {
    const { host, port } = this.#options;
    const what = `Cannot listen on ${formatAddress(host, port)}`;
    return new Promise((resolve, reject) => {
      const failed = (error: Error) => reject(toNetError(what, error));
      this.#server.once("error", failed);
      this.#server.listen({ host, port, backlog: 1024 }, () => {
        this.#server.off("error", failed);
        this.#server.on("error", (error) => {
          this.#handlers.failed?.(toNetError(`Cannot accept on ${this.address}`, error));
        });
        this.#address = this.#server.address() as AddressInfo;
        resolve();
      });
    });
  }

  close(): Promise<void> {
    this.#server.close();
    for (const socket of this.#handshaking) socket.destroy();
    return Promise.resolve();
  }

  #incoming(socket: Socket): void {
    // Until a connection listens, a reset must not become an uncaught error.
    socket.on("error", () => {});
    const remoteAddress = formatAddress(socket.remoteAddress ?? "", socket.remotePort ?? 0);
    if (socket.remoteAddress === undefined) {
      socket.destroy(); // Already gone again.
      return;
    }
    if (this.#connectionCount >= this.#maxConnections) {
      this.#refuse(socket, remoteAddress, tooMany("connections", this.#maxConnections));
      return;
    }
    this.#connectionCount++;
    socket.once("close", () => this.#connectionCount--);
    const mode = this.#options.tls?.mode;
    if (mode === "direct" || mode === "mutual") this.#handshake(socket, remoteAddress);
    else this.#accept(socket);
  }

  #handshake(socket: Socket, remoteAddress: string): void {
    if (this.#handshaking.size >= this.#maxHandshakes) {
      this.#refuse(socket, remoteAddress, tooMany("handshakes", this.#maxHandshakes));
      return;
    }
    this.#handshaking.add(socket);
    let late: CausewayError | undefined;
    const { handshakeTimeoutMs } = this.#limits;
    const cancelTimer = this.#clock.after(handshakeTimeoutMs, () => {
      late = lateHandshake(remoteAddress, handshakeTimeoutMs);
      socket.destroy();
    });
    this.#acceptor!.secure(socket, (result) => {
      cancelTimer();
      this.#handshaking.delete(socket);
      if (result instanceof CausewayError) this.#refuse(socket, remoteAddress, late ?? result);
      else this.#accept(result);
    });
  }

  #accept(socket: Socket): void {
    const isStartTls = this.#options.tls?.mode === "starttls";
    const connection = new SocketConnection(socket, {
      limits: this.#limits,
      clock: this.#clock,
      ...(isStartTls ? { acceptor: this.#acceptor! } : {}),
    });
    this.#handlers.accepted(connection);
  }

  #refuse(socket: Socket, remoteAddress: string, error: CausewayError): void {
    socket.destroy();
    this.#handlers.refused?.(error, remoteAddress);
  }
}

function tooMany(what: "connections" | "handshakes", limit: number): CausewayError {
  return new CausewayError(
    `net/too-many-${what}`,
    `Cannot accept another peer: the limit is ${limit} ${what} at once`,
    { retryable: true },
  );
}
