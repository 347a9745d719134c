import type { StoredMucRoom } from "../../storage/mod.ts";
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
import { affiliationOf, roleAfter } from "./room_standing.ts";
import type { Role } from "./room_standing.ts";
import { statusMessage } from "./room_xml.ts";
import type { PresenceNotes } from "./room_xml.ts";

/** Collaborators of `RoomChanges`. */
export interface RoomChangesDeps
  extends Pick<MucServerDeps<RoomStanza>, "service" | "process" | "clock"> {
  readonly rooms: LiveRooms;
  readonly order: MessageOrder;
  readonly peers: Peers;
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
        return void this.#deps.inTurn(room, () => this.review(room, { codes, notes }));
      }
      case "destroyed":
        return this.clear(news.room, news.notes);
    }
  }

  /** Gives the seats of a nickname that are this node's another role. `none`: they leave. */
  giveRole(
    room: string,
    { nick, role, notes }: {
      readonly nick: string;
      readonly role: Role;
      readonly notes: PresenceNotes;
    },
  ): void {
    const seats = this.#deps.rooms.get(room)?.seats.entry(nick)?.seats ?? [];
    for (const seat of seats) {
      if (seat.process !== this.#deps.process || seat.role === role) continue;
      if (role === "none") this.#deps.remove(seat, { notes });
      else this.#deps.peers.put({ ...seat, role, changedMs: this.#deps.clock.wallMs() }, { notes });
    }
  }

  /** Takes all sessions of this node out of a room that is gone. */
  clear(room: string, notes: PresenceNotes): void {
    const live = this.#deps.rooms.get(room);
    if (live === undefined) return;
    for (const seat of this.#deps.rooms.clear(live, notes)) {
      this.#deps.counters.leaves.inc();
      this.#deps.peers.gone(seat, { notes });
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
    if (stored === undefined) return this.clear(room, { destroyed: {} });
    const record = this.#deps.recordOf(stored);
    live.record = record;
    const { settings } = record;
    for (const seat of this.#deps.rooms.own(live)) {
      const affiliation = affiliationOf(record.affiliates, accountOf(seat));
      const role = roleAfter(seat, affiliation, settings);
      if (role === "none") {
        const wasConfigured = affiliation === seat.affiliation;
        const code = affiliation === "outcast" ? "301" : wasConfigured ? "322" : "321";
        this.#deps.remove(seat, { notes: { ...notes, affiliation, codes: [code] } });
        continue;
      }
      if (affiliation === seat.affiliation && role === seat.role) continue;
      const changed = { ...seat, affiliation, role, changedMs: this.#deps.clock.wallMs() };
      this.#deps.peers.put(changed, { notes: { ...notes, codes: [] } });
    }
    if (codes.length === 0) return;
    for (const seat of this.#deps.rooms.own(live)) {
      this.#deps.rooms.write(seat, statusMessage(live.jid, parseJid(seat.jid), codes));
    }
  }

  /** Looks after a split, or a lost link, at all rooms with sessions of this node, one by one. */
  reviewAll(): void {
    if (this.#isReviewing) return;
    this.#isReviewing = true;
    const work = async () => {
      for (const live of this.#deps.rooms.all()) {
        if (live.delivered === undefined) continue;
        await this.#deps.inTurn(live.jid.text, async () => {
          await this.#deps.order.catchUp(live);
          await this.review(live.jid.text, { codes: [], notes: {} });
        });
      }
    };
    work().finally(() => this.#isReviewing = false);
  }
}
