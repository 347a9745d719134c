import type { CausewayError } from "../base/mod.ts";

/** A connection that carries whole messages of text instead of bytes, such as a WebSocket. */
export interface MessageConnection {
  /** Address and port of the other end, `127.0.0.1:40312` or `[::1]:40312`. */
  readonly remoteAddress: string;
  /** True inside TLS. */
  readonly isEncrypted: boolean;
  /** True when both ends are on this machine's loopback interface. */
  readonly isLoopback: boolean;
  /** As in `Connection`. */
  readonly serverEndPoint?: Uint8Array | undefined;
  /** Bytes queued here and not yet taken by the operating system. */
  readonly pendingBytes: number;
  /** As in `Connection`. */
  readonly unwrittenSends: number;

  /** Begins reading. Called once, before anything arrives. */
  start(events: MessageConnectionEvents): void;
  /**
   * Queues `bytes`, UTF-8, as one message; the connection owns them from now on. All messages queued in
   * one event-loop turn leave in one write. Does nothing after `close` or a failure.
   *
   * @param mayWait as in `Connection`
   */
  send(bytes: Uint8Array, mayWait?: boolean): void;
  /** Pings the peer. The answer is not reported; a peer that is gone shows as a failure. */
  ping(): void;

  /** Stops reading until `resume`; messages already read are still handed out. */
  pause(): void;
  resume(): void;

  /** Sends the queue, then ends with an RFC 6455 §7.4 code; `closed` follows. */
  close(code: number): void;
  /** Ends at once; `closed` follows with `reason`. */
  destroy(reason: CausewayError): void;
}

/** Callbacks of a message connection to its owner. All run outside of any call into the connection. */
export interface MessageConnectionEvents {
  /**
   * Bytes came in. Called before the messages that they complete, and also when they complete none, so
   * that the owner can bound a message that never ends.
   */
  received?(byteLength: number): void;
  /**
   * A whole message, not yet known to be UTF-8. The bytes are valid until the call returns: copy to
   * keep.
   */
  message(bytes: Uint8Array): void;
  /** `pendingBytes` fell to zero after a pile-up. */
  drained?(): void;
  /**
   * The last call. `error` is undefined after an orderly end by either side; `net/message-too-large` and
   * `net/websocket-protocol` say that the peer broke the rules.
   */
  closed(error: CausewayError | undefined): void;
}
