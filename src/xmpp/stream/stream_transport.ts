import type { CausewayError } from "../../base/mod.ts";
import type { StreamErrorCondition } from "./stream_error.ts";
import type { ScannedElement, StreamHeader } from "../xml/scanner_types.ts";

/** Content of the server's stream header (RFC 6120 §4.7). */
export interface ResponseHeader {
  readonly contentNamespace: string;
  readonly from: string;
  readonly to: string | undefined;
  readonly id: string;
  /** False for XEP-0114. */
  readonly hasVersion: boolean;
}

/**
 * A stream's carrier, and the way the stream is cut into units on it: TCP and TLS by RFC 6120, or
 * WebSocket messages by RFC 7395. Streams are written once, against this interface.
 *
 * Everything sent is kept in order and leaves in as few writes as the carrier allows.
 */
export interface StreamTransport {
  /** Address and port of the other end, for the log. */
  readonly remoteAddress: string;
  readonly isEncrypted: boolean;
  readonly isLoopback: boolean;
  /** As in `Connection`. */
  readonly serverEndPoint: Uint8Array | undefined;
  /** True while STARTTLS can be offered. */
  readonly canStartTls: boolean;
  /** Bytes queued and not yet taken by the operating system. */
  readonly pendingBytes: number;
  /**
   * Stanzas that the operating system has not taken, as far as is known. After the end they are lost.
   */
  readonly unwrittenStanzas: number;

  /** Begins reading. */
  start(events: TransportEvents): void;
  /** Sends our side of the stream's opening. */
  sendHeader(header: ResponseHeader): void;
  /** Sends `<stream:features/>` or `<stream:error/>`; `content` is its serialised content. */
  sendStreamElement(name: "features" | "error", content: string): void;
  /** Sends a nonza; `xml` is self-contained. */
  sendNonza(xml: string): void;
  /**
   * Sends a stanza, which takes the content namespace of this stream (`Stanza.bytes`).
   *
   * @param mayWait as in `Connection`
   */
  sendStanza(bytes: Uint8Array, mayWait?: boolean): void;
  /** Sends bytes without meaning, so that a dead connection shows. */
  sendKeepalive(): void;

  /** Expects a stream header next. Called from within a callback. */
  restart(): void;
  /**
   * Stops handing out input at once, and stops reading, until `release`. When called from within
   * `element`, that is the last call into the callbacks before `release`.
   */
  hold(): void;
  release(): void;
  /** Slows the peer down; a chunk that was already read is still handed out. */
  pause(): void;
  resume(): void;
  /** Lifts the bound on bytes that a peer may send before it is authenticated. */
  trust(): void;

  /**
   * Sends `<proceed/>` and begins the TLS handshake; `secured` follows, or `closed`, or `failed` when
   * the peer wrote on without waiting. Called from within `element`.
   */
  startTls(): void;
  /**
   * Sends the queue and the end of our stream, and nothing after it. What the peer wrote before it
   * learns of that is still handed out, until `end`. More than `maxBytes` of it is reported by `failed`.
   */
  endOutput(maxBytes: number): void;
  /** Sends the queue and the end of our stream, then closes; `closed` follows. */
  end(): void;
  /** Closes at once; `closed` follows. */
  destroy(reason: CausewayError): void;
}

/** Callbacks of a transport to its owner. */
export interface TransportEvents {
  header(header: StreamHeader): void;
  /** A whole child of the stream, valid until the call returns. */
  element(element: ScannedElement): void;
  /** The peer ended its stream. */
  footer(): void;
  /** The peer broke a rule of XML or passed a limit; only `closed` follows. */
  failed(condition: StreamErrorCondition, limit: TransportLimit | undefined): void;
  /** A callback threw: a bug. Only `closed` follows. */
  broken(thrown: unknown): void;
  secured(): void;
  /** After a pile-up, the operating system has taken the whole queue. */
  drained(): void;
  /** The last call. */
  closed(error: CausewayError | undefined): void;
}

/** Limits that a transport enforces; values of the metrics' label `limit`. */
export type TransportLimit =
  | "stanza-bounds"
  | "unauthenticated-bytes"
  | "late-bytes"
  | "pipelined-starttls";
