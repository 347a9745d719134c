import type { RoomStanza } from "../rooms/mod.ts";
import type { LiveRooms } from "./live_rooms.ts";
import type { MucServerDeps } from "./muc_ports.ts";
import { MAX_TAKEOVERS } from "./occupants.ts";
import type { Seat } from "./occupants.ts";
import type { Peers } from "./peers.ts";

/** Looks with all seats known, after which no other node can have a seat that its session left before. */
const LOOKS = 10;
/** Seats that are remembered at most. */
const MAX_LEFT_SEATS = 10_000;

/** A seat that its session has left. */
interface LeftSeat extends Pick<Seat, "room" | "jid" | "joinedMs" | "changedMs"> {
  /** Looks until it is forgotten. */
  looks: number;
}

/** Collaborators of `LeftSeats`. */
export interface LeftSeatsDeps extends Pick<MucServerDeps<RoomStanza>, "process"> {
  readonly rooms: Pick<LiveRooms, "get">;
  readonly peers: Pick<Peers, "tell" | "isWhole">;
}

/**
 * Seats that sessions have left at this node, and that another node may still have: the session moved
 * between the two at that moment. The other node is told until it has ended the seat, however long the
 * link between them is cut.
 */
export class LeftSeats {
  readonly #deps: LeftSeatsDeps;
  /** By room and full JID, in the order in which they were left. */
  readonly #left = new Map<string, LeftSeat>();

  constructor(deps: LeftSeatsDeps) {
    this.#deps = deps;
  }

  /** Notes that a session has left a seat, of this node or another one. */
  note({ room, jid, joinedMs, changedMs }: Seat): void {
    const key = keyOf({ room, jid });
    this.#left.delete(key);
    this.#left.set(key, { room, jid, joinedMs, changedMs, looks: LOOKS });
    if (this.#left.size <= MAX_LEFT_SEATS) return;
    const [oldest] = this.#left.keys();
    this.#left.delete(oldest!);
  }

  /** Makes the node of a seat end it, and returns true, if that is a seat which its session has left. */
  told(seat: Seat): boolean {
    const left = this.#left.get(keyOf(seat));
    if (left === undefined || !continues(seat, left)) return false;
    left.looks = LOOKS;
    const { room, jid, changedMs, process, host } = seat;
    this.#deps.peers.tell({ kind: "left", of: process, room, jid, changedMs }, [host]);
    return true;
  }

  /** Tells nodes again of the seats that they still have. */
  look(): void {
    const { rooms, peers: { isWhole }, process } = this.#deps;
    for (const [key, left] of this.#left) {
      const seat = rooms.get(left.room)?.seats.of(left.jid);
      if (seat !== undefined && seat.process !== process) this.told(seat);
      if (isWhole && --left.looks === 0) this.#left.delete(key);
    }
  }
}

/**
 * True for the same seat, or for one into which nodes have made it by taking it over one after another.
 * A seat that has changed since may be that of a new login. Pure.
 */
function continues(seat: Seat, left: LeftSeat): boolean {
  const isSame = seat.joinedMs === left.joinedMs && seat.changedMs === left.changedMs;
  const takeovers = seat.joinedMs - left.joinedMs; // each adds one
  return isSame || takeovers > 0 && takeovers <= MAX_TAKEOVERS;
}

function keyOf({ room, jid }: Pick<Seat, "room" | "jid">): string {
  return `${room} ${jid}`;
}
