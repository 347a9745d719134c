import type { MucStore, StoredMucRoom } from "../../storage/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import type { RoomStanza } from "../rooms/mod.ts";
import type { LiveRooms, RoomRecord } from "./live_rooms.ts";
import type { MessageOrder } from "./message_order.ts";
import type { MucMetrics } from "./muc_metrics.ts";
import type { MucServerDeps } from "./muc_ports.ts";
import type { SentNews } from "./news.ts";
import { accountOf } from "./occupants.ts";
import type { Seat } from "./occupants.ts";
import type { Peers } from "./peers.ts";
import type { SharedSeats } from "./shared_seats.ts";
import { affiliationOf, roleAfter } from "./room_standing.ts";
import type { Role } from "./room_standing.ts";
import { statusMessage } from "./room_xml.ts";
import type { PresenceNotes } from "./room_xml.ts";

/** Milliseconds after which all rooms are looked at again while some node is not heard. */
const REVIEW_MS = 60_000;

/** Collaborators of `RoomChanges`. */
export interface RoomChangesDeps extends Pick<MucServerDeps<RoomStanza>, "process" | "clock"> {
  readonly service: { readonly store: Pick<MucStore, "read"> };
  readonly rooms: LiveRooms;
  readonly order: Pick<MessageOrder, "arrive" | "catchUp">;
  readonly peers: Pick<Peers, "isWhole">;
  readonly seats: Pick<SharedSeats, "put" | "gone">;
  readonly counters: MucMetrics;
  /** Runs a step of a room behind all earlier ones. Never rejects. */
  inTurn(room: string, step: () => Promise<void>): Promise<void>;
  recordOf(stored: StoredMucRoom): RoomRecord;
  /** Takes a session of this node out of its room. */
  remove(seat: Seat, about: { readonly notes: PresenceNotes }): void;
}

/** Does to the sessions of this node what follows from changes of rooms, whoever has made them. */
export class RoomChanges {
  readonly #deps: RoomChangesDeps;
  #isReviewing = false;
  /** True when all rooms are to be looked at once more. */
  #isDue = false;
  /** Monotonic milliseconds when all nodes were heard, or all rooms looked at, for the last time. */
  #sureMs = 0;

  constructor(deps: RoomChangesDeps) {
    this.#deps = deps;
  }

  /** Takes what another node tells. */
  heard({ news }: SentNews): void {
    switch (news.kind) {
      case "posted": {
        const live = this.#deps.rooms.get(news.room);
        if (live !== undefined) this.#deps.order.arrive(live, news);
        return;
      }
      case "role":
        return this.giveRole(news.room, news);
      case "changed": {
        const { room, codes, notes } = news;
        return void this.#reviewInTurn(room, { codes, notes });
      }
      case "destroyed":
        return this.clear(news.room, news);
    }
  }

  /**
   * Gives the seats of somebody under a nickname that are this node's another role. `none`: they leave.
   * @param about `account` who had the nickname. @default whoever has it
   */
  giveRole(
    room: string,
    { nick, account, role, notes }: {
      readonly nick: string;
      readonly account?: string;
      readonly role: Role;
      readonly notes: PresenceNotes;
    },
  ): void {
    const live = this.#deps.rooms.get(room);
    if (live === undefined) return;
    const holder = account ?? live.seats.entry(nick)?.account;
    for (const seat of this.#deps.rooms.own(live)) {
      if (seat.nick !== nick || accountOf(seat) !== holder || seat.role === role) continue;
      if (role === "none") this.#deps.remove(seat, { notes });
      else this.#deps.seats.put({ ...seat, role, changedMs: this.#deps.clock.wallMs() }, { notes });
    }
  }

  /**
   * Takes all sessions of this node out of a room that is gone.
   * @param about `creation` of the room. @default whichever they are in
   */
  clear(
    room: string,
    { creation, notes }: { readonly creation?: number; readonly notes: PresenceNotes },
  ): void {
    const live = this.#deps.rooms.get(room);
    if (live === undefined) return;
    // They are in another room of that name, which was made since.
    if (creation !== undefined && live.record !== undefined && live.record.creation !== creation) {
      return;
    }
    for (const seat of this.#deps.rooms.clear(live, notes)) {
      this.#deps.counters.leaves.inc();
      this.#deps.seats.gone(seat, { notes });
    }
  }

