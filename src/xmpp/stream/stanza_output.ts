import type { CancelTimer, Clock } from "../../base/mod.ts";
import { CausewayError } from "../../base/mod.ts";
import type { Stanza } from "../stanza.ts";
import type { ResolvedStreamLimits } from "./stream_limits.ts";
import type { StreamMetrics } from "./stream_metrics.ts";
import type { StreamTransport } from "./stream_transport.ts";

/** What an output is given. */
export interface StanzaOutputOptions {
  readonly limits: ResolvedStreamLimits;
  readonly clock: Clock;
  readonly metrics: StreamMetrics;
}

/** Only above this much a connection tells that it has drained. */
const TOLD_ABOVE_BYTES = 262_144;

/**
 * Stanzas on their way to one peer, bounded in bytes: what a peer that reads slowly cannot take is
 * refused, and a peer that still has not caught up `slowReaderMs` later is cut off.
 */
export class StanzaOutput {
  readonly #transport: StreamTransport;
  readonly #options: StanzaOutputOptions;
  readonly #maxPendingBytes: number;
  readonly #clogBytes: number;
  #cancelCut: CancelTimer | undefined;

  constructor(transport: StreamTransport, options: StanzaOutputOptions) {
    this.#transport = transport;
    this.#options = options;
    this.#maxPendingBytes = options.limits.maxPendingBytes;
    this.#clogBytes = Math.max(this.#maxPendingBytes / 2, TOLD_ABOVE_BYTES);
  }

  /** True while so much waits for the peer that it should read before more is read from it. */
  get isClogged(): boolean {
    return this.#transport.pendingBytes > this.#clogBytes;
  }

  /** Queues `stanza`; false when that would pass the bound. */
  send(stanza: Stanza): boolean {
    // A peer that has read everything takes any stanza, be it longer than the bound.
    const pendingBytes = this.#transport.pendingBytes;
    if (pendingBytes > 0 && pendingBytes + stanza.bytes.length > this.#maxPendingBytes) {
      this.#refused();
      return false;
    }
    this.#transport.sendStanza(stanza.bytes);
    this.#options.metrics.sent[stanza.kind].inc();
    return true;
  }

  /** The peer has read all that there was. */
  drained(): void {
    this.#cancelCut?.();
    this.#cancelCut = undefined;
  }

  /** Ends its timer; after it nothing is sent. */
  close(): void {
    this.drained();
  }

  #refused(): void {
    const { metrics, clock, limits } = this.#options;
    metrics.limitHit("pending-bytes");
    this.#cancelCut ??= clock.after(limits.slowReaderMs, () => {
      this.#cancelCut = undefined;
      // It may have caught up without ever having been empty.
      if (this.#transport.pendingBytes * 2 < this.#maxPendingBytes) return;
      metrics.limitHit("slow-reader");
      this.#transport.destroy(
        new CausewayError(
          "stream/slow-reader",
          `Cannot send to ${this.#transport.remoteAddress}: ` +
            `${this.#transport.pendingBytes} bytes wait unread`,
        ),
      );
    });
  }
}
