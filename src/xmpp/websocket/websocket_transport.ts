import type { CausewayError } from "../../base/mod.ts";
import type { MessageConnection } from "../../net/mod.ts";
import type { ResolvedStreamLimits } from "../stream/stream_limits.ts";
import { scannerLimits } from "../stream/stream_limits.ts";
import type {
  ResponseHeader,
  StreamTransport,
  TransportEvents,
  TransportLimit,
} from "../stream/stream_transport.ts";
import { tellFailure } from "../stream/tell_failure.ts";
import { FrameScanner } from "../xml/frame_scanner.ts";
import { CLIENT_NAMESPACE, FRAMING_NAMESPACE, STREAM_NAMESPACE } from "../xml/namespaces.ts";
import type { ScannedElement, StreamHeader } from "../xml/scanner_types.ts";
import { frameStanza } from "../xml/stamp.ts";
import { refuseLongHeader } from "../xml/stream_header.ts";
import { closeMessage, openMessage, streamElementMessage } from "./framing.ts";
import { HeldMessages } from "./held_messages.ts";

const UTF8 = new TextEncoder();

/** RFC 6455 §7.4.1: the purpose has been fulfilled. */
const NORMAL_CLOSURE = 1000;

/**
 * A stream over a WebSocket (RFC 7395): each message is one whole element; `<open/>` and `<close/>`
 * stand for the header and the end of the stream.
 */
export class WebSocketTransport implements StreamTransport {
  readonly #connection: MessageConnection;
  readonly #scanner: FrameScanner;
  readonly #held: HeldMessages;
  #events: TransportEvents | undefined;
  /** Bytes that the peer may still send: unlimited once it is trusted. */
  #bytesLeft: number;
  #bytesLimit: TransportLimit = "unauthenticated-bytes";
  /** True while the next element has to be an `<open/>`. */
  #isOpening = true;
  #isHeaderSent = false;
  #isHeld = false;
  #isPaused = false;
  #isReleasing = false;
  /** Sends since the last stanza. */
  #sendsBehind = 0;
  /** True once our `<close/>` was sent: nothing may follow it (RFC 7395 §3.6). */
  #isOutputOver = false;
  /** True once we hung up or failed: further input is ignored. */
  #isOver = false;
  /** True once the peer ended its stream: further input is ignored. */
  #isDeaf = false;

  constructor(connection: MessageConnection, limits: ResolvedStreamLimits) {
    this.#connection = connection;
    this.#bytesLeft = limits.maxUnauthenticatedBytes;
    this.#scanner = new FrameScanner(scannerLimits(limits));
    this.#held = new HeldMessages(limits.maxStanzaBytes);
  }

  get remoteAddress(): string {
    return this.#connection.remoteAddress;
  }

  get isEncrypted(): boolean {
    return this.#connection.isEncrypted;
  }

  get isLoopback(): boolean {
    return this.#connection.isLoopback;
  }

  get serverEndPoint(): Uint8Array | undefined {
    return this.#connection.serverEndPoint;
  }

  /** Always false: RFC 7395 §3.9 leaves encryption to the WebSocket. */
  get canStartTls(): boolean {
    return false;
  }

  get pendingBytes(): number {
    return this.#connection.pendingBytes;
  }

