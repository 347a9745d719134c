import type { RoomStanza } from "../rooms/mod.ts";
import type { LiveRooms } from "./live_rooms.ts";
import { MovingSeats } from "./moving_seats.ts";
import type { MucMetrics } from "./muc_metrics.ts";
import type { MucServerDeps } from "./muc_ports.ts";
import type { News, NextNode } from "./news.ts";
import { accountOf, freeNick, precedes, supersedes } from "./occupants.ts";
import type { Seat } from "./occupants.ts";
import type { PresenceNotes } from "./room_xml.ts";

/** Collaborators of `SharedSeats`. */
export interface SharedSeatsDeps extends Pick<MucServerDeps<RoomStanza>, "process" | "clock"> {
  readonly rooms: LiveRooms;
  readonly counters: Pick<MucMetrics, "leaves" | "renamed">;
  /** Tells all nodes. */
  tell(news: News): void;
  /** Returns the number of the last news of a process; undefined for one that is dead, or not known yet. */
  countOf(process: number): number | undefined;
  /**
   * Called before another node gets a seat of this node. Returns the number up to which its session got
   * messages; undefined if that is not known.
   */
  handOver(seat: Seat): number | undefined;
  /** Called with a seat of another node that is new or has changed. */
  seated(seat: Seat): void;
}

/**
 * Seats as all nodes keep them. Each node numbers the changes of its own seats, and tells the others.
 * Every node decides by the same rules whose nickname it is when several seats want it.
 */
export class SharedSeats {
  readonly #deps: SharedSeatsDeps;
  readonly #moving: MovingSeats;
  #count = 0;

  constructor(deps: SharedSeatsDeps) {
    this.#deps = deps;
    const { rooms, clock } = deps;
    const countOf = (process: number) => deps.countOf(process);
    const remove = (seat: Seat) => this.takeOut(seat);
    this.#moving = new MovingSeats({ rooms, clock, countOf, remove });
  }

  /** Changes of this node's seats so far. */
  get count(): number {
    return this.#count;
  }

  /** Puts a seat of this node in, or changes it, and tells all nodes. */
  put(
    changed: Seat,
    { codes, notes }: {
      /** Status codes for a session that enters. @default it is in the room already */
      readonly codes?: readonly string[];
      readonly notes?: PresenceNotes;
    } = {},
  ): void {
    const { rooms } = this.#deps;
    const before = rooms.get(changed.room)?.seats.of(changed.jid);
    const { changedMs = 0 } = before ?? {};
    // Other nodes know a change by its time, and several may come in a millisecond.
    const seat = { ...changed, changedMs: Math.max(changed.changedMs, changedMs + 1) };
    if (before !== undefined && before.nick !== seat.nick) this.#giveWay(before);
    if (codes !== undefined) rooms.enter(seat, codes);
    else rooms.put(seat, { notes });
    if (rooms.get(seat.room)?.seats.of(seat.jid) !== seat) return; // there was no place
    this.#deps.tell({ kind: "seat", count: ++this.#count, seat });
  }

  /** Takes a seat of this node out, and tells all nodes. */
  remove(
    seat: Seat,
    about: { readonly notes?: PresenceNotes; readonly payload?: Seat["payload"] },
  ) {
    this.takeOut(seat, about);
    this.#deps.counters.leaves.inc();
    this.gone(seat, about);
  }

  /** Tells all nodes that a seat of this node is gone. */
  gone(
    { room, jid }: Seat,
    { notes = {}, payload = [], number, next }: {
      readonly notes?: PresenceNotes;
      readonly payload?: Seat["payload"];
      /** Number up to which its session got messages here, when it has moved. */
      readonly number?: number | undefined;
      /** Node that has taken the seat over. */
      readonly next?: NextNode | undefined;
    },
  ): void {
    this.#deps.tell({
      kind: "gone",
      count: ++this.#count,
      room,
      jid,
      notes,
      payload,
      number,
      next,
    });
  }

  /** Takes a seat of another node. Sessions of this node that came later lose its nickname. */
  take(seat: Seat): void {
    const { rooms, process, counters, countOf, handOver, seated } = this.#deps;
    const room = rooms.get(seat.room);
    const known = room?.seats.of(seat.jid);
    // It was told before, as when all seats of a node come again.
    const isKnown = known?.process === seat.process && known.nick === seat.nick &&
      known.changedMs === seat.changedMs && known.role === seat.role;
    if (isKnown) return;
    // The same session, of an older login or at a node that it has left.
    if (known !== undefined && known.process !== seat.process && supersedes(known, seat)) {
      if (known.nick !== seat.nick) rooms.passOver(seat);
      return;
    }
    for (const rival of room?.seats.rivals(seat.nick, accountOf(seat)) ?? []) {
      if (rival.process === process && !precedes(rival, seat)) this.#rename(rival);
    }
    if (known !== undefined && known.nick !== seat.nick) this.#giveWay(known);
    const live = rooms.get(seat.room);
    if (live !== undefined) live.mayHaveOthers = false;
    const number = known?.process === process ? handOver(known) : undefined;
    rooms.put(seat);
    const mine = rooms.get(seat.room)?.seats;
    // A seat of this node that came first is still seen. One that came later has made room above.
    if (known?.process === process && mine?.of(seat.jid) === seat) {
      counters.leaves.inc();
      // A node that the news of the other one have not reached must not keep this node's seat.
      const count = countOf(seat.process);
      const next = count === undefined ? undefined : { process: seat.process, count };
      this.gone(known, { number, next });
    }
    seated(seat);
  }

  /** Takes out a seat of another node, unless the node that has taken it over is still to be heard. */
  takeGone(process: number, news: News & { readonly kind: "gone" }): void {
    const { rooms } = this.#deps;
    const { room, jid, next } = news;
    const seat = rooms.get(room)?.seats.of(jid);
    if (seat?.process !== process) return;
    const isKept = next !== undefined && this.#moving.keeps(seat, next);
    if (!isKept) this.takeOut(seat, news);
  }

  /** Takes a seat out, and shows that. */
  takeOut(seat: Seat, about: Parameters<LiveRooms["remove"]>[2] = {}): void {
    this.#giveWay(seat);
    this.#deps.rooms.remove(seat.room, seat.jid, about);
  }

  /**
   * Renames sessions of this node that share the nickname of a seat which is about to give it up, if
   * somebody else wants it who came before them. Nobody would see them.
   */
  #giveWay(seat: Seat): void {
    const { rooms, process } = this.#deps;
    const seats = rooms.get(seat.room)?.seats;
    const entry = seats?.entry(seat.nick);
    if (entry === undefined || entry.account !== accountOf(seat)) return;
    if ([undefined, entry.account].includes(seats!.heirOf(seat))) return;
    for (const own of entry.seats) {
      if (own.process === process && own.jid !== seat.jid) this.#rename(own);
    }
  }

  /** Gives a session of this node another nickname in place of one that somebody else had first. */
  #rename(seat: Seat): void {
    const { rooms, counters } = this.#deps;
    const { seats } = rooms.get(seat.room)!; // the seat is there
    counters.renamed.inc();
    this.put(
      { ...seat, nick: freeNick(seat, seats), changedMs: this.#deps.clock.wallMs() },
      { notes: { codes: ["210"] } },
    );
  }

  /** Takes out the seats of other nodes that nobody has taken over. Called at each look. */
  look(): void {
    this.#moving.look();
  }
}
