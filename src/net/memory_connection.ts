import { CausewayError } from "../base/mod.ts";
import type { Connection, ConnectionEvents } from "./connection.ts";

/** Pretended properties of a connection pair in memory. */
export interface MemoryPairOptions {
  /** @default false */
  readonly isEncrypted?: boolean;
  /** As in `Connection`, once the connection is encrypted. @default none */
  readonly serverEndPoint?: Uint8Array;
  /** Names in the peer's certificate, as the first and as the second end sees them. */
  readonly peerNames?: readonly [readonly string[], readonly string[]];
  /** Largest chunk that `data` receives; 1 delivers byte by byte. @default unlimited */
  readonly chunkBytes?: number;
  /** As in `ConnectionLimits`. */
  readonly highWaterBytes?: number;
  readonly maxPendingBytes?: number;
}

/** Returns two ends of one connection in memory. Each end receives what the other sends. */
export function memoryConnectionPair(
  options: MemoryPairOptions = {},
): [MemoryConnection, MemoryConnection] {
  const first = new MemoryConnection("127.0.0.1:10001", options, options.peerNames?.[0] ?? []);
  const second = new MemoryConnection("127.0.0.1:10002", options, options.peerNames?.[1] ?? []);
  first.join(second);
  second.join(first);
  return [first, second];
}

/**
 * A `Connection` without a socket, for tests. Everything arrives in later microtasks, never inside
 * a call, and in the order in which it was sent.
 */
export class MemoryConnection implements Connection {
  readonly remoteAddress: string;
  readonly isLoopback = true;
  readonly startTls = (): void => this.#startTls();
  #isEncrypted: boolean;
  readonly #serverEndPoint: Uint8Array | undefined;
  readonly peerNames: readonly string[];
  readonly #chunkBytes: number;
  readonly #highWaterBytes: number;
  readonly #maxPendingBytes: number;
  #peer: MemoryConnection | undefined;
  #events: ConnectionEvents | undefined;
  /** Bytes sent by us and not yet taken by the peer. */
  #queue: Uint8Array[] = [];
  #pendingBytes = 0;
  /** Sends that were lost with the queue, or came when nothing was taken any more. */
  #lostSends = 0;
  #isOverHighWater = false;
  #isPaused = false;
  #isStalled = false;
  #isClosing = false;
  #isClosed = false;
  #isDeliveryScheduled = false;
  #error: CausewayError | undefined;
  #sentBytes = 0;
  #deliveries = 0;

  constructor(remoteAddress: string, options: MemoryPairOptions, peerNames: readonly string[]) {
    this.remoteAddress = remoteAddress;
    this.peerNames = peerNames;
    this.#isEncrypted = options.isEncrypted ?? false;
    this.#serverEndPoint = options.serverEndPoint;
    this.#chunkBytes = options.chunkBytes ?? Infinity;
    this.#highWaterBytes = options.highWaterBytes ?? 262_144;
    this.#maxPendingBytes = options.maxPendingBytes ?? 16_777_216;
  }

  /** Makes `peer` the other end; called by `memoryConnectionPair`. */
  join(peer: MemoryConnection): void {
    this.#peer = peer;
  }

  get isEncrypted(): boolean {
    return this.#isEncrypted;
  }

  get serverEndPoint(): Uint8Array | undefined {
    return this.#isEncrypted ? this.#serverEndPoint : undefined;
  }

  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  get unwrittenSends(): number {
    return this.#lostSends + this.#queue.length;
  }

  /** True once `closed` was called, or would have been after `start`. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** All bytes that `send` has taken so far. */
  get sentBytes(): number {
    return this.#sentBytes;
  }

  /** Turns in which the peer took some of our bytes, which stand for the writes of a socket. */
  get deliveries(): number {
    return this.#deliveries;
  }

