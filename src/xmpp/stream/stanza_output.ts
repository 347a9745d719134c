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
 * refused, but for errors that answer it. From the first of all on it has to read half of the bound in each `slowReaderMs`
 * until it has caught up by half, or it is cut off; while it is not read from itself, for what it has not
 * read, it has to read anything in two of them.
 */
export class StanzaOutput {
  readonly #transport: StreamTransport;
  readonly #options: StanzaOutputOptions;
  readonly #maxPendingBytes: number;
  readonly #maxOwedBytes: number;
  readonly #clogBytes: number;
  #cancelLook: CancelTimer | undefined;
  /** What would be pending had nothing been read since the last look. */
  #unreadBytes = 0;
  /** True when since then a stanza came that was past the bound. */
  #hasRefused = false;
  /** True when nothing was read before the last look already. */
  #isStuck = false;

  constructor(transport: StreamTransport, options: StanzaOutputOptions) {
    this.#transport = transport;
    this.#options = options;
    this.#maxPendingBytes = options.limits.maxPendingBytes;
    this.#maxOwedBytes = this.#maxPendingBytes + options.limits.maxOwedBytes;
    this.#clogBytes = Math.max(this.#maxPendingBytes / 2, TOLD_ABOVE_BYTES);
  }

  /** True while so much waits for the peer that it should read before more is read from it. */
  get isClogged(): boolean {
    return this.#transport.pendingBytes > this.#clogBytes;
  }

  /**
   * Queues `stanza`; false when that would pass the bound.
   * @param isOwed it is an error that answers the peer: it has room beyond what others have
   */
  send(stanza: Stanza, isOwed = false): boolean {
    const { byteLength } = stanza.bytes;
    // A peer that has read everything takes any stanza, be it longer than the bound.
    const pendingBytes = this.#transport.pendingBytes;
    if (pendingBytes > 0 && pendingBytes + byteLength > this.#maxPendingBytes) {
      this.#hasRefused = true;
      this.watch();
      const isTaken = isOwed && pendingBytes + byteLength <= this.#maxOwedBytes;
      if (!isTaken) {
        this.#options.metrics.limitHit(isOwed ? "owed-bytes" : "pending-bytes");
        return false;
      }
    }
    this.#unreadBytes += byteLength;
    this.#transport.sendStanza(stanza.bytes);
    this.#options.metrics.sent[stanza.kind].inc();
    return true;
  }

  /** Sees to it that the peer reads, until it has. */
  watch(): void {
    if (this.#cancelLook !== undefined) return;
    this.#isStuck = false;
    this.#lookLater();
  }

  /** The peer has read all that there was. */
  drained(): void {
    this.#cancelLook?.();
    this.#cancelLook = undefined;
    this.#hasRefused = false;
  }

  /** Ends its timer; after it nothing is sent. */
  close(): void {
    this.drained();
  }

  #lookLater(): void {
    const { clock, limits } = this.#options;
    this.#unreadBytes = this.#transport.pendingBytes;
    this.#cancelLook = clock.after(limits.slowReaderMs, () => {
      this.#cancelLook = undefined;
      this.#look();
    });
  }

  #look(): void {
    const { pendingBytes, remoteAddress } = this.#transport;
    const readBytes = this.#unreadBytes - pendingBytes;
    const hasRefused = this.#hasRefused;
    this.#hasRefused = false;
    // It may have caught up without ever having been empty.
    if (pendingBytes * 2 < this.#maxPendingBytes) return;
    const isSlow = hasRefused ? readBytes * 2 < this.#maxPendingBytes : readBytes <= 0;
    if (!isSlow || !(hasRefused || this.#isStuck)) {
      this.#isStuck = isSlow;
      return this.#lookLater();
    }
    this.#options.metrics.limitHit("slow-reader");
    this.#transport.destroy(
      new CausewayError(
        "stream/slow-reader",
        `Cannot send to ${remoteAddress}: ${pendingBytes} bytes wait unread`,
      ),
    );
  }
}
