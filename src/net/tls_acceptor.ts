import type { Socket } from "node:net";
import type { Server, TLSSocket } from "node:tls";
import { createServer } from "node:tls";
import { CausewayError } from "../base/mod.ts";
import { formatAddress } from "./address.ts";
import { toNetError } from "./net_error.ts";
import type { TlsContext } from "./tls_context.ts";
import type { TlsContextHolder } from "./tls_context_holder.ts";

/** A socket whose handshake is complete, with the certificate that it presented. */
export interface SecuredSocket {
  readonly socket: TLSSocket;
  readonly context: TlsContext;
}

/** Called once with the result of a handshake. */
export type HandshakeDone = (result: SecuredSocket | CausewayError) => void;

/** Options of an acceptor. */
export interface TlsAcceptorOptions {
  /** True when the peer must present a certificate. */
  readonly isMutual: boolean;
  /** True when the peer may present a certificate, but need not. @default false */
  readonly asksClient?: boolean;
  /** As in `ListenerTls`. @default any */
  readonly alpnProtocols?: readonly string[];
  /** As in `ListenOptions`. @default each handshake begins at once */
  readonly inTurn?: InTurn | undefined;
}

/**
 * Begins a handshake when there is time for it, by calling `handshake`. Its promise resolves when the
 * handshake is done, failed or not.
 */
export type InTurn = (handshake: () => Promise<void>) => void;

interface Handshake {
  readonly remoteAddress: string;
  done: HandshakeDone;
  error: CausewayError | undefined;
}

/**
 * Runs the server side of TLS on sockets that were accepted elsewhere.
 *
 * Sockets are injected into a `node:tls` server that never listens, because only there does the runtime
 * verify a client's certificate. That server does not refuse an unverified client itself, so that we can
 * report the reason. A mutual acceptor refuses the client here, before anybody sees the socket.
 */
export class TlsAcceptor {
  readonly #holder: TlsContextHolder;
  readonly #options: TlsAcceptorOptions;
  readonly #handshakes = new WeakMap<Socket, Handshake>();
  readonly #byAddress = new Map<string, Handshake>();
  #server: Server | undefined;
  #serverContext: TlsContext | undefined;

  constructor(holder: TlsContextHolder, options: TlsAcceptorOptions) {
    this.#holder = holder;
    this.#options = options;
  }

  /** Begins the handshake on `plain`. The caller sets time limits; `done` is called once. */
  secure(plain: Socket, done: HandshakeDone): void {
    const remoteAddress = formatAddress(plain.remoteAddress ?? "", plain.remotePort ?? 0);
    const handshake: Handshake = { remoteAddress, done, error: undefined };
    this.#handshakes.set(plain, handshake);
    this.#byAddress.set(remoteAddress, handshake);
    // A peer that ends during its handshake is gone; no answer could reach it.
    plain.allowHalfOpen = false;
    plain.on("error", (error) => {
      handshake.error ??= toNetError(`Lost ${remoteAddress} during its TLS handshake`, error);
    });
    plain.once("close", () => {
      this.#finish(
        handshake,
        handshake.error ?? new CausewayError(
          "net/reset",
          `Lost ${remoteAddress} during its TLS handshake: it closed the connection`,
          { retryable: true },
        ),
      );
    });
    readNothingOnceDestroyed(plain);
    const { inTurn } = this.#options;
    if (inTurn === undefined) return void this.#serverForNow().emit("connection", plain);
    const { promise, resolve } = Promise.withResolvers<void>();
    handshake.done = (result) => {
      resolve();
      done(result);
    };
    inTurn(() => {
      if (plain.destroyed) resolve(); // its end was reported
      else this.#serverForNow().emit("connection", plain);
      return promise;
    });
  }

  #serverForNow(): Server {
    const context = this.#holder.current;
    if (this.#server !== undefined && this.#serverContext === context) return this.#server;
    const { isMutual, asksClient = false, alpnProtocols } = this.#options;
    const server = createServer({
      ...context.secure,
      // No timer of its own: the runtime keeps one, and everything that it refers to, past the socket's
      // end. The value is negative, because 0 stands for its 120 s.
      handshakeTimeout: -1,
      allowHalfOpen: true,
      minVersion: isMutual ? "TLSv1.3" : "TLSv1.2",
      requestCert: isMutual || asksClient,
      rejectUnauthorized: false,
      // The runtime sends `no_application_protocol` to a client that names only others.
      ...(alpnProtocols === undefined ? {} : { ALPNProtocols: [...alpnProtocols] }),
    });
    // A socket stays with the server that accepted it, and so with its certificate, also when the
    // context has been replaced before the handshake ends.
    server.on("secureConnection", (socket) => this.#secured(socket, context));
    server.on("tlsClientError", (error, socket) => this.#failed(error, socket));
    this.#server = server;
    this.#serverContext = context;
    return server;
  }

  #secured(socket: TLSSocket, context: TlsContext): void {
    // The owner adds its own; without one an early reset would be uncaught.
    socket.on("error", () => {});
    const handshake = this.#byAddress.get(
      formatAddress(socket.remoteAddress ?? "", socket.remotePort ?? 0),
    );
    if (handshake === undefined) {
      socket.destroy();
      return;
    }
    if (this.#options.isMutual && !socket.authorized) {
      const why = String(socket.authorizationError ?? "no certificate");
      socket.destroy();
      this.#finish(
        handshake,
        new CausewayError(
          "net/tls-untrusted",
          `Refused the certificate of ${handshake.remoteAddress}: ${why}`,
        ),
      );
      return;
    }
    this.#finish(handshake, { socket, context });
  }

  #failed(error: Error, socket: TLSSocket): void {
    socket.on("error", () => {});
    // The plain socket under a TLS socket has no public name. Without it the reason is less exact.
    const plain = (socket as unknown as { readonly _parent?: Socket })._parent;
    const handshake = plain === undefined ? undefined : this.#handshakes.get(plain);
    if (handshake !== undefined) {
      handshake.error ??= toNetError(
        `Cannot complete the TLS handshake with ${handshake.remoteAddress}`,
        error,
      );
      this.#finish(handshake, handshake.error);
    }
    socket.destroy();
  }

  #finish(handshake: Handshake, result: SecuredSocket | CausewayError): void {
    if (this.#byAddress.get(handshake.remoteAddress) !== handshake) return;
    this.#byAddress.delete(handshake.remoteAddress);
    handshake.done(result);
  }
}

/**
 * Lets a destroyed socket give no more bytes. The runtime hands what a socket has read before its
 * handshake to TLS, chunk by chunk. When one of them ends the handshake, it goes on with the next one,
 * and that error would end the process.
 */
function readNothingOnceDestroyed(plain: Socket): void {
  const read = plain.read.bind(plain);
  plain.read = (size?: number) => plain.destroyed ? null : read(size);
}
