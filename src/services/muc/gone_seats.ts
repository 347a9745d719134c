import type { Clock } from "../../base/mod.ts";
import { accountOf } from "./occupants.ts";
import type { Seat } from "./occupants.ts";

/** Seats that are remembered at most, in all rooms. */
const MAX_SEATS = 20_000;
/** Seats of one room: a session that comes from another node is told of all their nicknames. */
const MAX_SEATS_OF_ROOM = 1_000;

/** A seat that is gone, or has another nickname. */
interface GoneSeat extends Pick<Seat, "jid" | "nick"> {
  /** Monotonic milliseconds when it went. */
  readonly goneMs: number;
}

/**
 * Seats that went from rooms a moment ago, or changed their nicknames then. Somebody who has not heard
 * of that may still speak of them:
 *
 * - A session comes from a node that has shown it the nickname.
 * - An occupant answers the request of one, or is said to be gone in answer to it.
 */
export class GoneSeats {
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** By room, and by full JID and nickname. Those that went last are last. */
  readonly #rooms = new Map<string, Map<string, GoneSeat>>();
  #size = 0;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** Notes that a seat is gone, or has another nickname from now on. */
  note({ room, jid, nick }: Pick<Seat, "room" | "jid" | "nick">): void {
    const seats = this.#rooms.get(room) ?? new Map<string, GoneSeat>();
    this.#rooms.delete(room);
    this.#rooms.set(room, seats);
    const key = `${jid} ${nick}`;
    if (seats.delete(key)) this.#size--;
    seats.set(key, { jid, nick, goneMs: this.#clock.monotonicMs() });
    this.#size++;
    if (seats.size > MAX_SEATS_OF_ROOM) this.#forgetOldestOf(room, seats);
    else if (this.#size > MAX_SEATS) this.#forgetOldest();
  }

  /** Returns the nicknames of seats that went from a room. Somebody may have them again. */
  nicks(room: string): ReadonlySet<string> {
    return new Set([...this.#of(room)].map(({ nick }) => nick));
  }

  /** Returns the last nickname of a session, or of any session of an account, whose seat is gone. */
  nickOf(room: string, jid: string): string | undefined {
    return [...this.#of(room)].findLast((seat) => seat.jid === jid || accountOf(seat) === jid)
      ?.nick;
  }

  /** Returns the full JIDs of sessions that had a nickname. */
  holders(room: string, nick: string): readonly string[] {
    return [...this.#of(room)].filter((seat) => seat.nick === nick).map(({ jid }) => jid);
  }

  /** Forgets the seats that went before some monotonic time in milliseconds. */
  forgetBefore(ms: number): void {
    for (const [room, seats] of this.#rooms) {
      for (const [key, { goneMs }] of seats) {
        if (goneMs >= ms) break;
        this.#forget(room, seats, key);
      }
    }
  }

  #of(room: string): Iterable<GoneSeat> {
    return this.#rooms.get(room)?.values() ?? [];
  }

  /** Forgets a seat of the room from which none has gone for longest. */
  #forgetOldest(): void {
    for (const [room, seats] of this.#rooms) return this.#forgetOldestOf(room, seats);
  }

  #forgetOldestOf(room: string, seats: Map<string, GoneSeat>): void {
    const [key] = seats.keys();
    this.#forget(room, seats, key!); // a room without any is not kept
  }

  #forget(room: string, seats: Map<string, GoneSeat>, key: string): void {
    seats.delete(key);
    this.#size--;
    if (seats.size === 0) this.#rooms.delete(room);
  }
}
