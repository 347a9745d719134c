import type { CausewayError } from "../base/mod.ts";

/**
 * One byte connection, whatever carries it: TCP, TLS, TLS started inside TCP, or memory in tests.
 *
 * Calls back instead of handing out promises, so that a chunk of thirty stanzas costs one call.
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

  /** Begins reading. Called once, before anything arrives; replacing handlers is not possible. */
  start(handlers: ConnectionHandlers): void;

  /**
   * Queues a copy of `bytes`. What is queued in one event-loop turn leaves in one write.
   * After `close` or a failure it does nothing.
   */
  send(bytes: Uint8Array): void;

  /** Bytes queued here and not yet taken by the operating system. */
  readonly pendingBytes: number;

  /**
   * Server side of STARTTLS, present where the listener offers it: sends what is queued, then runs
   * the TLS handshake on the same socket. `secured` follows, or `closed`. Bytes that the peer sent
   * before its handshake and that were not yet handed to `data` are dropped with the connection; but
   * up to `MAX_SKIPPED_SPACE_BYTES` of white space are dropped alone.
   */
  startTls?(): void;

  /** Stops reading until `resume`; the other end is slowed by TCP. */
  pause(): void;
  resume(): void;

  /** Sends what is queued, then ends; `closed` follows. Cut off after the configured linger time. */
  close(): void;
  /** Ends at once; `closed` follows with `reason`. */
  destroy(reason: CausewayError): void;
}

/** What a connection tells its owner. All of them run outside of any call into the connection. */
export interface ConnectionHandlers {
  /** `chunk` may be kept, but pins a larger buffer: copy what lives long. */
  data(chunk: Uint8Array): void;
  /** `pendingBytes` fell to zero after having been above the high-water mark. */
  drained?(): void;
  /** The TLS handshake begun by `startTls` is complete; what `data` brings from now on is encrypted. */
  secured?(): void;
  /**
   * The last call. `error` is undefined after an orderly end by either side; inside TLS also after
   * a reset, which the runtime tells as an end: only the protocol above knows whether it was over.
   */
  closed(error: CausewayError | undefined): void;
}
