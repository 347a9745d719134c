import type { Socket } from "node:net";
// @ts-types="@types/ws"
import type { WebSocket } from "ws";
import { CausewayError } from "../base/mod.ts";
import { formatAddress, isLoopbackAddress } from "./address.ts";
import type { ConnectionLimits } from "./connection_limits.ts";
import { Flushing } from "./flush_schedule.ts";
import type { MessageConnection, MessageConnectionEvents } from "./message_connection.ts";
import { toNetError } from "./net_error.ts";
import { peerTooSlow } from "./socket_connection.ts";
import { holdCarrier, isTlsSocket } from "./tls_peer.ts";

/** Sockets beneath a WebSocket, and the limits of its connection. */
export interface WebSocketConnectionDeps {
  /** The socket beneath the WebSocket. */
  readonly socket: Socket;
  /** The plain socket beneath a TLS socket. */
  readonly carrier: Socket | undefined;
  /** As in `Connection`. */
  readonly serverEndPoint: Uint8Array | undefined;
  readonly limits: Required<ConnectionLimits>;
}

const TEXT = { binary: false, compress: false } as const;

/** RFC 6455 §7.4.1: data of a kind that is not accepted here. */
const UNSUPPORTED_DATA = 1003;
/** Code that `ws` reports for a peer that left without a close frame. */
const ABNORMAL_CLOSURE = 1006;

/** A `MessageConnection` over a WebSocket of the npm package `ws`, on the server's side. */
export class WebSocketConnection implements MessageConnection {
  readonly remoteAddress: string;
  readonly isLoopback: boolean;
  readonly isEncrypted: boolean;
  readonly serverEndPoint: Uint8Array | undefined;
  readonly #webSocket: WebSocket;
  readonly #socket: Socket;
  readonly #carrier: Socket | undefined;
  readonly #limits: Required<ConnectionLimits>;
  #events: MessageConnectionEvents | undefined;
  /** `closing` begins with our own end or with the peer's mistake; incoming data is then ignored. */
  #phase: "open" | "closing" | "closed" = "open";
  #isCorked = false;
  readonly #flushing = new Flushing(this);
  #isOverHighWater = false;
  #unwrittenSends = 0;
  #error: CausewayError | undefined;
  readonly #onWritten = (error?: Error | null): void => this.#written(error);

