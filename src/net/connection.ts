import type { CausewayError } from "../base/mod.ts";

/**
 * One byte connection, whatever carries it: TCP, TLS, TLS started inside TCP, or memory in tests.
 *
 * It calls back instead of returning promises, so that a chunk of thirty stanzas costs one call.
 */
export interface Connection {
  /** Address and port of the other end, `127.0.0.1:40312` or `[::1]:40312`. */
  readonly remoteAddress: string;
  /** True inside TLS. */
  readonly isEncrypted: boolean;
  /** True when both ends are on this machine's loopback interface. */
  readonly isLoopback: boolean;
  /** Subject alternative names (DNS) of the peer's verified certificate; empty without one. */
  readonly peerNames: readonly string[];
  /**
   * Channel binding `tls-server-end-point` (RFC 5929 §4): the hash of the certificate that we presented
   * on this very connection. Undefined without TLS, and for a certificate that has no such hash.
   */
  readonly serverEndPoint?: Uint8Array | undefined;

  /** Begins reading. Called once, before anything arrives; callbacks cannot be replaced. */
  start(events: ConnectionEvents): void;

  /**
   * Queues a copy of `bytes`. All bytes queued in one event-loop turn leave in one write. Does nothing
   * after `close` or a failure.
   *
   * @param mayWait true for bytes that may leave `LATE_FLUSH_MS` later, together with others. They keep
   * their place: whatever is queued after them and may not wait takes them along.
   */
  send(bytes: Uint8Array, mayWait?: boolean): void;

  /** Bytes queued here and not yet taken by the operating system. */
  readonly pendingBytes: number;
  /**
   * Calls of `send` whose bytes have not all been taken by the operating system, as far as is known.
   * After the end of the connection, they are lost.
   */
  readonly unwrittenSends: number;

  /**
   * Runs the server side of STARTTLS; present where the listener offers it. It sends the queue, then
   * runs the TLS handshake on the same socket. `secured` follows, or `closed`. Bytes that the peer sent
   * before its handshake and that `data` has not received end the connection. Only white space of up to
   * `MAX_SKIPPED_SPACE_BYTES` is dropped and the connection stays.
   */
  startTls?(): void;

  /** Stops reading until `resume`; TCP slows the other end down. */
  pause(): void;
  resume(): void;

  /** Sends the queue, then ends; `closed` follows. Cuts the connection after the configured linger time. */
  close(): void;
  /** Ends at once; `closed` follows with `reason`. */
  destroy(reason: CausewayError): void;
}

/** Callbacks of a connection to its owner. All of them run outside of any call into the connection. */
export interface ConnectionEvents {
  /** `chunk` may be kept, but pins a larger buffer: copy what lives long. */
  data(chunk: Uint8Array): void;
  /** `pendingBytes` fell to zero after having been above the high-water mark. */
  drained?(): void;
  /** The TLS handshake begun by `startTls` is complete; `data` brings encrypted bytes from now on. */
  secured?(): void;
  /**
   * The last call. `error` is undefined after an orderly end by either side. It is also undefined after
   * a reset inside TLS, which the runtime reports as an end: only the protocol above knows whether the
   * peer had finished.
   */
  closed(error: CausewayError | undefined): void;
}
