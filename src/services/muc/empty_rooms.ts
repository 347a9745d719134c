import type { StoredMucRoom } from "../../storage/mod.ts";
import type { LiveRooms } from "./live_rooms.ts";
import type { MucMetrics } from "./muc_metrics.ts";
import type { MucServerDeps } from "./muc_ports.ts";
import type { Peers } from "./peers.ts";
import type { RoomRecords } from "./room_records.ts";

/** Rooms that are removed late at most. Others stay, until somebody enters and leaves them. */
const MAX_LEFT_ROOMS = 10_000;
/**
 * Looks with all occupants known, after which the nodes of those who were left in a room know that
 * nobody of this node is in it. The last of them removes it then.
 */
const LOOKS = 10;
/** Milliseconds after which a warning tells that such rooms are still there. */
const LEFT_LONG_MS = 600_000;

/** Collaborators of `EmptyRooms`. */
export interface EmptyRoomsDeps extends Pick<MucServerDeps<never>, "service" | "clock" | "logger"> {
  readonly rooms: Pick<LiveRooms, "get">;
  readonly peers: Pick<Peers, "isWhole" | "unheard" | "tellChange">;
  readonly records: Pick<RoomRecords, "settingsOf">;
  readonly counters: Pick<MucMetrics, "destroyed">;
  /** Runs a step of a room behind all earlier ones. Never rejects. */
  inTurn(room: string, step: () => Promise<void>): Promise<void>;
}

/** A room that the sessions of this node have left. */
interface LeftRoom {
  readonly creation: number;
  /** Looks until it is the matter of other nodes. */
  looks: number;
}

/**
 * Removes rooms that are not to stay when nobody is in them. The last occupants may leave at different
 * nodes at once, each of which still sees the other's. So a node looks for a while at what it has left.
 */
export class EmptyRooms {
  readonly #deps: EmptyRoomsDeps;
  /** Rooms that go once this node knows all occupants, and nobody is in them. */
  readonly #left = new Map<string, LeftRoom>();
  /** Monotonic milliseconds since when there are such rooms; infinite after the warning of them. */
  #leftSinceMs: number | undefined;
  #isLooking = false;

  constructor(deps: EmptyRoomsDeps) {
    this.#deps = deps;
  }

  /** Removes a room, unless it is to stay, in its turn or soon after that, when nobody is in it. */
  remove(room: string, creation: number): void {
    const left = { creation, looks: LOOKS };
    if (this.#left.size < MAX_LEFT_ROOMS) this.#left.set(room, left);
    void this.#deps.inTurn(room, () => this.#remove(room, left));
  }

  /** Removes the rooms that had to stay, if this node knows all occupants by now. */
  look(nowMs: number): void {
    if (!this.#isLooking && this.#deps.peers.isWhole) {
      this.#isLooking = true;
      void this.#lookAtAll().finally(() => this.#isLooking = false);
    }
    this.#warn(nowMs);
  }

  /** Never rejects. */
  async #lookAtAll(): Promise<void> {
    const { rooms, inTurn } = this.#deps;
    for (const [room, left] of [...this.#left]) {
      if (rooms.get(room) !== undefined) {
        if (--left.looks === 0) this.#left.delete(room);
        continue;
      }
      await inTurn(room, () => this.#remove(room, left));
      if (this.#left.get(room) === left) return; // the database is away, for the others too
    }
  }

  /**
   * While there are occupants, or may be some that this node does not know, the room stays.
   *
   * @throws CausewayError `storage/…`
   */
  async #remove(room: string, left: LeftRoom): Promise<void> {
    const { rooms, peers, service: { store } } = this.#deps;
    if (!peers.isWhole || rooms.get(room) !== undefined) return;
    const stored = await store.read(room);
    if (rooms.get(room) !== undefined) return;
    if (stored?.creation === left.creation && !await this.#destroy(room, stored)) return;
    if (this.#left.get(room) === left) this.#left.delete(room);
  }

  /** Destroys a room, unless it is to stay. Returns false when it has changed meanwhile. */
  async #destroy(room: string, stored: StoredMucRoom): Promise<boolean> {
    const { peers, records, counters, service: { store, archives } } = this.#deps;
    const { persistent, isLocked } = records.settingsOf(stored);
    if (persistent && !isLocked) return true;
    if (!await store.destroy(room, stored.version)) return false;
    counters.destroyed.inc();
    archives?.removed(room);
    // Somebody may have entered it elsewhere a moment ago.
    const { creation } = stored;
    peers.tellChange({ kind: "destroyed", room, creation, notes: { destroyed: {} } });
    return true;
  }

  /** Warns once of empty rooms that stay for long: a live node without rooms is never heard. */
  #warn(nowMs: number): void {
    const { rooms: live, peers, logger } = this.#deps;
    const empty = [...this.#left.keys()].filter((room) => live.get(room) === undefined);
    const rooms = peers.isWhole ? 0 : empty.length;
    this.#leftSinceMs = rooms === 0 ? undefined : this.#leftSinceMs ?? nowMs;
    if (this.#leftSinceMs === undefined || nowMs - this.#leftSinceMs < LEFT_LONG_MS) return;
    this.#leftSinceMs = Infinity;
    logger.warn("muc.rooms-stay", { rooms, unheard: peers.unheard });
  }
}
