import type { CausewayError } from "../../base/mod.ts";
import { countLeadingSpace, MAX_SKIPPED_SPACE_BYTES } from "../../base/mod.ts";
import type { Connection } from "../../net/mod.ts";
import type { ScannedElement, StreamHeader } from "../xml/scanner_types.ts";
import { StreamScanner } from "../xml/stream_scanner.ts";
import { STREAM_NAMESPACE, TLS_FAILURE_XML, TLS_NAMESPACE } from "./namespaces.ts";
import { responseAttributes } from "./response_header.ts";
import type { ResolvedStreamLimits } from "./stream_limits.ts";
import { scannerLimits } from "./stream_limits.ts";
import type {
  ResponseHeader,
  StreamTransport,
  TransportEvents,
  TransportLimit,
} from "./stream_transport.ts";
import { escapeValue } from "../xml/escape.ts";
import { tellFailure } from "./tell_failure.ts";

const UTF8 = new TextEncoder();
const SPACE = UTF8.encode(" ");
const FOOTER = UTF8.encode("</stream:stream>");
const TLS_FAILURE = UTF8.encode(TLS_FAILURE_XML);
const PROCEED = UTF8.encode(`<proceed xmlns='${TLS_NAMESPACE}'/>`);

/** A stream over TCP or TLS: one XML document in each direction (RFC 6120 §4). */
export class TcpTransport implements StreamTransport {
  readonly #connection: Connection;
  readonly #scanner: StreamScanner;
  #events: TransportEvents | undefined;
  /** Bytes that the peer may still send: unlimited once it is trusted. */
  #bytesLeft: number;
  #bytesLimit: TransportLimit = "unauthenticated-bytes";
  /** White space that may still be skipped before the header of a stream that follows another. */
  #spaceBytesLeft = 0;
  #isHeaderSent = false;
  #isHeld = false;
  #isPaused = false;
  #isTlsWanted = false;
  /** Sends since the last stanza. */
  #sendsBehind = 0;
  /** True once our end of the stream was sent: nothing may follow it (RFC 6120 §4.4). */
  #isOutputOver = false;
  /** True once we hung up or failed: further input is ignored. */
  #isOver = false;
  /** True once the peer ended its stream: nothing may follow (RFC 6120 §4.4), and input is ignored. */
  #isDeaf = false;

