import type { CausewayError } from "../../base/mod.ts";
import type { StreamErrorCondition } from "../stream_error.ts";
import type { ScannedElement, StreamHeader } from "../xml/scanner_types.ts";

/** What the server's stream header says (RFC 6120 §4.7). */
export interface ResponseHeader {
  readonly contentNamespace: string;
  readonly from: string;
  readonly to: string | undefined;
  readonly id: string;
  /** False for XEP-0114. */
  readonly hasVersion: boolean;
}

/**
 * What carries a stream, and how the stream is cut into units on it: TCP and TLS as RFC 6120 has it, or
 * WebSocket messages as RFC 7395 has it. A stream is written once, against this.
 *
 * Everything that is sent is kept in order and leaves in as few writes as the carrier allows.
 */
export interface StreamTransport {
  /** For the log: address and port of the other end. */
  readonly remoteAddress: string;
  readonly isEncrypted: boolean;
  readonly isLoopback: boolean;
  /** True while STARTTLS can be offered. */
  readonly canStartTls: boolean;
  /** Bytes queued and not yet taken by the operating system. */
  readonly pendingBytes: number;

  /** Begins reading. */
  start(handlers: TransportHandlers): void;
  /** Sends our side of the stream's opening. */
  sendHeader(header: ResponseHeader): void;
  /** Sends `<stream:features/>` or `<stream:error/>`; `content` is what stands inside, serialised. */
  sendStreamElement(name: "features" | "error", content: string): void;
  /** Sends a nonza; `xml` is self-contained. */
  sendNonza(xml: string): void;
  /** Sends a stanza that takes the content namespace of this stream (`Stanza.bytes`). */
  sendStanza(bytes: Uint8Array): void;
  /** Sends something that means nothing, so that a dead connection shows. */
  sendKeepalive(): void;

  /** The next thing read is a stream header again. Called from within a handler. */
  restart(): void;
  /**
   * Stops handing out what is read, at once, and reading, until `release`. Called from within
   * `element`, it is the last call into the handlers before that.
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
   * Sends what is queued and the end of our stream, and nothing after it. What the peer had written
   * before it learns of that is handed out still, until `end`; of more than `maxBytes` it is told by
   * `failed`.
   */
  endOutput(maxBytes: number): void;
  /** Sends what is queued and the end of our stream, then closes; `closed` follows. */
  end(): void;
  /** Closes at once; `closed` follows. */
  destroy(reason: CausewayError): void;
}

/** What a transport tells its owner. */
export interface TransportHandlers {
  header(header: StreamHeader): void;
  /** A whole child of the stream, valid until the call returns. */
  element(element: ScannedElement): void;
  /** The peer ended its stream. */
  footer(): void;
  /** The peer broke a rule of XML or of a limit; nothing more is handed out but `closed`. */
  failed(condition: StreamErrorCondition, limit: TransportLimit | undefined): void;
  /** A handler threw: a bug. Nothing more is handed out but `closed`. */
  broken(thrown: unknown): void;
  secured(): void;
  /** What was queued has been taken by the operating system after having piled up. */
  drained(): void;
  /** The last call. */
  closed(error: CausewayError | undefined): void;
}

/** Limits that a transport keeps; the value of the metrics' label `limit`. */
export type TransportLimit =
  | "stanza-bounds"
  | "unauthenticated-bytes"
  | "late-bytes"
  | "pipelined-starttls";
