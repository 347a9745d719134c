import { InboundLane } from "./inbound_lane.ts";

interface Known {
  readonly lane: InboundLane;
  /** Ends the connection that feeds it; undefined while there is none. */
  cut: (() => void) | undefined;
  /** Since when it has no connection. */
  idleSinceMs: number;
}

/** What a connection learns when it takes a lane over. */
export type Attachment =
  | { readonly kind: "attached"; readonly lane: InboundLane }
  | { readonly kind: "busy" };

/** A lane: its process and number are the peer's word, its local host is what the certificate says. */
export interface LaneName {
  readonly host: string;
  readonly process: number;
  readonly lane: number;
}

/** The connection that wants a lane. */
export interface AttachRequest extends LaneName {
  readonly lastGone: number;
  wake(): void;
  /** Ends the connection because another one took its lane. */
  cut(): void;
}

/**
 * The lanes of peers by local host, process and lane, so that nobody meddles with another
 * datacenter's by telling its numbers; kept for a while after their connection so that a peer
 * that comes back is told what it need not send again. Bounded: the longest idle is forgotten first.
 */
export class InboundLanes {
  readonly #options: {
    readonly maxInboundLanes: number;
    readonly inboundMemoryMs: number;
    readonly maxUnsettled: number;
  };
  readonly #lanes = new Map<string, Known>();

  constructor(options: {
    readonly maxInboundLanes: number;
    readonly inboundMemoryMs: number;
    readonly maxUnsettled: number;
  }) {
    this.#options = options;
  }

  get size(): number {
    return this.#lanes.size;
  }

  /** Gives a lane to a connection; the one that had it before is cut first. */
  attach(request: AttachRequest, nowMs: number): Attachment {
    const key = keyOf(request);
    let known = this.#lanes.get(key);
    if (known !== undefined) known.cut?.();
    else {
      if (!this.#makeRoom()) return { kind: "busy" };
      const lane = new InboundLane(request.process, request.lane, {
        host: request.host,
        lastGone: request.lastGone,
        maxUnsettled: this.#options.maxUnsettled,
      });
      known = { lane, cut: undefined, idleSinceMs: nowMs };
      this.#lanes.set(key, known);
    }
    known.cut = () => request.cut();
    known.lane.attach(request.lastGone, () => request.wake());
    return { kind: "attached", lane: known.lane };
  }

  /** The connection of `lane` has ended. */
  detach(lane: InboundLane, nowMs: number): void {
    const known = this.#lanes.get(keyOf(lane));
    if (known?.lane !== lane) return;
    lane.detach();
    known.cut = undefined;
    known.idleSinceMs = nowMs;
  }

  /** Ends what still feeds a lane whose stanzas the peer has moved to another. */
  retire(name: LaneName): void {
    this.#lanes.get(keyOf(name))?.cut?.();
  }

  /** Forgets what has been without a connection for too long. */
  tick(nowMs: number): void {
    for (const [key, known] of this.#lanes) {
      if (known.cut !== undefined) continue;
      if (nowMs - known.idleSinceMs >= this.#options.inboundMemoryMs) this.#lanes.delete(key);
    }
  }

  #makeRoom(): boolean {
    if (this.#lanes.size < this.#options.maxInboundLanes) return true;
    let oldest: string | undefined;
    let oldestMs = Infinity;
    for (const [key, known] of this.#lanes) {
      if (known.cut !== undefined || known.idleSinceMs >= oldestMs) continue;
      oldest = key;
      oldestMs = known.idleSinceMs;
    }
    return oldest !== undefined && this.#lanes.delete(oldest);
  }
}

/** No host has a slash in it. */
function keyOf({ host, process, lane }: LaneName): string {
  return `${host}/${process}/${lane}`;
}