  constructor(webSocket: WebSocket, deps: WebSocketConnectionDeps) {
    const { socket } = deps;
    this.#webSocket = webSocket;
    this.#socket = socket;
    this.#carrier = deps.carrier;
    this.#limits = deps.limits;
    this.remoteAddress = formatAddress(socket.remoteAddress ?? "", socket.remotePort ?? 0);
    this.isLoopback = isLoopbackAddress(socket.remoteAddress ?? "");
    this.isEncrypted = isTlsSocket(socket);
    this.serverEndPoint = deps.serverEndPoint;
    socket.setKeepAlive(true, this.#limits.keepAliveMs);
    this.#watch();
    this.pause(); // until `start` sets the callbacks
  }

  get pendingBytes(): number {
    return this.#socket.writableLength;
  }

  get unwrittenSends(): number {
    return this.#unwrittenSends;
  }

  start(events: MessageConnectionEvents): void {
    if (this.#events !== undefined) throw new TypeError("Cannot start a connection twice");
    this.#events = events;
    if (this.#phase === "closed") queueMicrotask(() => events.closed(this.#error));
    else this.resume();
  }

  send(bytes: Uint8Array, mayWait = false): void {
    this.#unwrittenSends++;
    if (this.#phase !== "open") return;
    const pendingBytes = this.pendingBytes + bytes.length;
    const { maxPendingBytes, highWaterBytes } = this.#limits;
    if (pendingBytes > maxPendingBytes) {
      this.destroy(peerTooSlow(this.remoteAddress, pendingBytes, maxPendingBytes));
      return;
    }
    if (pendingBytes > highWaterBytes) this.#isOverHighWater = true;
    this.#cork(mayWait && pendingBytes <= highWaterBytes);
    // The socket's own `drain` fires only above its own mark.
    this.#webSocket.send(bytes, TEXT, this.#onWritten);
  }

  ping(): void {
    if (this.#phase !== "open") return;
    this.#cork();
    this.#webSocket.ping();
  }

  pause(): void {
    if (this.#phase !== "open") return;
    this.#webSocket.pause();
    if (this.#carrier !== undefined) holdCarrier(this.#carrier, true);
  }

  resume(): void {
    if (this.#events !== undefined && this.#phase === "open") this.#startReading();
  }

  close(code: number): void {
    if (this.#phase !== "open") return;
    this.#phase = "closing";
    this.#webSocket.close(code);
    // Wait for the peer's close frame. Where none comes, `closeTimeout` ends the wait.
    this.#startReading();
  }

  destroy(reason: CausewayError): void {
    if (this.#phase === "closed") return;
    this.#error ??= reason;
    this.#phase = "closing";
    this.#webSocket.terminate();
  }

  /** Writes everything that this turn has queued. Called by the schedule. */
  flush(): void {
    this.#isCorked = false;
    this.#socket.uncork();
  }

  #cork(mayWait = false): void {
    if (!this.#isCorked) this.#socket.cork();
    this.#isCorked = true;
    if (mayWait) this.#flushing.late();
    else this.#flushing.soon();
  }

  #written(error: Error | null | undefined): void {
    if (!error) this.#unwrittenSends--;
    if (!this.#isOverHighWater || this.pendingBytes > 0) return;
    this.#isOverHighWater = false;
    if (this.#phase === "open") this.#events?.drained?.();
  }

  #startReading(): void {
    if (this.#carrier !== undefined) holdCarrier(this.#carrier, false);
    this.#webSocket.resume();
  }

  #watch(): void {
    const webSocket = this.#webSocket;
    const socket = this.#socket;
    socket.on("error", (error) => {
      this.#error ??= toNetError(`Lost the connection to ${this.remoteAddress}`, error);
    });
    // Runs before the listener that cuts the bytes into messages.
    socket.prependListener("data", (chunk: Uint8Array) => {
      if (this.#phase === "open") this.#events?.received?.(chunk.length);
    });
    // A `Buffer`, as the binary type of `ws` is by default.
    webSocket.on("message", (data: Uint8Array, isBinary) => {
      if (this.#phase !== "open") return;
      if (isBinary) {
        this.#error = new CausewayError(
          "net/websocket-protocol",
          `Cannot accept a binary message from ${this.remoteAddress}: text is expected`,
        );
        this.close(UNSUPPORTED_DATA);
        return;
      }
      // Plain `Uint8Array`s keep the parser's code monomorphic and their views cheap.
      this.#events?.message(
        new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.length),
      );
    });
    webSocket.on("ping", (data) => {
      // RFC 6455 §5.5.3 lets pings go unanswered. For a peer that does not read, pongs must not pile up.
      if (this.#phase !== "open" || this.pendingBytes > this.#limits.highWaterBytes) return;
      this.#cork();
      webSocket.pong(data);
    });
    webSocket.on("error", (error) => {
      this.#error ??= protocolError(error, this.remoteAddress);
      if (this.#phase === "open") this.#phase = "closing"; // the package has sent the close frame
    });
    webSocket.on("close", (code) => this.#closed(code));
  }

  #closed(code: number): void {
    if (this.#phase === "open" && code === ABNORMAL_CLOSURE) {
      this.#error ??= new CausewayError(
        "net/reset",
        `Lost the connection to ${this.remoteAddress}: it was cut`,
        { retryable: true },
      );
    }
    this.#phase = "closed";
    this.#flushing.cancel();
    this.#events?.closed(this.#error);
  }
}

/** Turns the package's error into one of ours that names the peer's mistake. */
function protocolError(error: Error, remoteAddress: string): CausewayError {
  const code = "code" in error ? String(error.code) : "";
  if (!code.startsWith("WS_ERR_")) {
    return toNetError(`Lost the connection to ${remoteAddress}`, error);
  }
  return new CausewayError(
    code === "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH"
      ? "net/message-too-large"
      : "net/websocket-protocol",
    `Cannot accept a WebSocket frame from ${remoteAddress}: ${error.message}`,
    { cause: error },
  );
}
