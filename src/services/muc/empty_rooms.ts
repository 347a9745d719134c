import type { LiveRooms } from "./live_rooms.ts";
import type { MucMetrics } from "./muc_metrics.ts";
import type { MucServerDeps } from "./muc_ports.ts";
import type { Peers } from "./peers.ts";
import type { RoomRecords } from "./room_records.ts";

/** Rooms that are removed late at most. Others stay, until somebody enters and leaves them. */
const MAX_LEFT_ROOMS = 10_000;
/** Milliseconds after which a warning tells that such rooms are still there. */
const LEFT_LONG_MS = 600_000;

/** Collaborators of `EmptyRooms`. */
export interface EmptyRoomsDeps extends Pick<MucServerDeps<never>, "service" | "clock" | "logger"> {
  readonly rooms: LiveRooms;
  readonly peers: Peers;
  readonly records: Pick<RoomRecords, "settingsOf">;
  readonly counters: MucMetrics;
  inTurn(room: string, step: () => Promise<void>): Promise<void>;
}

/** Removes rooms that are not to stay when nobody is in them. */
export class EmptyRooms {
  readonly #deps: EmptyRoomsDeps;
  /**
   * Rooms that go if nobody is in them, once this node knows all occupants again, with their
   * creations.
   */
  readonly #left = new Map<string, number>();
  /** Monotonic milliseconds since when there are such rooms; infinite after the warning of them. */
  #leftSinceMs: number | undefined;

  constructor(deps: EmptyRoomsDeps) {
    this.#deps = deps;
  }

  /** Removes a room in its turn, unless it is to stay or somebody is in it. */
  remove(room: string, creation: number): void {
    void this.#deps.inTurn(room, () => this.#remove(room, creation));
  }

  /** Removes the rooms that had to stay, if this node knows all occupants by now. */
  look(nowMs: number): void {
    if (this.#left.size > 0 && this.#deps.peers.isWhole) {
      const left = [...this.#left];
      this.#left.clear();
      for (const [room, creation] of left) this.remove(room, creation);
    }
    this.#warn(nowMs);
  }

  /** While there may be occupants that this node does not know, the room stays. */
  async #remove(room: string, creation: number): Promise<void> {
    const { rooms, peers, records, counters, service: { store, archives } } = this.#deps;
    if (!peers.isWhole) {
      if (this.#left.size < MAX_LEFT_ROOMS) this.#left.set(room, creation);
      return;
    }
    const stored = await store.read(room);
    if (stored?.creation !== creation || rooms.get(room) !== undefined) return;
    const { persistent, isLocked } = records.settingsOf(stored);
    if (persistent && !isLocked) return;
    if (!await store.destroy(room, stored.version)) return;
    counters.destroyed.inc();
    archives?.removed(room);
    // Somebody may have entered it elsewhere a moment ago.
    peers.tellChange({ kind: "destroyed", room, creation, notes: { destroyed: {} } });
  }

  /** Warns once of empty rooms that stay for long: a live node without rooms is never heard. */
  #warn(nowMs: number): void {
    const { size: rooms } = this.#left;
    this.#leftSinceMs = rooms === 0 ? undefined : this.#leftSinceMs ?? nowMs;
    if (this.#leftSinceMs === undefined || nowMs - this.#leftSinceMs < LEFT_LONG_MS) return;
    this.#leftSinceMs = Infinity;
    this.#deps.logger.warn("muc.rooms-stay", { rooms, unheard: this.#deps.peers.unheard });
  }
}
