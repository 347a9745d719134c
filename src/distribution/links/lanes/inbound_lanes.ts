import { InboundLane } from "./inbound_lane.ts";

interface Known {
  readonly lane: InboundLane;
  /** Ends the connection that feeds the lane; undefined while there is none. */
  cut: (() => void) | undefined;
  /** Time since when the lane has no connection. */
  idleSinceMs: number;
}

/** Result of a connection's request for a lane. */
export type Attachment =
  | { readonly kind: "attached"; readonly lane: InboundLane }
  | { readonly kind: "busy" };

/** Name of a lane: process and number are the peer's claim, the local host is the certificate's. */
export interface LaneName {
  readonly host: string;
  readonly process: number;
  readonly lane: number;
}

/** Bounds on the lanes that are remembered. */
export interface InboundLanesOptions {
  readonly maxInboundLanes: number;
  readonly maxDatacenterLanes: number;
  readonly inboundMemoryMs: number;
  readonly maxUnsettled: number;
}

/** The connection that wants a lane. */
export interface AttachRequest extends LaneName {
  readonly lastGone: number;
  wake(isUrgent: boolean): void;
  /** Ends the connection because another one took its lane. */
  cut(): void;
}

/**
 * Peers' lanes by local host, process and lane, so that no datacenter can touch another's lanes by
 * claiming their numbers. A lane is kept for a while after its connection: a peer that comes back
 * learns what it need not send again. Bounded, in all and for each local host. At a bound the host
 * with the most lanes loses the one that was idle longest.
 */
export class InboundLanes {
  #options: InboundLanesOptions;
  readonly #lanes = new Map<string, Known>();
  /** Number of lanes of each local host. */
  readonly #counts = new Map<string, number>();

  constructor(options: InboundLanesOptions) {
    this.#options = options;
  }

  /** Takes other bounds from now on. Lanes above them stay until room is needed. */
  change(options: InboundLanesOptions): void {
    this.#options = options;
  }

  get size(): number {
    return this.#lanes.size;
  }

  /** Gives a lane to a connection. An earlier connection of the lane is cut first. */
  attach(request: AttachRequest, nowMs: number): Attachment {
    const key = keyOf(request);
    let known = this.#lanes.get(key);
    if (known !== undefined) known.cut?.();
    else {
      if (!this.#makeRoom(request.host)) return { kind: "busy" };
      const lane = new InboundLane(request.process, request.lane, {
        host: request.host,
        lastGone: request.lastGone,
        maxUnsettled: this.#options.maxUnsettled,
      });
      known = { lane, cut: undefined, idleSinceMs: nowMs };
      this.#lanes.set(key, known);
      this.#counts.set(request.host, this.#countOf(request.host) + 1);
    }
    known.cut = () => request.cut();
    known.lane.attach(request.lastGone, (isUrgent) => request.wake(isUrgent));
    return { kind: "attached", lane: known.lane };
  }

  /** Notes that the connection of `lane` has ended. */
  detach(lane: InboundLane, nowMs: number): void {
    const known = this.#lanes.get(keyOf(lane));
    if (known?.lane !== lane) return;
    lane.detach();
    known.cut = undefined;
    known.idleSinceMs = nowMs;
  }

  /** Ends the connection of a lane whose stanzas the peer has moved to another. */
  retire(name: LaneName): void {
    this.#lanes.get(keyOf(name))?.cut?.();
  }

  /** Forgets lanes that have been without a connection for too long. */
  tick(nowMs: number): void {
    for (const [key, known] of this.#lanes) {
      if (known.cut !== undefined) continue;
      if (nowMs - known.idleSinceMs >= this.#options.inboundMemoryMs) this.#forget(key, known);
    }
  }

  #makeRoom(host: string): boolean {
    const { maxInboundLanes, maxDatacenterLanes } = this.#options;
    const isCrowded = this.#countOf(host) >= maxDatacenterLanes;
    if (!isCrowded && this.#lanes.size < maxInboundLanes) return true;
    let oldest: [string, Known] | undefined;
    for (const [key, known] of this.#lanes) {
      if (known.cut !== undefined || (isCrowded && known.lane.host !== host)) continue;
      if (oldest === undefined || this.#goesBefore(known, oldest[1])) oldest = [key, known];
    }
    if (oldest === undefined) return false;
    this.#forget(...oldest);
    return true;
  }

  /** The host with the most lanes gives way: a datacenter cannot crowd out the lanes of others. */
  #goesBefore(one: Known, other: Known): boolean {
    const more = this.#countOf(one.lane.host) - this.#countOf(other.lane.host);
    return more !== 0 ? more > 0 : one.idleSinceMs < other.idleSinceMs;
  }

  #countOf(host: string): number {
    return this.#counts.get(host) ?? 0;
  }

  #forget(key: string, { lane: { host } }: Known): void {
    this.#lanes.delete(key);
    const left = this.#countOf(host) - 1;
    if (left > 0) this.#counts.set(host, left);
    else this.#counts.delete(host);
  }
}

/** Returns the key of a lane; no host contains a slash. */
function keyOf({ host, process, lane }: LaneName): string {
  return `${host}/${process}/${lane}`;
}
