import type { CancelTimer, Clock } from "../../base/mod.ts";
import { CausewayError } from "../../base/mod.ts";
import type { Stanza } from "../stanza/stanza.ts";
import type { ResolvedStreamLimits } from "./stream_limits.ts";
import type { StreamMetrics } from "./stream_metrics.ts";
import type { StreamTransport } from "./stream_transport.ts";

/** Dependencies of an output. */
export interface StanzaOutputDeps {
  readonly limits: ResolvedStreamLimits;
  readonly clock: Clock;
  readonly metrics: StreamMetrics;
}

/** A connection calls `drained` only above this many bytes. */
const TOLD_ABOVE_BYTES = 262_144;

/**
 * Stanzas on their way to one peer, bounded in bytes. A stanza that a slow peer has no room for is
 * refused, except errors that answer the peer. After the first refusal the peer must read half of the
 * bound in each `slowReaderMs`, until it has caught up by half, or it is cut off. While we do not read
 * from the peer because of its unread bytes, it must read anything at all in two such intervals.
 */
export class StanzaOutput {
  readonly #transport: StreamTransport;
  readonly #deps: StanzaOutputDeps;
  readonly #maxPendingBytes: number;
  readonly #maxOwedBytes: number;
  readonly #clogBytes: number;
  #cancelLook: CancelTimer | undefined;
  /** Pending bytes at the last check, plus everything queued since. */
  #unreadBytes = 0;
  /** True when a stanza was refused since the last check. */
  #hasRefused = false;
  /** True when the peer had read nothing before the last check. */
  #isStuck = false;

  constructor(transport: StreamTransport, deps: StanzaOutputDeps) {
    this.#transport = transport;
    this.#deps = deps;
    this.#maxPendingBytes = deps.limits.maxPendingBytes;
    this.#maxOwedBytes = this.#maxPendingBytes + deps.limits.maxOwedBytes;
    this.#clogBytes = Math.max(this.#maxPendingBytes / 2, TOLD_ABOVE_BYTES);
  }

  /** True while so many bytes are unread that the peer should read before we read more from it. */
  get isClogged(): boolean {
    return this.#transport.pendingBytes > this.#clogBytes;
  }

  /**
   * Queues `stanza`; false when that would pass the bound.
   * @param isOwed true for an error that answers the peer, which has extra room
   */
  send(stanza: Stanza, isOwed = false): boolean {
    const { byteLength } = stanza.bytes;
    // A peer that has read everything gets any stanza, even one longer than the bound.
    const pendingBytes = this.#transport.pendingBytes;
    if (pendingBytes > 0 && pendingBytes + byteLength > this.#maxPendingBytes) {
      this.#hasRefused = true;
      this.watch();
      const isTaken = isOwed && pendingBytes + byteLength <= this.#maxOwedBytes;
      if (!isTaken) {
        this.#deps.metrics.limitHit(isOwed ? "owed-bytes" : "pending-bytes");
        return false;
      }
    }
    this.#unreadBytes += byteLength;
    // A storm of logins would cost a write for each contact of each session otherwise.
    this.#transport.sendStanza(stanza.bytes, stanza.kind === "presence");
    this.#deps.metrics.sent[stanza.kind].inc();
    return true;
  }

  /** Checks in intervals whether the peer reads, until it has caught up. */
  watch(): void {
    if (this.#cancelLook !== undefined) return;
    this.#isStuck = false;
    this.#lookLater();
  }

  /** The peer has read everything. */
  drained(): void {
    this.#cancelLook?.();
    this.#cancelLook = undefined;
    this.#hasRefused = false;
  }

  /** Ends the timer; nothing is sent afterwards. */
  close(): void {
    this.drained();
  }

  #lookLater(): void {
    const { clock, limits } = this.#deps;
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
    // The peer may have caught up without an empty queue.
    if (pendingBytes * 2 < this.#maxPendingBytes) return;
    const isSlow = hasRefused ? readBytes * 2 < this.#maxPendingBytes : readBytes <= 0;
    if (!isSlow || !(hasRefused || this.#isStuck)) {
      this.#isStuck = isSlow;
      return this.#lookLater();
    }
    this.#deps.metrics.limitHit("slow-reader");
    this.#transport.destroy(
      new CausewayError(
        "stream/slow-reader",
        `Cannot send to ${remoteAddress}: ${pendingBytes} bytes are unread`,
      ),
    );
  }
}
