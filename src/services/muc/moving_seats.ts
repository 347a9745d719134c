import type { Clock } from "../../base/mod.ts";
import type { LiveRooms } from "./live_rooms.ts";
import type { NextNode } from "./news.ts";
import type { Seat } from "./occupants.ts";

/** Milliseconds that a seat stays without news of the node that has taken it over. */
const PATIENCE_MS = 5_000;

/** A seat that its node has given up for another one. */
interface MovingSeat {
  readonly next: NextNode;
  /** Monotonic milliseconds. */
  readonly sinceMs: number;
}

/** Collaborators of `MovingSeats`. */
export interface MovingSeatsDeps {
  readonly rooms: Pick<LiveRooms, "get">;
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Returns the number of the last news of a process; undefined for one that is dead, or not known yet. */
  countOf(process: number): number | undefined;
  /** Takes out a seat of another node. */
  remove(seat: Seat): void;
}

/**
 * Seats of other nodes that are said to be gone before the node is heard that has taken them over. They
 * stay until then, so that nobody sees their sessions leave and come again.
 */
export class MovingSeats {
  readonly #deps: MovingSeatsDeps;
  /** Each once, however often it is said to be gone. */
  readonly #moving = new Map<Seat, MovingSeat>();

  constructor(deps: MovingSeatsDeps) {
    this.#deps = deps;
  }

  /**
   * Keeps a seat that is gone for a while.
   * @returns false when the node that has taken it over was heard, so that it is to go now
   */
  keeps(seat: Seat, next: NextNode): boolean {
    if (this.#isHeard(next)) return false;
    const sinceMs = this.#moving.get(seat)?.sinceMs ?? this.#deps.clock.monotonicMs();
    this.#moving.set(seat, { next, sinceMs });
    return true;
  }

  /** Takes out the seats that nobody has taken over, as far as this node hears. */
  look(): void {
    const { rooms, remove, clock } = this.#deps;
    const beforeMs = clock.monotonicMs() - PATIENCE_MS;
    for (const [seat, { next, sinceMs }] of this.#moving) {
      const isThere = rooms.get(seat.room)?.seats.of(seat.jid) === seat;
      if (isThere && sinceMs > beforeMs && !this.#isHeard(next)) continue;
      this.#moving.delete(seat);
      if (isThere) remove(seat);
    }
  }

  /** True also when nothing is known of the node, or nothing any longer. */
  #isHeard({ process, count }: NextNode): boolean {
    return (this.#deps.countOf(process) ?? Infinity) >= count;
  }
}
