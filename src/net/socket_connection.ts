import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { CancelTimer, Clock } from "../base/mod.ts";
import { CausewayError, countLeadingSpace, MAX_SKIPPED_SPACE_BYTES } from "../base/mod.ts";
import { formatAddress, isLoopbackAddress } from "./address.ts";
import type { Connection, ConnectionEvents } from "./connection.ts";
import type { ConnectionLimits } from "./connection_limits.ts";
import { Flushing } from "./flush_schedule.ts";
import { toNetError } from "./net_error.ts";
import { OutputBuffer } from "./output_buffer.ts";
import type { TlsAcceptor } from "./tls_acceptor.ts";
import { holdCarrier, isTlsSocket, peerCertificateNames } from "./tls_peer.ts";

/** Limits and clock of a socket connection, and its TLS. */
export interface SocketConnectionDeps {
  readonly limits: Required<ConnectionLimits>;
  readonly clock: Clock;
  /** Present where the peer may ask for STARTTLS. */
  readonly acceptor?: TlsAcceptor;
  /** The plain socket beneath a TLS socket. */
  readonly carrier?: Socket;
  /** As in `Connection`. */
  readonly serverEndPoint?: Uint8Array;
}

/**
 * Life of the connection. It only moves down this list, except that `securing` goes back to `open` once.
 *
 * | phase | reads | writes | leaves on |
 * |---|---|---|---|
 * | `open` | to the callbacks | each turn's bytes in one write | `startTls`, `close`, peer's end |
 * | `securing` | TLS handshake only | kept | handshake done, failed or late |
 * | `closing` | and drops | the rest of the queue, then the end | peer's end, linger time over |
 * | `closed` | – | – | – |
 */
type Phase = "open" | "securing" | "closing" | "closed";

/** A `Connection` over a socket of `node:net` or `node:tls`. */
export class SocketConnection implements Connection {
  readonly remoteAddress: string;
  readonly isLoopback: boolean;
  readonly startTls?: () => void;
  #socket: Socket;
  #carrier: Socket | undefined;
  #isEncrypted: boolean;
  #peerNames: readonly string[];
  #serverEndPoint: Uint8Array | undefined;
  readonly #limits: Required<ConnectionLimits>;
  readonly #clock: Clock;
  readonly #output = new OutputBuffer();
  #phase: Phase = "open";
  #events: ConnectionEvents | undefined;
  readonly #flushing = new Flushing(this);
  #inFlightBytes = 0;
  /** True when bytes must be written once those in flight are. */
  #isOwing = false;
  /** Sends that were lost with the queue, or came when nothing was taken any more. */
  #lostSends = 0;
  #isOverHighWater = false;
  #isPaused = false;
  #hasPeerEnded = false;
  #hasEnded = false;
  #error: CausewayError | undefined;
  #cancelTimer: CancelTimer | undefined;
  #isSocketClosed = false;
  #beginHandshake: (() => void) | undefined;
  readonly #onWritten = (error?: Error | null): void => this.#written(error);

  constructor(socket: Socket | TLSSocket, deps: SocketConnectionDeps) {
    this.#socket = socket;
    this.#carrier = deps.carrier;
    this.#serverEndPoint = deps.serverEndPoint;
    this.#limits = deps.limits;
    this.#clock = deps.clock;
    const remoteHost = socket.remoteAddress ?? "";
    this.remoteAddress = formatAddress(remoteHost, socket.remotePort ?? 0);
    this.isLoopback = isLoopbackAddress(remoteHost);
    this.#isEncrypted = isTlsSocket(socket);
    this.#peerNames = isTlsSocket(socket) ? peerCertificateNames(socket) : [];
    const { acceptor } = deps;
    if (acceptor !== undefined) this.startTls = () => this.#startTls(acceptor);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, this.#limits.keepAliveMs);
    this.#watch(socket);
  }

  get isEncrypted(): boolean {
    return this.#isEncrypted;
  }

  get peerNames(): readonly string[] {
    return this.#peerNames;
  }

  get serverEndPoint(): Uint8Array | undefined {
    return this.#serverEndPoint;
  }

  get pendingBytes(): number {
    return this.#output.pendingBytes;
  }

  get unwrittenSends(): number {
    return this.#lostSends + this.#output.pendingAppends;
  }