  constructor(connection: Connection, limits: ResolvedStreamLimits) {
    this.#connection = connection;
    this.#bytesLeft = limits.maxUnauthenticatedBytes;
    this.#scanner = new StreamScanner({
      streamOpened: (header: StreamHeader) => this.#events!.header(header),
      element: (element: ScannedElement) => {
        // One chunk may hold an element that ended the stream, and others after it.
        if (!this.#isOver) this.#events!.element(element);
      },
      streamClosed: () => {
        if (this.#isOver) return;
        this.#isDeaf = true;
        this.#events!.footer();
      },
    }, scannerLimits(limits));
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

  get canStartTls(): boolean {
    return !this.#connection.isEncrypted && this.#connection.startTls !== undefined;
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
      data: (chunk) => this.#data(chunk),
      drained: () => events.drained(),
      secured: () => events.secured(),
      closed: (error) => {
        this.#isOver = true;
        events.closed(error);
      },
    });
  }

  sendHeader(header: ResponseHeader): void {
    const namespaces = ` xmlns='${escapeValue(header.contentNamespace)}'` +
      ` xmlns:stream='${STREAM_NAMESPACE}'`;
    this.#isHeaderSent = true;
    this.#send(
      UTF8.encode(`<?xml version='1.0'?><stream:stream${namespaces}${responseAttributes(header)}>`),
    );
  }

  sendStreamElement(name: "features" | "error", content: string): void {
    this.#send(
      UTF8.encode(
        content === "" ? `<stream:${name}/>` : `<stream:${name}>${content}</stream:${name}>`,
      ),
    );
  }

  sendNonza(xml: string): void {
    this.#send(UTF8.encode(xml));
  }

  sendStanza(bytes: Uint8Array, mayWait?: boolean): void {
    this.#send(bytes, mayWait);
    this.#sendsBehind = 0;
  }

  sendKeepalive(): void {
    this.#send(SPACE);
  }

  restart(): void {
    // Bytes after the last element belong to the new stream.
    this.#spaceBytesLeft = MAX_SKIPPED_SPACE_BYTES;
    const rest = this.#withoutLeadingSpace(this.#scanner.remainder);
    this.#scanner.reset();
    this.#isHeaderSent = false;
    if (!this.#isHeld) return;
    this.#scanner.stop();
    if (rest.length > 0) this.#scanner.push(rest);
  }

  hold(): void {
    if (this.#isHeld) return;
    this.#isHeld = true;
    this.#scanner.stop();
    this.#connection.pause();
  }

  release(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    if (!this.#isPaused) this.#connection.resume();
    if (!this.#isOver) this.#scan(undefined);
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

  startTls(): void {
    // Only when the chunk has been scanned do we know whether the peer waits.
    this.#isTlsWanted = true;
    this.#scanner.stop();
  }

  endOutput(maxBytes: number): void {
    if (this.#isHeaderSent) this.#send(FOOTER);
    this.#isOutputOver = true;
    this.#bytesLeft = maxBytes;
    this.#bytesLimit = "late-bytes";
  }

  end(): void {
    this.#isOver = true;
    if (this.#isHeaderSent) this.#send(FOOTER);
    this.#connection.close();
  }

  destroy(reason: CausewayError): void {
    this.#isOver = true;
    this.#connection.destroy(reason);
  }

  #data(chunk: Uint8Array): void {
    if (this.#isOver || this.#isDeaf) return;
    if (this.#bytesLeft !== Infinity) {
      this.#bytesLeft -= chunk.length;
      if (this.#bytesLeft < 0) {
        this.#events!.failed("policy-violation", this.#bytesLimit);
        return;
      }
    }
    this.#scan(chunk);
  }

  #send(bytes: Uint8Array, mayWait?: boolean): void {
    if (this.#isOutputOver) return;
    this.#sendsBehind++;
    this.#connection.send(bytes, mayWait);
  }

  /** Scans a chunk, or the held input, and begins TLS when an element asked for it. */
  #scan(chunk: Uint8Array | undefined): void {
    try {
      if (chunk === undefined) this.#scanner.resume();
      else this.#scanner.push(this.#spaceBytesLeft > 0 ? this.#withoutLeadingSpace(chunk) : chunk);
    } catch (thrown) {
      if (this.#isOver || this.#isDeaf) return; // garbage after the end changes nothing
      tellFailure(thrown, this.#events!);
      return;
    }
    if (this.#isTlsWanted && !this.#isOver) this.#beginTls();
  }

  /**
   * Skips white space before the header. An XML declaration has to come first, but some clients write a
   * line break after `</auth>`.
   */
  #withoutLeadingSpace(bytes: Uint8Array): Uint8Array {
    const count = Math.min(countLeadingSpace(bytes), this.#spaceBytesLeft);
    this.#spaceBytesLeft = count < bytes.length ? 0 : this.#spaceBytesLeft - count;
    return bytes.subarray(count);
  }

  #beginTls(): void {
    this.#isTlsWanted = false;
    const { remainder } = this.#scanner;
    const spaceBytes = countLeadingSpace(remainder);
    if (spaceBytes < remainder.length || spaceBytes > MAX_SKIPPED_SPACE_BYTES) {
      // Treated as encrypted, these bytes would let anyone on the path speak for the client. The answer
      // instead of <proceed/> is a failure (RFC 6120 §5.4.2.2), because the handshake has not begun.
      this.#send(TLS_FAILURE);
      this.#events!.failed("policy-violation", "pipelined-starttls");
      return;
    }
    this.#send(PROCEED);
    this.#connection.startTls!();
  }
}
