import type { BareJid, FullJid } from "../../xmpp/mod.ts";
import type { RoomStanza } from "../rooms/mod.ts";
import type { LeftSeats } from "./left_seats.ts";
import type { LiveRooms } from "./live_rooms.ts";
import type { MucServerDeps } from "./muc_ports.ts";
import type { Seat } from "./occupants.ts";
import type { RoomEntrance } from "./room_entrance.ts";
import type { WaitingLeaves } from "./waiting_leaves.ts";

/** Collaborators of `Arrivals`. */
export interface ArrivalsDeps
  extends Pick<MucServerDeps<RoomStanza>, "process" | "isHere" | "clock"> {
  readonly rooms: Pick<LiveRooms, "get" | "ofSession" | "ownSeat" | "tellLost">;
  readonly leftSeats: Pick<LeftSeats, "note" | "told">;
  readonly leaves: Pick<WaitingLeaves, "joins">;
  readonly entrance: Pick<RoomEntrance<never>, "takeOver">;
  /** Runs a step of a room behind all earlier ones. Never rejects. */
  inTurn(room: string, step: () => Promise<void>): Promise<void>;
}

/** Milliseconds after the arrival of a session in which this node may still hear of its seats. */
const LATE_MS = 10_000;
/** Rooms of one session that are remembered as left: no session is in as many. */
const MAX_LEFT = 1_000;

/** A session that has come from another node a moment ago. */
interface Arrived {
  readonly jid: FullJid;
  /** Monotonic milliseconds. */
  readonly sinceMs: number;
  /** Rooms that it has left since, or tried to. */
  readonly left: Set<string>;
}

/** A seat at another node that is to be this node's. */
interface DueSeat {
  readonly seat: Seat;
  readonly room: BareJid;
  readonly jid: FullJid;
  /** Nicknames in the room when the session came. */
  readonly nicks: readonly string[];
  /** Called once when the seat is due no longer. */
  done(): void;
}

/**
 * Takes over the seats of sessions that have come from other nodes. A session may outrun the news of
 * its seat, which is taken over when it comes. While the database is away, this tries again at each
 * look, until the session has left or the seat is gone. A session whose seat is gone is told so.
 */
export class Arrivals {
  readonly #deps: ArrivalsDeps;
  /** By full JID, in the order in which they came. */
  readonly #arrived = new Map<string, Arrived>();
  readonly #due = new Map<string, DueSeat>();
  #isLooking = false;

  constructor(deps: ArrivalsDeps) {
    this.#deps = deps;
  }

  /** Takes over the seats of a session. */
  take(jid: FullJid): void {
    const { rooms, clock } = this.#deps;
    const arrived = { jid, sinceMs: clock.monotonicMs(), left: new Set<string>() };
    this.#arrived.delete(jid.text);
    this.#arrived.set(jid.text, arrived);
    for (const seat of rooms.ofSession(jid.text)) this.#take(seat, arrived);
  }

  /** Takes over a seat that another node has told of, if its session has come here a moment ago. */
  told(seat: Seat): void {
    const arrived = this.#arrived.get(seat.jid);
    // At another node it may have entered again what it has left here.
    if (arrived === undefined || !this.#deps.isHere(arrived.jid)) return;
    if (arrived.left.has(seat.room)) this.#end(seat);
    else this.#take(seat, arrived);
  }

  #take(seat: Seat, { jid }: Arrived): void {
    const { rooms, leaves, process } = this.#deps;
    const live = rooms.get(seat.room); // undefined: there was no place for the seat
    const key = keyOf(seat.room, jid.text);
    if (live === undefined || seat.process === process || this.#due.has(key)) return;
    const room = live.jid;
    const nicks = [...live.seats.nicks];
    const due = { seat, room, jid, nicks, done: leaves.joins({ from: jid, to: room }) };
    this.#due.set(key, due);
    void this.#takeOver(key, due);
  }

  /** Returns the seat of a session that is still to be taken over. */
  due(room: string, session: string): Seat | undefined {
    return this.#due.get(keyOf(room, session))?.seat;
  }

  /**
   * Takes over no seat that a session has left, and has the other node end it.
   * @param seat the seat that was due when the session left the room
   */
  left(room: string, session: string, seat: Seat | undefined): void {
    this.#forget(keyOf(room, session));
    if (seat !== undefined) this.#end(seat);
    const left = this.#arrived.get(session)?.left;
    if (left !== undefined && left.size < MAX_LEFT) left.add(room);
  }

  /** The session may soon log in at the other node, which would then keep the seat. */
  #end(seat: Seat): void {
    this.#deps.leftSeats.note(seat);
    this.#deps.leftSeats.told(seat);
  }

  /** Tries again to take over seats. */
  look(): void {
    const beforeMs = this.#deps.clock.monotonicMs() - LATE_MS;
    for (const [session, { sinceMs }] of this.#arrived) {
      if (sinceMs > beforeMs) break;
      this.#arrived.delete(session);
    }
    if (this.#isLooking) return;
    this.#isLooking = true;
    void this.#lookAtAll().finally(() => this.#isLooking = false);
  }

  /** Never rejects. */
  async #lookAtAll(): Promise<void> {
    for (const [key, due] of [...this.#due]) {
      await this.#takeOver(key, due);
      if (this.#due.get(key) === due) return; // the database is away, for the others too
    }
  }

  /** Never rejects. */
  async #takeOver(key: string, { seat, room, jid, nicks }: DueSeat): Promise<void> {
    const { rooms, entrance, isHere, inTurn } = this.#deps;
    await inTurn(room.text, async () => {
      if (!this.#due.has(key)) return;
      const isTaken = await entrance.takeOver(room.text, jid, nicks);
      const isOut = !isTaken && rooms.ownSeat(room.text, jid.text) === undefined;
      // The other node may be dead or cut off, and so unable to tell it. A session that has left knows.
      if (!isOut || !this.#due.has(key) || !isHere(jid)) return this.#forget(key);
      rooms.tellLost(seat);
      this.left(room.text, jid.text, seat); // the seat may come back, and the session believes it gone
    });
  }

  #forget(key: string): void {
    this.#due.get(key)?.done();
    this.#due.delete(key);
  }
}

function keyOf(room: string, session: string): string {
  return `${room} ${session}`;
}