  start(events: ConnectionEvents): void {
    if (this.#events !== undefined) throw new TypeError("Cannot start a connection twice");
    this.#events = events;
    if (this.#phase === "closed") {
      queueMicrotask(() => events.closed(this.#error));
      return;
    }
    this.#read(this.#socket);
  }

  send(bytes: Uint8Array, mayWait = false): void {
    if (bytes.length === 0) return;
    // During a handshake the peer can read nothing, and nothing may leave in the clear.
    if (this.#phase !== "open") {
      this.#lostSends++;
      return;
    }
    const pendingBytes = this.#output.pendingBytes + bytes.length;
    const { maxPendingBytes, highWaterBytes } = this.#limits;
    if (pendingBytes > maxPendingBytes) {
      this.#lostSends++;
      this.destroy(peerTooSlow(this.remoteAddress, pendingBytes, maxPendingBytes));
      return;
    }
    if (pendingBytes > highWaterBytes) this.#isOverHighWater = true;
    this.#output.append(bytes);
    if (mayWait && pendingBytes <= highWaterBytes) this.#flushing.late();
    else this.#flushing.soon();
  }

  pause(): void {
    this.#isPaused = true;
    if (this.#phase === "open") this.#stopReading();
  }

  resume(): void {
    this.#isPaused = false;
    if (this.#phase === "open" && this.#events !== undefined) this.#startReading();
  }

  close(): void {
    if (this.#phase === "closing" || this.#phase === "closed") return;
    const isSecuring = this.#phase === "securing";
    this.#phase = "closing";
    if (isSecuring) {
      this.#hasEnded = true;
      this.#socket.destroy();
      return;
    }
    this.#cancelTimer = this.#clock.after(this.#limits.lingerMs, () => this.#lingerOver());
    // Unread bytes would make the system reset the connection and lose our queued bytes.
    this.#startReading();
    this.#flushing.cancel();
    this.flush();
  }

  destroy(reason: CausewayError): void {
    if (this.#phase === "closed") return;
    this.#error ??= reason;
    this.#phase = "closing";
    this.#loseOutput();
    this.#flushing.cancel();
    this.#hasEnded = true;
    this.#socket.destroy();
  }

  /** Writes the queue unless a write is under way. Called by the schedule. */
  flush(): void {
    if (this.#inFlightBytes > 0) this.#isOwing = true;
    if (this.#inFlightBytes > 0 || this.#hasEnded) return;
    if (this.#phase === "securing" && this.#beginHandshake === undefined) return;
    const piece = this.#output.nextPiece();
    if (piece !== undefined) {
      this.#inFlightBytes = piece.length;
      this.#isOwing = piece.length < this.#output.pendingBytes;
      this.#socket.write(piece, this.#onWritten);
    } else if (this.#phase === "closing") {
      this.#hasEnded = true;
      this.#socket.end();
    }
  }

  #written(error: Error | null | undefined): void {
    const byteLength = this.#inFlightBytes;
    this.#inFlightBytes = 0;
    // The socket reports the failure itself.
    if (error || this.#hasEnded) return;
    this.#output.written(byteLength);
    if (this.#output.pendingBytes === 0) this.#beginHandshake?.();
    const mayWait = this.#flushing.isSoon || (this.#flushing.isLate && !this.#isOwing);
    if (!mayWait) this.flush();
    if (this.#isOverHighWater && this.#output.pendingBytes === 0) {
      this.#isOverHighWater = false;
      if (this.#phase === "open") this.#events?.drained?.();
    }
  }

  #watch(socket: Socket): void {
    socket.on("error", (error) => {
      // The peer ended first and then refused our remaining bytes: that is an orderly end.
      if (!this.#hasPeerEnded) {
        this.#error ??= toNetError(`Lost the connection to ${this.remoteAddress}`, error);
      }
    });
    socket.on("close", () => {
      if (socket !== this.#socket) return;
      this.#isSocketClosed = true;
      // During a handshake the acceptor knows the reason better.
      if (this.#phase !== "securing") this.#finish();
    });
  }

  #read(socket: Socket): void {
    socket.on("data", (chunk: Uint8Array) => {
      if (this.#phase !== "open") return;
      // Plain `Uint8Array`s keep the parser's code monomorphic and their views cheap.
      this.#events!.data(
        new Uint8Array(chunk.buffer as ArrayBuffer, chunk.byteOffset, chunk.length),
      );
    });
    socket.on("end", () => {
      this.#hasPeerEnded = true;
      this.close();
    });
    // A closing connection keeps reading, to see the peer's end.
    if (this.#isPaused && this.#phase === "open") this.#stopReading();
    else this.#startReading();
  }

  #stopReading(): void {
    this.#socket.pause();
    if (this.#carrier !== undefined) holdCarrier(this.#carrier, true);
  }

  #startReading(): void {
    if (this.#carrier !== undefined) holdCarrier(this.#carrier, false);
    this.#socket.resume();
  }

  #startTls(acceptor: TlsAcceptor): void {
    if (this.#phase !== "open") return;
    if (this.#isEncrypted || this.#events === undefined) {
      throw new TypeError("Cannot start TLS on a connection that is encrypted or not started");
    }
    const plain = this.#socket;
    this.#phase = "securing";
    plain.removeAllListeners("data");
    plain.removeAllListeners("end");
    plain.pause();
    this.#cancelTimer = this.#clock.after(
      this.#limits.handshakeTimeoutMs,
      () => this.destroy(lateHandshake(this.remoteAddress, this.#limits.handshakeTimeoutMs)),
    );
    this.#beginHandshake = () => {
      this.#beginHandshake = undefined;
      this.#awaitHandshake(plain, acceptor);
    };
    this.flush();
    // Nothing can arrive between a write that the system took at once and the handshake.
    const isTaken = plain.writableLength === 0 && this.#inFlightBytes === this.pendingBytes;
    if (isTaken) this.#beginHandshake();
  }

  /**
   * Waits for the first byte of the handshake, and skips a little white space before it. Apart from
   * white space, bytes that came in the clear are never accepted.
   */
  #awaitHandshake(plain: Socket, acceptor: TlsAcceptor): void {
    const early = plain.read() as Uint8Array | null;
    const earlyBytes = early?.length ?? 0;
    let spaceBytes = early === null ? 0 : countLeadingSpace(early);
    if (earlyBytes > spaceBytes || spaceBytes > MAX_SKIPPED_SPACE_BYTES) {
      this.destroy(pipelined(this.remoteAddress, earlyBytes));
      return;
    }
    const stopWaiting = () => {
      plain.off("data", onData);
      plain.off("end", onGone);
      plain.off("close", onGone);
      plain.pause();
    };
    const onData = (chunk: Uint8Array) => {
      if (this.#phase !== "securing") return;
      const skippedBytes = countLeadingSpace(chunk);
      spaceBytes += skippedBytes;
      if (spaceBytes > MAX_SKIPPED_SPACE_BYTES) {
        stopWaiting();
        this.destroy(pipelined(this.remoteAddress, spaceBytes));
      } else if (skippedBytes < chunk.length) {
        stopWaiting();
        plain.unshift(chunk.subarray(skippedBytes));
        this.#secure(plain, acceptor);
      }
    };
    const onGone = () => {
      stopWaiting();
      if (this.#phase !== "securing") return;
      this.destroy(
        new CausewayError(
          "net/reset",
          `Lost ${this.remoteAddress} before its TLS handshake: it closed the connection`,
          { retryable: true },
        ),
      );
      if (this.#isSocketClosed) this.#finish();
    };
    plain.on("data", onData);
    plain.once("end", onGone);
    plain.once("close", onGone);
    plain.resume();
  }

  #secure(plain: Socket, acceptor: TlsAcceptor): void {
    acceptor.secure(plain, (result) => {
      if (this.#phase !== "securing") {
        if (!(result instanceof CausewayError)) result.socket.destroy();
        return;
      }
      this.#cancelTimer?.();
      this.#cancelTimer = undefined;
      if (result instanceof CausewayError) {
        this.destroy(result);
        if (this.#isSocketClosed) this.#finish();
        return;
      }
      const { socket, context } = result;
      this.#socket = socket;
      this.#carrier = plain;
      this.#watch(socket);
      this.#isEncrypted = true;
      this.#peerNames = peerCertificateNames(socket);
      this.#serverEndPoint = context.serverEndPoint;
      this.#phase = "open";
      this.#events!.secured?.();
      this.#read(socket);
    });
  }

  #lingerOver(): void {
    const pendingBytes = this.#output.pendingBytes;
    if (pendingBytes > 0 && !this.#hasPeerEnded) {
      this.#error ??= new CausewayError(
        "net/linger-timeout",
        `Closed ${this.remoteAddress} with ${pendingBytes} bytes unsent: ` +
          `the limit is ${this.#limits.lingerMs} ms`,
      );
    }
    this.#socket.destroy();
  }

  #finish(): void {
    if (this.#phase === "closed") return;
    // A socket that closes though nobody ended it was cut, even when it reports no error.
    if (this.#phase === "open") {
      this.#error ??= new CausewayError(
        "net/reset",
        `Lost the connection to ${this.remoteAddress}: it was cut`,
        { retryable: true },
      );
    }
    this.#phase = "closed";
    this.#cancelTimer?.();
    this.#flushing.cancel();
    this.#loseOutput();
    this.#events?.closed(this.#error);
  }

  #loseOutput(): void {
    this.#lostSends += this.#output.pendingAppends;
    this.#output.clear();
  }
}

/** Returns the error for a peer that writes on after its request for TLS. */
function pipelined(remoteAddress: string, byteLength: number): CausewayError {
  return new CausewayError(
    "net/starttls-pipelined",
    `Cannot start TLS with ${remoteAddress}: ${byteLength} bytes came before the handshake`,
  );
}

/** Returns the error for a peer that does not complete its handshake. */
export function lateHandshake(remoteAddress: string, limitMs: number): CausewayError {
  return new CausewayError(
    "net/handshake-timeout",
    `Cannot complete the TLS handshake with ${remoteAddress}: the limit is ${limitMs} ms`,
    { retryable: true },
  );
}

/** Returns the error for a peer that does not read what is sent to it. */
export function peerTooSlow(
  remoteAddress: string,
  pendingBytes: number,
  limitBytes: number,
): CausewayError {
  return new CausewayError(
    "net/peer-too-slow",
    `Cannot queue ${pendingBytes} bytes for ${remoteAddress}: the limit is ${limitBytes} bytes`,
    { retryable: true },
  );
}