  /**
   * Reads a room that has changed, and does to the sessions of this node what follows. In the turn of
   * the room.
   */
  async review(
    room: string,
    { codes, notes }: { readonly codes: readonly string[]; readonly notes: PresenceNotes },
  ): Promise<void> {
    if (this.#deps.rooms.get(room)?.record === undefined) return; // nobody is here
    const stored = await this.#deps.service.store.read(room);
    const live = this.#deps.rooms.get(room);
    if (live?.record === undefined) return;
    if (stored?.creation !== live.record.creation) {
      return this.clear(room, { notes: { destroyed: {} } });
    }
    live.record = this.#deps.recordOf(stored);
    this.enforce(room, { codes, notes });
  }

  /** Gives the sessions of this node the affiliations and roles that the record of a room says. */
  enforce(
    room: string,
    { codes, notes }: { readonly codes: readonly string[]; readonly notes: PresenceNotes },
  ): void {
    const live = this.#deps.rooms.get(room);
    if (live?.record === undefined) return; // nobody is here
    const { affiliates, settings } = live.record;
    for (const seat of this.#deps.rooms.own(live)) {
      const affiliation = affiliationOf(affiliates, accountOf(seat));
      const role = roleAfter(seat, affiliation, settings);
      if (role === "none") {
        const wasConfigured = affiliation === seat.affiliation;
        const code = affiliation === "outcast" ? "301" : wasConfigured ? "322" : "321";
        this.#deps.remove(seat, { notes: { ...notes, affiliation, codes: [code] } });
        continue;
      }
      if (affiliation === seat.affiliation && role === seat.role) continue;
      const changed = { ...seat, affiliation, role, changedMs: this.#deps.clock.wallMs() };
      this.#deps.seats.put(changed, { notes: { ...notes, codes: [] } });
    }
    if (codes.length === 0) return;
    for (const seat of this.#deps.rooms.own(live)) {
      this.#deps.rooms.write(seat, statusMessage(live.jid, parseJid(seat.jid), codes));
    }
  }

  /**
   * Looks at all rooms with sessions of this node, one by one: changes of theirs may not have come, as
   * after a split or the death of a node.
   */
  reviewAll(): void {
    this.#isDue = true;
    this.#reviewIfDue();
  }

  /**
   * Looks at all rooms, if that could not be done, or has become due again meanwhile. A node that is
   * not heard may change rooms in the database, and ban somebody who is here.
   */
  look(nowMs: number): void {
    const { isWhole } = this.#deps.peers;
    const isLongUnsure = !isWhole && nowMs - this.#sureMs >= REVIEW_MS;
    if (isWhole || isLongUnsure) this.#sureMs = nowMs;
    if (isLongUnsure) this.#isDue = true;
    this.#reviewIfDue();
  }

  #reviewIfDue(): void {
    if (!this.#isDue || this.#isReviewing) return;
    this.#isDue = false;
    this.#isReviewing = true;
    this.#lookAtAll().finally(() => this.#isReviewing = false);
  }

  /** Never rejects. */
  async #lookAtAll(): Promise<void> {
    const { rooms, service: { store }, order, inTurn } = this.#deps;
    const all = rooms.all().filter(({ delivered }) => delivered !== undefined);
    if (all.length === 0) return;
    try {
      // While the database is away, nobody in a room is to wait for it.
      await store.read(all[0]!.jid.text);
    } catch {
      this.#isDue = true; // the database reports its own failures
      return;
    }
    for (const live of all) {
      if (live.delivered === undefined) continue;
      await inTurn(live.jid.text, () => order.catchUp(live));
      await this.#reviewInTurn(live.jid.text, { codes: [], notes: {} });
    }
  }

  /** Reviews a room behind all earlier steps. When that fails, all rooms are looked at later. */
  async #reviewInTurn(...[room, about]: Parameters<RoomChanges["review"]>): Promise<void> {
    await this.#deps.inTurn(room, async () => {
      try {
        await this.review(room, about);
      } catch (thrown) {
        this.#isDue = true;
        throw thrown;
      }
    });
  }
}
