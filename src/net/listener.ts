import type { AddressInfo, Server, Socket } from "node:net";
import { createServer } from "node:net";
import type { Clock } from "../base/mod.ts";
import { CausewayError, SystemClock } from "../base/mod.ts";
import { AcceptProbe } from "./accept_probe.ts";
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
  /**
   * Milliseconds between checks that the listener still accepts; one that does not, after want of
   * file descriptors, is opened again. @default 10_000
   */
  readonly probeIntervalMs?: number;
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
  /**
   * Accepting failed (`net/not-accepting` where the listener had stopped, for want of file
   * descriptors for example); it is opened again.
   */
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
const DEFAULT_PROBE_INTERVAL_MS = 10_000;

class SocketListener implements Listener {
  readonly #options: ListenOptions;
  readonly #handlers: ListenerHandlers;
  readonly #limits: Required<ConnectionLimits>;
  readonly #maxConnections: number;
  readonly #maxHandshakes: number;
  readonly #clock: Clock;
  readonly #acceptor: TlsAcceptor | undefined;
  readonly #probe: AcceptProbe;
  #server: Server | undefined;
  readonly #handshaking = new Set<Socket>();
  #address: AddressInfo = { address: "", family: "IPv4", port: 0 };
  #connectionCount = 0;
  #isClosed = false;

  constructor(options: ListenOptions, handlers: ListenerHandlers) {
    const { maxConnections, maxHandshakes, probeIntervalMs, ...limits } = options.limits ?? {};
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
    this.#probe = new AcceptProbe({
      intervalMs: probeIntervalMs ?? DEFAULT_PROBE_INTERVAL_MS,
      address: () => this,
      pass: (socket) => this.#admit(socket),
      dead: () => void this.#reopen(),
    });
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

  async open(): Promise<void> {
    const { host, port } = this.#options;
    await this.#bind(host, port);
    this.#probe.start();
  }

  close(): Promise<void> {
    this.#probe.stop();
    this.#server?.close();
    this.#server = undefined;
    this.#isClosed = true;
    for (const socket of this.#handshaking) socket.destroy();
    return Promise.resolve();
  }

  async #bind(host: string, port: number): Promise<void> {
    const what = `Cannot listen on ${formatAddress(host, port)}`;
    // The runtime throws a missing permission from a place where nobody can catch it.
    const { state } = await Deno.permissions.request({
      name: "net",
      host: formatAddress(host, port),
    });
    if (state !== "granted") {
      throw new CausewayError(
        "net/address-forbidden",
        `${what}: the process may not, see --allow-net`,
      );
    }
    const server = createServer(
      { allowHalfOpen: true, noDelay: true },
      (socket) => this.#incoming(socket),
    );
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      const failed = (error: Error) => reject(toNetError(what, error));
      server.once("error", failed);
      server.listen({ host, port, backlog: 1024 }, () => {
        server.off("error", failed);
        server.on("error", (error) => {
          this.#handlers.failed?.(toNetError(`Cannot accept on ${this.address}`, error));
        });
        this.#address = server.address() as AddressInfo;
        resolve();
      });
    });
  }

  /** Never rejects: what fails is told, and the next probe tries again. */
  async #reopen(): Promise<void> {
    this.#handlers.failed?.(
      new CausewayError("net/not-accepting", `Opening ${this.address} again: it did not accept`, {
        retryable: true,
      }),
    );
    this.#server?.close();
    try {
      await this.#bind(this.host, this.port);
    } catch (error) {
      this.#handlers.failed?.(toNetError(`Cannot open ${this.address} again`, error));
    }
    if (this.#isClosed) this.#server?.close();
  }

  #incoming(socket: Socket): void {
    // Until a connection listens, a reset must not become an uncaught error.
    socket.on("error", () => {});
    if (!this.#probe.takes(socket)) this.#admit(socket);
  }

  #admit(socket: Socket): void {
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
      else this.#accept(result, socket);
    });
  }

  #accept(socket: Socket, carrier?: Socket): void {
    const isStartTls = this.#options.tls?.mode === "starttls";
    const connection = new SocketConnection(socket, {
      limits: this.#limits,
      clock: this.#clock,
      ...(isStartTls ? { acceptor: this.#acceptor! } : {}),
      ...(carrier === undefined ? {} : { carrier }),
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
