import type { BareJid, FullJid } from "../../xmpp/mod.ts";
import type { RoomStanza } from "../rooms/mod.ts";
import type { GoneSeats } from "./gone_seats.ts";
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
  readonly gone: Pick<GoneSeats, "forgetBefore">;
  readonly leftSeats: Pick<LeftSeats, "note" | "told">;
  readonly leaves: Pick<WaitingLeaves, "joins">;
  readonly entrance: Pick<RoomEntrance<never>, "takeOver" | "takeAgain">;
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
  /** Wall-clock milliseconds when it did so, by room; also when it was here earlier. */
  readonly leftMs: Map<string, number>;
}

/** A seat at another node that is to be this node's. */
interface DueSeat {
  /** As this node has heard of it last. */
  seat: Seat;
  readonly room: BareJid;
  readonly jid: FullJid;
  /** True while no node has it, as far as this one knows: the news of the one that has may be late. */
  isOut: boolean;
  /** Called once when the seat is due no longer. */
  done(): void;
}

/**
 * Takes over the seats of sessions that have come from other nodes. A session may outrun the news of
 * its seat, which is taken over when it comes. While the database is away, this tries again at each
 * look, until the session has left or the seat is gone. A session whose seat stays gone is told so.
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
    const { rooms, entrance, process, clock } = this.#deps;
    const { leftMs = new Map() } = this.#arrived.get(jid.text) ?? {};
    const arrived = { jid, sinceMs: clock.monotonicMs(), left: new Set<string>(), leftMs };
    this.#arrived.delete(jid.text);
    this.#arrived.set(jid.text, arrived);
    for (const seat of rooms.ofSession(jid.text)) {
      if (seat.process === process) entrance.takeAgain(seat);
      else if (!this.#isLeft(seat, arrived, { isHere: true })) this.#take(seat, arrived);
    }
  }

  /**
   * Takes over a seat that another node has told of, if its session has come here a moment ago. Has the
   * other node end a seat that the session has left here, though the session may be back there.
   */
  told(seat: Seat): void {
    const arrived = this.#arrived.get(seat.jid);
    const isHere = arrived !== undefined && this.#deps.isHere(arrived.jid);
    if (this.#isLeft(seat, arrived, { isHere })) return;
    if (isHere) this.#take(seat, arrived);
  }

  /** True for a seat that its session has left here, which the other node is to end. */
  #isLeft(
    seat: Seat,
    arrived: Arrived | undefined,
    { isHere }: { readonly isHere: boolean },
  ): boolean {
    if (this.#deps.leftSeats.told(seat)) return true;
    if (arrived === undefined) return false;
    const { left, leftMs } = arrived;
    // At another node it may have entered again what it has left here.
    const isLeft = isHere && left.has(seat.room) || seat.joinedMs < (leftMs.get(seat.room) ?? 0);
    if (isLeft) this.#end(seat);
    return isLeft;
  }

  #take(seat: Seat, { jid }: Arrived): void {
    const { rooms, leaves } = this.#deps;
    const live = rooms.get(seat.room); // undefined: there was no place for the seat
    const key = keyOf(seat.room, jid.text);
    if (live === undefined) return;
    const known = this.#due.get(key);
    if (known !== undefined) {
      known.seat = seat;
      if (known.isOut) void this.#takeOver(key, known);
      return;
    }
    const room = live.jid;
    const due = { seat, room, jid, isOut: false, done: leaves.joins({ from: jid, to: room }) };
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
    const { left, leftMs } = this.#arrived.get(session) ?? {};
    if (left === undefined || leftMs === undefined || leftMs.size >= MAX_LEFT) return;
    left.add(room);
    leftMs.set(room, this.#deps.clock.wallMs());
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
    // A session that waits for its seat is told later who has left meanwhile.
    if (this.#due.size === 0) this.#deps.gone.forgetBefore(beforeMs);
    if (this.#isLooking) return;
    this.#isLooking = true;
    void this.#lookAtAll().finally(() => this.#isLooking = false);
  }

  /** Never rejects. */
  async #lookAtAll(): Promise<void> {
    for (const [key, due] of [...this.#due]) {
      await this.#takeOver(key, due);
      // The database is away, for the others too.
      if (this.#due.get(key) === due && !due.isOut) return;
    }
  }

  /** Never rejects. */
  async #takeOver(key: string, due: DueSeat): Promise<void> {
    const { rooms, entrance, isHere, inTurn } = this.#deps;
    const { room, jid } = due;
    await inTurn(room.text, async () => {
      if (this.#due.get(key) !== due) return;
      due.isOut = false;
      const isTaken = await entrance.takeOver(room.text, jid);
      if (this.#due.get(key) !== due) return; // a session that has left knows
      due.isOut = !isTaken && rooms.ownSeat(room.text, jid.text) === undefined;
      if (!due.isOut || !isHere(jid)) return this.#forget(key);
      if (this.#arrived.has(jid.text)) return; // it may be at a node where the session was meanwhile
      // The other node may be dead or cut off, and so unable to tell it.
      rooms.tellLost(due.seat);
      // The seat may come back, and the session believes it gone.
      this.left(room.text, jid.text, due.seat);
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
