import type { AddressInfo, Server, Socket } from "node:net";
import { createServer } from "node:net";
import type { Clock } from "../base/mod.ts";
import { CausewayError, SystemClock } from "../base/mod.ts";
import { AcceptProbe } from "./accept_probe.ts";
import { formatAddress, isLoopbackAddress } from "./address.ts";
import type {
  Listener,
  ListenerLimits,
  ListenOptions,
  ResolvedListenerLimits,
} from "./listener_options.ts";
import { resolveListenerLimits } from "./listener_options.ts";
import { toNetError } from "./net_error.ts";
import { lateHandshake } from "./socket_connection.ts";
import { TlsAcceptor } from "./tls_acceptor.ts";

/** Properties of an accepted socket. */
export interface AcceptedWith {
  /** The plain socket beneath a TLS socket. */
  readonly carrier: Socket | undefined;
  /** As in `Connection`. */
  readonly serverEndPoint: Uint8Array | undefined;
  /** Runs the handshake of STARTTLS; present where the listener has a certificate. */
  readonly acceptor: TlsAcceptor | undefined;
}

/** Callbacks like those of `ListenerEvents`, for sockets. */
export interface SocketListenerEvents {
  accepted(socket: Socket, accepted: AcceptedWith): void;
  refused(error: CausewayError, remoteAddress: string): void;
  failed(error: CausewayError): void;
}

/**
 * A port that hands out sockets after their TLS handshake. The owner builds its own kind of connection
 * on each.
 */
export class SocketListener implements Listener {
  /** Limits of the connections that come next. */
  limits: ResolvedListenerLimits;
  readonly clock: Clock;
  readonly #options: ListenOptions;
  readonly #events: SocketListenerEvents;
  readonly #acceptor: TlsAcceptor | undefined;
  readonly #probe: AcceptProbe;
  #server: Server | undefined;
  /** Sockets in their handshake, oldest first, each with a function that ends it. */
  readonly #handshaking = new Map<Socket, (reason: CausewayError) => void>();
  #address: AddressInfo = { address: "", family: "IPv4", port: 0 };
  #connectionCount = 0;
  #isClosed = false;

  constructor(options: ListenOptions, events: SocketListenerEvents) {
    this.#options = options;
    this.#events = events;
    this.limits = resolveListenerLimits(options.limits);
    this.clock = options.clock ?? new SystemClock();
    const { tls } = options;
    if (tls !== undefined) {
      const { alpnProtocols } = tls;
      this.#acceptor = new TlsAcceptor(tls.context, {
        isMutual: tls.mode === "mutual",
        inTurn: options.inTurn,
        ...(alpnProtocols === undefined ? {} : { alpnProtocols }),
      });
    }
    this.#probe = new AcceptProbe({
      intervalMs: this.limits.probeIntervalMs,
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

  changeLimits(limits: ListenerLimits): void {
    this.limits = resolveListenerLimits(limits);
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
    for (const socket of this.#handshaking.keys()) socket.destroy();
    return Promise.resolve();
  }

  async #bind(host: string, port: number): Promise<void> {
    const what = `Cannot listen on ${formatAddress(host, port)}`;
    // Check the permission first: the runtime throws a missing one where nobody can catch it.
    const { state } = await Deno.permissions.request({
      name: "net",
      host: formatAddress(host, port),
    });
    if (state !== "granted") {
      throw new CausewayError(
        "net/address-forbidden",
        `${what}: the process lacks permission, see --allow-net`,
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
          this.#events.failed(toNetError(`Cannot accept on ${this.address}`, error));
        });
        this.#address = server.address() as AddressInfo;
        resolve();
      });
    });
  }

  /** Opens the listener again. Never rejects: it reports a failure, and the next probe tries again. */
  async #reopen(): Promise<void> {
    this.#events.failed(
      new CausewayError(
        "net/not-accepting",
        `Cannot accept on ${this.address}: the listener stopped and is opened again`,
        {
          retryable: true,
        },
      ),
    );
    this.#server?.close();
    try {
      await this.#bind(this.host, this.port);
    } catch (error) {
      this.#events.failed(toNetError(`Cannot open ${this.address} again`, error));
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
    if (this.#connectionCount >= this.limits.maxConnections) {
      this.#refuse(socket, remoteAddress, tooMany("connections", this.limits.maxConnections));
      return;
    }
    this.#connectionCount++;
    socket.once("close", () => this.#connectionCount--);
    const mode = this.#options.tls?.mode;
    if (mode === "direct" || mode === "mutual") this.#handshake(socket, remoteAddress);
    else this.#accept(socket, { carrier: undefined, serverEndPoint: undefined });
  }

  #handshake(socket: Socket, remoteAddress: string): void {
    const { handshakeTimeoutMs, maxHandshakes } = this.limits;
    const isLoopback = isLoopbackAddress(socket.remoteAddress ?? "");
    if (this.#options.mayHandshake?.({ remoteAddress, isLoopback }) === false) {
      this.#refuse(
        socket,
        remoteAddress,
        new CausewayError(
          "net/too-often",
          `Cannot accept ${remoteAddress}: its address has connected too often`,
          { retryable: true },
        ),
      );
      return;
    }
    if (this.#handshaking.size >= maxHandshakes) {
      // The oldest makes room, so that silent peers cannot hold all places and keep others out.
      const [endOldest] = this.#handshaking.values();
      endOldest!(tooMany("handshakes", maxHandshakes));
    }
    let reason: CausewayError | undefined;
    const end = (why: CausewayError): void => {
      reason = why;
      this.#handshaking.delete(socket);
      socket.destroy();
    };
    this.#handshaking.set(socket, end);
    const cancelTimer = this.clock.after(
      handshakeTimeoutMs,
      () => end(lateHandshake(remoteAddress, handshakeTimeoutMs)),
    );
    this.#acceptor!.secure(socket, (result) => {
      cancelTimer();
      this.#handshaking.delete(socket);
      if (result instanceof CausewayError) this.#refuse(socket, remoteAddress, reason ?? result);
      else {
        const { serverEndPoint } = result.context;
        this.#accept(result.socket, { carrier: socket, serverEndPoint });
      }
    });
  }

  #accept(socket: Socket, accepted: Omit<AcceptedWith, "acceptor">): void {
    this.#events.accepted(socket, { ...accepted, acceptor: this.#acceptor });
  }

  #refuse(socket: Socket, remoteAddress: string, error: CausewayError): void {
    socket.destroy();
    this.#events.refused(error, remoteAddress);
  }
}

/** Returns the error for a peer for which there is no room. */
export function tooMany(what: "connections" | "handshakes", limit: number): CausewayError {
  return new CausewayError(
    `net/too-many-${what}`,
    `Cannot accept another peer: the limit is ${limit} ${what} at once`,
    { retryable: true },
  );
}
