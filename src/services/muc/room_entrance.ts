import type { BareJid, StanzaErrorCondition, XmlElement } from "../../xmpp/mod.ts";
import { FullJid, stanzaElement } from "../../xmpp/mod.ts";
import type { RoomStanza } from "../rooms/mod.ts";
import type { EmptyRooms } from "./empty_rooms.ts";
import type { GoneSeats } from "./gone_seats.ts";
import type { Handovers } from "./handovers.ts";
import { readHistoryRequest } from "./history_request.ts";
import type { LiveRooms, RoomRecord } from "./live_rooms.ts";
import type { MessageOrder } from "./message_order.ts";
import type { MucMetrics } from "./muc_metrics.ts";
import type { MucOptions } from "./muc_options.ts";
import type { MucServerDeps } from "./muc_ports.ts";
import * as NS from "./namespaces.ts";
import { accountOf, freeNick, MAX_TAKEOVERS, precedes } from "./occupants.ts";
import type { Seat } from "./occupants.ts";
import type { Peers } from "./peers.ts";
import type { SharedSeats } from "./shared_seats.ts";
import type { RoomChanges } from "./room_changes.ts";
import type { RoomHistory } from "./room_history.ts";
import type { RoomRecords } from "./room_records.ts";
import { affiliationOf, entryRefusal, entryRole, hasPlace, roleAfter } from "./room_standing.ts";
import {
  readMessage,
  setsSubject,
  shownElements,
  subjectMessage,
  writeSubject,
} from "./room_xml.ts";

/** Bytes of a nickname: it is part of every message. */
const MAX_NICK_BYTES = 256;
/** Milliseconds after which every node knows whether somebody is in a room that was made. */
const ABANDONED_MS = 60_000;

/** Collaborators of `RoomEntrance`. */
export interface RoomEntranceDeps<Taken extends RoomStanza>
  extends Pick<MucServerDeps<Taken>, "localHost" | "process" | "isHere" | "clock"> {
  readonly service: { readonly options: Pick<MucOptions, "maxUserConferences"> };
  readonly rooms: LiveRooms;
  readonly gone: Pick<GoneSeats, "nicks">;
  readonly records: Pick<RoomRecords, "read" | "findOrMake">;
  readonly history: Pick<RoomHistory, "read" | "give">;
  readonly order: Pick<MessageOrder, "catchUpSoon">;
  readonly handovers: Pick<Handovers, "begin">;
  readonly peers: Pick<Peers, "met">;
  readonly seats: Pick<SharedSeats, "put">;
  readonly changes: Pick<RoomChanges, "clear" | "enforce">;
  readonly empty: Pick<EmptyRooms, "remove">;
  readonly counters: Pick<MucMetrics, "joins">;
  /** Answers a stanza with an error, and perhaps a text for people. */
  refuse(taken: Taken, condition: StanzaErrorCondition, text?: string): void;
}

/** A session that wants to enter a room. */
interface Newcomer {
  readonly room: BareJid;
  readonly jid: FullJid;
  readonly nick: string;
  readonly presence: XmlElement;
  /** The element in its presence that says so. */
  readonly join: XmlElement;
}

/**
 * Lets sessions of this node into rooms (XEP-0045 §7.2), and takes their presence and nicknames while
 * they are there. Each step runs in the turn of its room.
 */
export class RoomEntrance<Taken extends RoomStanza> {
  readonly #deps: RoomEntranceDeps<Taken>;

  constructor(deps: RoomEntranceDeps<Taken>) {
    this.#deps = deps;
  }