  start(events: ConnectionEvents): void {
    if (this.#events !== undefined) throw new TypeError("Cannot start a connection twice");
    this.#events = events;
    if (this.#isClosed) queueMicrotask(() => events.closed(this.#error));
    else this.#peer!.#schedule();
  }

  send(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    if (this.#isClosing || this.#isClosed) {
      this.#lostSends++;
      return;
    }
    const pendingBytes = this.#pendingBytes + bytes.length;
    if (pendingBytes > this.#maxPendingBytes) {
      this.#lostSends++;
      this.destroy(
        new CausewayError(
          "net/peer-too-slow",
          `Cannot queue ${pendingBytes} bytes: the limit is ${this.#maxPendingBytes} bytes`,
          { retryable: true },
        ),
      );
      return;
    }
    if (pendingBytes > this.#highWaterBytes) this.#isOverHighWater = true;
    this.#pendingBytes = pendingBytes;
    this.#sentBytes += bytes.length;
    this.#queue.push(bytes.slice());
    this.#schedule();
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#peer!.#schedule();
  }

  close(): void {
    if (this.#isClosing || this.#isClosed) return;
    this.#isClosing = true;
    this.#schedule();
  }

  destroy(reason: CausewayError): void {
    this.#end(reason);
    this.#peer!.#end(lostPeer());
  }

  /** Cuts the connection as a dead network would: both ends see a reset, and queued bytes are lost. */
  cut(): void {
    this.destroy(lostPeer());
  }

  /**
   * Stops this end from taking bytes, as a hanging process would; `pendingBytes` rises at the other end.
   */
  stallReading(): void {
    this.#isStalled = true;
  }

  /** Undoes `stallReading`. */
  continueReading(): void {
    this.#isStalled = false;
    this.#peer!.#schedule();
  }

  #schedule(): void {
    if (this.#isDeliveryScheduled || this.#isClosed) return;
    this.#isDeliveryScheduled = true;
    queueMicrotask(() => {
      this.#isDeliveryScheduled = false;
      this.#deliver();
    });
  }

  get #canPeerRead(): boolean {
    const peer = this.#peer!;
    return peer.#events !== undefined && !peer.#isStalled &&
      (!peer.#isPaused || peer.#isClosing);
  }

  #deliver(): void {
    if (this.#isClosed || !this.#canPeerRead) return;
    const peer = this.#peer!;
    if (this.#queue.length > 0) this.#deliveries++;
    while (this.#queue.length > 0 && !this.#isClosed && this.#canPeerRead) {
      const bytes = this.#queue[0]!;
      const chunk = bytes.subarray(0, Math.min(this.#chunkBytes, bytes.length));
      if (chunk.length === bytes.length) this.#queue.shift();
      else this.#queue[0] = bytes.subarray(chunk.length);
      this.#pendingBytes -= chunk.length;
      if (!peer.#isClosing) peer.#events!.data(chunk);
    }
    if (this.#queue.length > 0 || this.#isClosed) return;
    if (this.#isOverHighWater) {
      this.#isOverHighWater = false;
      if (!this.#isClosing) this.#events?.drained?.();
    }
    if (!this.#isClosing || this.#pendingBytes > 0) return;
    // Our end has arrived. The peer sends its remaining bytes, then its own end.
    peer.#isClosing = true;
    if (peer.#queue.length === 0) {
      this.#end(undefined);
      peer.#end(undefined);
    } else peer.#schedule();
  }

  #startTls(): void {
    if (this.#isEncrypted) throw new TypeError("Cannot start TLS on an encrypted connection");
    // Delayed until the bytes queued in either direction have arrived, like a handshake that takes a
    // round trip.
    queueMicrotask(() =>
      queueMicrotask(() => {
        if (this.#isClosed) return;
        this.#isEncrypted = true;
        this.#peer!.#isEncrypted = true;
        this.#events?.secured?.();
      })
    );
  }

  #end(error: CausewayError | undefined): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#error = error;
    this.#lostSends += this.#queue.length;
    this.#queue = [];
    this.#pendingBytes = 0;
    const events = this.#events;
    if (events !== undefined) queueMicrotask(() => events.closed(error));
  }
}

function lostPeer(): CausewayError {
  return new CausewayError("net/reset", "Lost the connection: the peer reset it", {
    retryable: true,
  });
}
