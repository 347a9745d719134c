import type { CausewayError } from "../base/mod.ts";

/** A connection that carries whole messages of text instead of bytes, such as a WebSocket. */
export interface MessageConnection {
  /** Address and port of the other end, `127.0.0.1:40312` or `[::1]:40312`. */
  readonly remoteAddress: string;
  /** True inside TLS. */
  readonly isEncrypted: boolean;
  /** True when both ends are on this machine's loopback interface. */
  readonly isLoopback: boolean;
  /** Bytes queued here and not yet taken by the operating system. */
  readonly pendingBytes: number;

  /** Begins reading. Called once, before anything arrives. */
  start(handlers: MessageHandlers): void;
  /**
   * Queues `bytes`, UTF-8, as one message; they belong to the connection from now on. What is queued
   * in one event-loop turn leaves in one write. After `close` or a failure it does nothing.
   */
  send(bytes: Uint8Array): void;
  /** Asks the peer for a sign of life, which is not told; a peer that is gone shows. */
  ping(): void;

  /** Stops reading until `resume`; what was read already is still handed out. */
  pause(): void;
  resume(): void;

  /** Sends what is queued, then ends with an RFC 6455 §7.4 code; `closed` follows. */
  close(code: number): void;
  /** Ends at once; `closed` follows with `reason`. */
  destroy(reason: CausewayError): void;
}

/** What a message connection tells its owner. All run outside of any call into the connection. */
export interface MessageHandlers {
  /**
   * Bytes came in, before the messages that they complete and whether or not they complete one, so
   * that a message which never ends can be bounded too.
   */
  received?(byteLength: number): void;
  /** A whole message, not yet known to be UTF-8; good until the call returns, and to be copied. */
  message(bytes: Uint8Array): void;
  /** `pendingBytes` fell to zero after having piled up. */
  drained?(): void;
  /**
   * The last call. `error` is undefined after an orderly end by either side; `net/message-too-large`
   * and `net/websocket-protocol` tell what a peer did wrong.
   */
  closed(error: CausewayError | undefined): void;
}