  /**
   * Takes presence of a session: it enters a room, or changes its presence or its nickname there.
   *
   * @param taken is for an occupant's full JID
   * @throws CausewayError `storage/…`
   */
  async take(taken: Taken): Promise<void> {
    const { stanza } = taken;
    const { from, to } = stanza;
    const { rooms, seats, isHere, refuse } = this.#deps;
    const room = to.bare.text;
    if (!(from instanceof FullJid) || !isHere(from)) return refuse(taken, "not-allowed");
    const presence = stanzaElement(stanza);
    const nick = (to as FullJid).resourcepart; // others are refused
    if (new TextEncoder().encode(nick).length > MAX_NICK_BYTES) {
      return refuse(taken, "not-acceptable");
    }
    const own = rooms.ownSeat(room, from.text);
    const join = presence.child("x", NS.MUC);
    // One that has a seat may have lost track of the room, or have left it at another node.
    if (join !== undefined) {
      return await this.#enter(taken, { room: to.bare, jid: from, nick, presence, join });
    }
    if (own === undefined) return refuse(taken, "not-acceptable");
    const changed: Seat = {
      ...own,
      nick,
      payload: shownElements(presence, room),
      changedMs: this.#nowMs(),
    };
    if (this.#isTaken(room, nick, from.bare.text)) return refuse(taken, "conflict");
    const { settings } = rooms.get(room)!.record!; // a session of this node is there
    if (!hasPlace(changed.affiliation, settings, this.#occupantsBeside(room, from, nick))) {
      return refuse(taken, "service-unavailable");
    }
    seats.put(changed);
    taken.settle();
  }

  /**
   * Takes over the seat of a session that has come from another node, if both are still there. False
   * if they are not. In the turn of the room.
   *
   * The session is shown who is in the room, and who has left a moment ago: its old node may have known
   * less, and has written nothing of that since the session left.
   *
   * @throws CausewayError `storage/…`
   */
  async takeOver(room: string, jid: FullJid): Promise<boolean> {
    const { rooms, records, changes, handovers, process, localHost, isHere } = this.#deps;
    const seatElsewhere = () => {
      const seat = rooms.get(room)?.seats.of(jid.text);
      return seat?.process === process || !isHere(jid) ? undefined : seat;
    };
    if (seatElsewhere() === undefined) return false;
    const found = await records.read(room);
    const seat = seatElsewhere();
    if (found === undefined || seat === undefined) return false;
    const { seats } = rooms.remember(room, found.record);
    // Its old node may not have known who had the nickname before.
    const isTaken = seats.rivals(seat.nick, accountOf(seat)).some((each) => precedes(each, seat));
    const own = {
      ...seat,
      nick: isTaken ? freeNick(seat, seats) : seat.nick,
      host: localHost,
      process,
    };
    this.#noteHistory(own, found.lastNumber);
    handovers.begin(own, seat.process);
    this.#claim(own, { codes: isTaken ? ["210"] : [] });
    // Its old node may not have heard of a ban, and this node heard of it when it had no seat.
    changes.enforce(room, { codes: [], notes: {} });
    return true;
  }

  /**
   * Takes a seat of this node anew, whose session has come back. Another node may have taken it over
   * meanwhile, of which this one has not heard.
   */
  takeAgain(seat: Seat): void {
    this.#claim(seat, { codes: [] });
  }

  /** Makes a seat this node's, and shows its session who is in the room and who has left it. */
  #claim(seat: Seat, about: { readonly codes: readonly string[] }): void {
    const { rooms, gone, seats } = this.#deps;
    // News of another node about its former seat must not count any more.
    const own = { ...seat, joinedMs: seat.joinedMs + 1, changedMs: this.#nowMs() };
    seats.put(own, about);
    rooms.tellGone(own, gone.nicks(seat.room));
  }

  async #enter(taken: Taken, newcomer: Newcomer): Promise<void> {
    const { rooms, records, history, peers, seats, changes, empty, counters, isHere, refuse } =
      this.#deps;
    const { jid } = newcomer;
    const room = newcomer.room.text;
    await peers.met();
    // So that no room is made for somebody who may not enter it.
    if (!isHere(jid)) return taken.settle();
    if (this.#isPastBounds(newcomer)) return refuse(taken, "resource-constraint");
    const found = await records.findOrMake(newcomer.room, jid.bare.text);
    if ("error" in found) return refuse(taken, found.error, found.text);
    const { record, isNew, lastNumber } = found;
    const messages = await history.read(room);
    // From here on nothing is waited for: what was found out stays true.
    const { creation = record.creation } = rooms.get(room)?.record ?? {};
    if (creation !== record.creation) {
      // Sessions of this node are in an earlier room of that name: its end was not heard of yet.
      changes.clear(room, { creation, notes: { destroyed: {} } });
    }
    const refusal = this.#refusalOf(newcomer, record);
    if (refusal !== undefined || !isHere(jid)) {
      // Nobody else could ever enter a locked room.
      if (isNew || this.#isAbandoned(room, record)) empty.remove(room, record.creation);
      return refusal === undefined ? taken.settle() : refuse(taken, refusal);
    }
    const seat = this.#seatFor(newcomer, record);
    const codes = [
      ...record.settings.anonymous ? [] : ["100"],
      ...isNew ? ["201"] : [],
      ...seat.nick === newcomer.nick ? [] : ["210"],
    ];
    rooms.remember(room, record);
    counters.joins.inc();
    seats.put(seat, { codes });
    this.#noteHistory(seat, Math.max(lastNumber, messages.at(-1)?.number ?? 0));
    history.give(seat, messages, readHistoryRequest(newcomer.join, seat.changedMs));
    // The history leaves out a subject that was set after the room was read.
    const later = messages.findLast(({ number, stanza }) =>
      number > lastNumber && setsSubject(readMessage(stanza))
    );
    const subject = later === undefined
      ? record.subject
      : writeSubject(later.stanza, { room: newcomer.room.text, sentAtMs: later.sentAtMs });
    rooms.write(seat, subjectMessage(newcomer.room, jid, subject));
    taken.settle();
  }

  /** Returns the error that keeps a session out of a room; undefined when it may enter. */
  #refusalOf(
    newcomer: Newcomer,
    { affiliates, settings }: RoomRecord,
  ): StanzaErrorCondition | undefined {
    const { room: { text: room }, jid, nick, join } = newcomer;
    const account = jid.bare.text;
    const refusal = entryRefusal(affiliationOf(affiliates, account), settings, {
      password: join.child("password", NS.MUC)?.text,
      occupants: this.#occupantsBeside(room, jid, nick),
    });
    if (refusal !== undefined) return refusal;
    if (this.#isTaken(room, nick, account)) return "conflict";
    return this.#isPastBounds(newcomer) ? "resource-constraint" : undefined;
  }

  /** True for a session without a seat whose person has too many rooms, or whose node too many seats. */
  #isPastBounds({ room: { text: room }, jid }: Newcomer): boolean {
    const { service: { options }, rooms } = this.#deps;
    const account = jid.bare.text;
    const seats = rooms.get(room)?.seats;
    if (seats?.of(jid.text) !== undefined) return false; // it takes no further seat
    if (rooms.isFull) return true;
    return seats?.has(account) !== true && rooms.countOf(account) >= options.maxUserConferences;
  }

  /** True for a locked room that nobody is in: the node of its owner has died. */
  #isAbandoned(room: string, { creation, settings }: RoomRecord): boolean {
    const isOld = this.#nowMs() - creation >= ABANDONED_MS;
    return settings.isLocked && isOld && this.#deps.rooms.get(room) === undefined;
  }

  /**
   * Returns the seat of a session that enters. One that is there already keeps its role, unless its
   * affiliation has changed.
   */
  #seatFor({ room, jid, nick, presence }: Newcomer, { affiliates, settings }: RoomRecord): Seat {
    const { rooms, localHost, process } = this.#deps;
    const affiliation = affiliationOf(affiliates, jid.bare.text);
    const before = rooms.ownSeat(room.text, jid.text);
    const seats = rooms.get(room.text)?.seats;
    const known = seats?.of(jid.text);
    // Nobody sees those who want the nickname of a session that was before them.
    const isContested = before !== undefined && seats!.rivals(nick, jid.bare.text).length > 0;
    const nowMs = this.#nowMs();
    return {
      room: room.text,
      jid: jid.text,
      nick: isContested ? freeNick({ jid: jid.text, nick }, seats!) : nick,
      affiliation,
      role: before === undefined
        ? entryRole(affiliation, settings)
        : roleAfter(before, affiliation, settings),
      payload: shownElements(presence, room.text),
      // The session may have left the seat that is known of it, at another node, which is not to end the
      // new one. That node may have a clock that is ahead.
      joinedMs: Math.max(nowMs, (known?.joinedMs ?? 0) + MAX_TAKEOVERS + 1),
      changedMs: nowMs,
      host: localHost,
      process,
    };
  }

  #noteHistory(seat: Seat, number: number): void {
    const begun = this.#deps.rooms.noteHistory(seat, number);
    if (begun !== undefined) this.#deps.order.catchUpSoon(begun);
  }

  /** Returns the nicknames in a room; 0 for a session that would take no further one. */
  #occupantsBeside(room: string, jid: FullJid, nick: string): number {
    const seats = this.#deps.rooms.get(room)?.seats;
    if (seats === undefined || seats.entry(nick)?.account === jid.bare.text) return 0;
    const own = seats.of(jid.text);
    const isAlone = own !== undefined && seats.entry(own.nick)?.seats.length === 1;
    return isAlone ? 0 : seats.nickCount; // it gives up the one that it has
  }

  #isTaken(room: string, nick: string, account: string): boolean {
    const entry = this.#deps.rooms.get(room)?.seats.entry(nick);
    return entry !== undefined && entry.account !== account;
  }

  #nowMs(): number {
    return this.#deps.clock.wallMs();
  }
}
