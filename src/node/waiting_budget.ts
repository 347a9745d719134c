import { FairShares } from "../base/mod.ts";
import type { CancelTimer, Clock } from "../base/mod.ts";
import type { Metrics } from "../observe/mod.ts";

/** Places where stanzas wait; the metrics' label `place`. */
const PLACES = [
  "sessions",
  "arriving-sessions",
  "lanes",
  "lookup",
  "handover",
  "bounce",
  "unproven",
  "offline",
  "archive",
  "held-presence",
] as const;

export type WaitingPlace = typeof PLACES[number];

/** Presence for inactive clients takes this fraction of the bytes (1/8) at most: it may go at any time. */
const HELD_PART = 8;
/** Milliseconds between checks whether sessions must make room. */
const LOOK_MS = 1_000;
/** Sessions make room while less than this fraction of the bytes (1/8) is free. */
const SCARCE_PART = 8;

/**
 * The one bound of a node for all waiting stanzas: they wait for a client to acknowledge them or to
 * come back, for a datacenter, or for the session table. All places share it fairly between
 * accounts (by what they sent, and by what waits for them), components and datacenters. Fair shares
 * alone leave little room when very many hold theirs. Then the sessions that hold most while they
 * wait, perhaps for minutes, to be resumed make room.
 */
export class WaitingBudget {
  readonly total: FairShares;
  /** The shares of each place. All of them count for `total`. */
  readonly places: Readonly<Record<WaitingPlace, FairShares>>;

  constructor(maxBytes: number, metrics: Metrics) {
    const total = this.total = new FairShares({ maxBytes });
    this.places = Object.fromEntries(
      PLACES.map((place) => {
        const bounds = place === "held-presence" ? { maxBytes: maxBytes / HELD_PART } : {};
        return [place, new FairShares({ ...bounds, within: total })];
      }),
    ) as Record<WaitingPlace, FairShares>; // fromEntries forgets the keys
    for (const place of PLACES) {
      metrics.gauge({
        name: "causeway_waiting_bytes",
        help: "Bytes of memory that waiting stanzas take, by the place that keeps them",
        labels: { place },
      }, () => this.places[place].bytes);
    }
    metrics.gauge({
      name: "causeway_waiting_limit_bytes",
      help: "Bytes of memory that all waiting stanzas may take",
    }, () => total.maxBytes);
    metrics.gauge({
      name: "causeway_waiting_holders",
      help:
        "Accounts, components and datacenters that have enough stanzas waiting to count for a " +
        "share",
    }, () => total.holders);
  }

  /** Changes the bound. What waits past it stays. */
  resize(maxBytes: number): void {
    this.total.resize(maxBytes);
    this.places["held-presence"].resize(maxBytes / HELD_PART);
  }

  /** True while less than an eighth is free. */
  get isScarce(): boolean {
    return (this.total.maxBytes - this.total.bytes) * SCARCE_PART < this.total.maxBytes;
  }

  /**
   * Calls `makeRoom` each second while less than an eighth is free.
   * @returns a function that ends the watch
   */
  watch(clock: Clock, makeRoom: () => void): CancelTimer {
    let cancel: CancelTimer;
    const lookLater = () => {
      cancel = clock.after(LOOK_MS, () => {
        if (this.isScarce) makeRoom();
        lookLater();
      });
    };
    lookLater();
    return () => cancel();
  }
}
