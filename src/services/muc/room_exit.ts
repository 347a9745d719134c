import type { FullJid, Stanza } from "../../xmpp/mod.ts";
import { stanzaElement } from "../../xmpp/mod.ts";
import type { RoomStanza } from "../rooms/mod.ts";
import type { EmptyRooms } from "./empty_rooms.ts";
import type { LeftSeats } from "./left_seats.ts";
import type { LiveRooms } from "./live_rooms.ts";
import type { MucMetrics } from "./muc_metrics.ts";
import type { MucServerDeps } from "./muc_ports.ts";
import type { News } from "./news.ts";
import { MAX_PRESENCE_BYTES } from "./occupants.ts";
import type { Seat } from "./occupants.ts";
import type { SharedSeats } from "./shared_seats.ts";
import { shownElements } from "./room_xml.ts";
import type { PresenceNotes } from "./room_xml.ts";
import type { WaitingLeaves } from "./waiting_leaves.ts";

/** Milliseconds without its session after which a seat of this node ends. */
const ABSENT_MS = 60_000;

/** Collaborators of `RoomExit`. */
export interface RoomExitDeps extends Pick<MucServerDeps<RoomStanza>, "process" | "isHere"> {
  readonly rooms: LiveRooms;
  readonly seats: Pick<SharedSeats, "remove">;
  readonly leaves: WaitingLeaves;
  readonly leftSeats: Pick<LeftSeats, "note">;
  readonly empty: Pick<EmptyRooms, "remove">;
  readonly counters: Pick<MucMetrics, "dropped">;
  /** Returns the seat of a session that is still to be taken over from another node. */
  due(room: string, session: string): Seat | undefined;
  /**
   * Called when a session has left a room, also without a seat that this node knows.
   * @param seat its seat that was due when it left
   */
  left(room: string, session: string, seat: Seat | undefined): void;
  /** Runs a step of a room behind all earlier ones. Never rejects. */
  inTurn(room: string, step: () => Promise<void>): Promise<void>;
}

/**
 * Takes sessions of this node out of rooms: those that leave, those that a stanza did not reach, and
 * those that are long gone.
 */
export class RoomExit {
  readonly #deps: RoomExitDeps;
  /** Monotonic milliseconds since when a seat of this node has no session here, by full JID. */
  #absent: ReadonlyMap<string, number> = new Map();

  constructor(deps: RoomExitDeps) {
    this.#deps = deps;
  }

  /**
   * Takes a leave, or an error of a session that could not be reached. Those have no bound but that
   * they must concern a seat: nothing is kept of others, and of a stanza only what others are shown.
   * An error that ends no seat is counted.
   */
  take(stanza: Stanza): void {
    const { rooms, isHere, leaves, counters, due, left, inTurn } = this.#deps;
    const { kind, type, from, to, bytes } = stanza;
    const room = to.bare.text;
    const session = from.text;
    const isLeave = kind === "presence" && type === "unavailable";
    const isOver = () => isLeave || !isHere(from as FullJid); // seats have full JIDs
    const isSeated = rooms.ownSeat(room, session) !== undefined && isOver();
    const done = leaves.ends(isLeave ? "leave" : "error", stanza, { isSeated });
    // When its turn has come, the session may be gone, and its seat due no longer.
    const dueSeat = due(room, session);
    if (done === undefined) {
      return isLeave ? left(room, session, dueSeat) : counters.dropped.inc();
    }
    const isShown = isLeave && bytes.length <= MAX_PRESENCE_BYTES;
    const about = isLeave
      ? { payload: isShown ? shownElements(stanzaElement(stanza), room) : [] }
      : { notes: { codes: ["333"] } };
    void inTurn(room, () => {
      done();
      const seat = rooms.ownSeat(room, session);
      if (seat !== undefined && isOver()) this.remove(seat, about);
      else if (!isLeave) counters.dropped.inc();
      if (isLeave) left(room, session, dueSeat);
      return Promise.resolve();
    });
  }

  /**
   * Ends a seat of this node whose session has left the room at another node. One that has changed
   * since may be that of a new login.
   */
  leftElsewhere({ of, room, jid, changedMs }: News & { kind: "left" }): void {
    const seat = this.#deps.rooms.ownSeat(room, jid);
    if (of === this.#deps.process && seat?.changedMs === changedMs) this.remove(seat, {});
  }

  /** Takes a session of this node out of its room. The room may end with the last one. */
  remove(
    seat: Seat,
    about: { readonly notes?: PresenceNotes; readonly payload?: Seat["payload"] },
  ): void {
    const { rooms, seats, leftSeats, empty } = this.#deps;
    const live = rooms.get(seat.room);
    const { creation, settings } = live?.record ?? {};
    seats.remove(seat, about);
    // Its session may be at another node by now, which takes the seat over before it hears of this.
    leftSeats.note(seat);
    const isLast = live !== undefined && !rooms.hasOwn(live) && !live.mayHaveOthers;
    if (isLast && creation !== undefined && (!settings!.persistent || settings!.isLocked)) {
      empty.remove(seat.room, creation);
    }
  }

  /** Ends the seats of this node whose session has been gone for long. */
  look(nowMs: number): void {
    const { rooms, isHere } = this.#deps;
    const absent = new Map<string, number>();
    for (const jid of rooms.ownSessions()) {
      if (isHere(jid)) continue;
      const sinceMs = this.#absent.get(jid.text) ?? nowMs;
      if (nowMs - sinceMs >= ABSENT_MS) this.#removeAll(jid.text);
      else absent.set(jid.text, sinceMs);
    }
    this.#absent = absent;
  }

  #removeAll(session: string): void {
    const { rooms, process } = this.#deps;
    for (const seat of rooms.ofSession(session)) {
      if (seat.process === process) this.remove(seat, { notes: { codes: ["333"] } });
    }
  }
}