  get unwrittenStanzas(): number {
    return Math.max(0, this.#connection.unwrittenSends - this.#sendsBehind);
  }

  start(events: TransportEvents): void {
    this.#events = events;
    this.#connection.start({
      received: (byteLength) => this.#received(byteLength),
      message: (bytes) => this.#message(bytes),
      drained: () => events.drained(),
      closed: (error) => this.#closed(error),
    });
  }

  sendHeader(header: ResponseHeader): void {
    this.#isHeaderSent = true;
    this.#send(openMessage(header));
  }

  sendStreamElement(name: "features" | "error", content: string): void {
    this.#send(streamElementMessage(name, content));
  }

  sendNonza(xml: string): void {
    this.#send(xml);
  }

  sendStanza(bytes: Uint8Array, mayWait?: boolean): void {
    if (this.#isOutputOver) return;
    this.#sendsBehind = 0;
    this.#connection.send(frameStanza(bytes), mayWait);
  }

  /** Sends a ping, because RFC 7395 §3.8 has no white space between messages. */
  sendKeepalive(): void {
    this.#connection.ping();
  }

  restart(): void {
    this.#isOpening = true;
    this.#isHeaderSent = false;
  }

  hold(): void {
    if (this.#isHeld) return;
    this.#isHeld = true;
    this.#connection.pause();
  }

  release(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    if (!this.#isPaused) this.#connection.resume();
    if (!this.#isReleasing) this.#handOutHeld();
  }

  pause(): void {
    this.#isPaused = true;
    this.#connection.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (!this.#isHeld) this.#connection.resume();
  }

  trust(): void {
    this.#bytesLeft = Infinity;
  }

  /** @throws TypeError always, as STARTTLS is never offered */
  startTls(): never {
    throw new TypeError("Cannot start TLS inside a WebSocket");
  }

  endOutput(maxBytes: number): void {
    if (this.#isHeaderSent) this.#send(closeMessage());
    this.#isOutputOver = true;
    this.#bytesLeft = maxBytes;
    this.#bytesLimit = "late-bytes";
  }

  /** Sends our `<close/>` (RFC 7395 §3.6) and the WebSocket's own end. */
  end(): void {
    if (this.#isHeaderSent && !this.#isOver) this.#send(closeMessage());
    this.#isOver = true;
    this.#held.clear();
    this.#connection.close(NORMAL_CLOSURE);
  }

  destroy(reason: CausewayError): void {
    this.#isOver = true;
    this.#held.clear();
    this.#connection.destroy(reason);
  }

  #send(xml: string): void {
    if (this.#isOutputOver) return;
    this.#sendsBehind++;
    this.#connection.send(UTF8.encode(xml));
  }

  #received(byteLength: number): void {
    if (this.#bytesLeft === Infinity || this.#isOver) return;
    this.#bytesLeft -= byteLength;
    if (this.#bytesLeft < 0) this.#events!.failed("policy-violation", this.#bytesLimit);
  }

  #message(bytes: Uint8Array): void {
    if (this.#isOver || this.#isDeaf) return;
    if (!this.#isHeld && !this.#isReleasing) this.#scan(bytes);
    else if (!this.#held.add(bytes)) this.#events!.failed("policy-violation", "stanza-bounds");
  }

  #handOutHeld(): void {
    this.#isReleasing = true;
    while (!this.#isHeld && !this.#isOver && !this.#isDeaf) {
      const bytes = this.#held.take();
      if (bytes === undefined) break;
      this.#scan(bytes);
    }
    this.#isReleasing = false;
  }

  #scan(bytes: Uint8Array): void {
    try {
      this.#element(this.#scanner.scan(bytes));
    } catch (thrown) {
      // After the end a failure changes nothing.
      if (!this.#isOver) tellFailure(thrown, this.#events!);
    }
  }

  #element(element: ScannedElement): void {
    if (element.namespace === FRAMING_NAMESPACE && element.name === "close") {
      this.#isDeaf = true;
      this.#events!.footer();
    } else if (this.#isOpening) {
      this.#isOpening = false;
      refuseLongHeader(element.end - element.start);
      this.#events!.header(headerOf(element));
    } else this.#events!.element(element);
  }

  #closed(error: CausewayError | undefined): void {
    // The peer can no longer learn of it, because its WebSocket was closed with 1009; the limit is
    // counted.
    if (error?.code === "net/message-too-large" && !this.#isOver) {
      this.#events!.failed("policy-violation", "stanza-bounds");
    }
    this.#isOver = true;
    this.#held.clear();
    this.#events!.closed(error);
  }
}

/**
 * Returns the header that an `<open/>` stands for. Any other element becomes a header that is refused in
 * the same way (RFC 7395 §3.4).
 */
function headerOf(element: ScannedElement): StreamHeader {
  const isFraming = element.namespace === FRAMING_NAMESPACE;
  return {
    name: isFraming && element.name === "open" ? "stream" : element.name,
    // A namespace other than that of a real stream header, which over a WebSocket is just as wrong.
    namespace: isFraming ? STREAM_NAMESPACE : "",
    contentNamespace: CLIENT_NAMESPACE,
    to: element.attribute("to"),
    from: element.attribute("from"),
    id: element.attribute("id"),
    version: element.attribute("version"),
    lang: element.lang,
    prefixes: [],
  };
}
