import type { Socket } from "node:net";
import type { Server, TLSSocket } from "node:tls";
import { createServer } from "node:tls";
import { CausewayError } from "../base/mod.ts";
import { formatAddress } from "./address.ts";
import { toNetError } from "./net_error.ts";
import type { TlsContext } from "./tls_context.ts";
import type { TlsContextHolder } from "./tls_context_holder.ts";

/** Called once with the result of a handshake. */
export type HandshakeDone = (result: TLSSocket | CausewayError) => void;

interface Handshake {
  readonly remoteAddress: string;
  readonly done: HandshakeDone;
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
  readonly #isMutual: boolean;
  readonly #handshakes = new WeakMap<Socket, Handshake>();
  readonly #byAddress = new Map<string, Handshake>();
  #server: Server | undefined;
  #serverContext: TlsContext | undefined;

  constructor(holder: TlsContextHolder, options: { readonly isMutual: boolean }) {
    this.#holder = holder;
    this.#isMutual = options.isMutual;
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
    this.#serverForNow().emit("connection", plain);
  }

  #serverForNow(): Server {
    const context = this.#holder.current;
    if (this.#server !== undefined && this.#serverContext === context) return this.#server;
    const server = createServer({
      ...context.secure,
      // No timer of its own: the runtime keeps one, and everything that it refers to, past the socket's
      // end. The value is negative, because 0 stands for its 120 s.
      handshakeTimeout: -1,
      allowHalfOpen: true,
      minVersion: this.#isMutual ? "TLSv1.3" : "TLSv1.2",
      requestCert: this.#isMutual,
      rejectUnauthorized: false,
    });
    server.on("secureConnection", (socket) => this.#secured(socket));
    server.on("tlsClientError", (error, socket) => this.#failed(error, socket));
    this.#server = server;
    this.#serverContext = context;
    return server;
  }

  #secured(socket: TLSSocket): void {
    // The owner adds its own; without one an early reset would be uncaught.
    socket.on("error", () => {});
    const handshake = this.#byAddress.get(
      formatAddress(socket.remoteAddress ?? "", socket.remotePort ?? 0),
    );
    if (handshake === undefined) {
      socket.destroy();
      return;
    }
    if (this.#isMutual && !socket.authorized) {
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
    this.#finish(handshake, socket);
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

  #finish(handshake: Handshake, result: TLSSocket | CausewayError): void {
    if (this.#byAddress.get(handshake.remoteAddress) !== handshake) return;
    this.#byAddress.delete(handshake.remoteAddress);
    handshake.done(result);
  }
}
