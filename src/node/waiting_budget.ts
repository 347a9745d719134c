import { FairShares } from "../base/mod.ts";
import type { CancelTimer, Clock } from "../base/mod.ts";
import type { Metrics } from "../observe/mod.ts";

/** Where stanzas wait for somebody; the metrics' label `place`. */
const PLACES = [
  "sessions",
  "arriving-sessions",
  "lanes",
  "lookup",
  "handover",
  "bounce",
  "unproven",
] as const;

export type WaitingPlace = typeof PLACES[number];

/** Milliseconds between looks at whether so much waits that somebody has to make room. */
const LOOK_MS = 1_000;
/** Somebody has to while less than one in so many of the bytes is free. */
const SCARCE_PART = 8;

/**
 * The one bound of a node for all stanzas that wait for somebody: for a client to acknowledge them or to
 * come back, for a datacenter, for the session table. It is shared fairly, over all places together,
 * between accounts by what they have sent, accounts by what waits for them, components and datacenters. Fair shares alone leave little when very many
 * hold theirs: then whoever has most waiting for sessions that may take minutes to be resumed makes room.
 */
export class WaitingBudget {
  readonly total: FairShares;
  /** What each place counts what it holds with; all of them count for `total`. */
  readonly places: Readonly<Record<WaitingPlace, FairShares>>;

  constructor(maxBytes: number, metrics: Metrics) {
    const total = this.total = new FairShares({ maxBytes });
    this.places = Object.fromEntries(
      PLACES.map((place) => [place, new FairShares({ within: total })]),
    ) as Record<WaitingPlace, FairShares>; // fromEntries forgets the keys
    for (const place of PLACES) {
      metrics.gauge({
        name: "causeway_waiting_bytes",
        help: "Bytes of memory that stanzas which wait for somebody take, by what keeps them",
        labels: { place },
      }, () => this.places[place].bytes);
    }
    metrics.gauge({
      name: "causeway_waiting_limit_bytes",
      help: "Bytes of memory that all stanzas which wait for somebody may take",
    }, () => maxBytes);
    metrics.gauge({
      name: "causeway_waiting_holders",
      help: "Accounts, components and datacenters of which enough waits to count for a share",
    }, () => total.holders);
  }

  /** True while less than an eighth is free. */
  get isScarce(): boolean {
    return (this.total.maxBytes - this.total.bytes) * SCARCE_PART < this.total.maxBytes;
  }

  /**
   * Calls `makeRoom` each second while little is free.
   * @returns ends that
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
