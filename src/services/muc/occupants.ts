import type { XmlElement } from "../../xmpp/mod.ts";
import type { Standing } from "./room_standing.ts";

/** Bytes of the presence of an occupant, which every node keeps. */
export const MAX_PRESENCE_BYTES = 4_096;

/** Times that a session which has left a seat at one node is seen to have taken it along to others. */
export const MAX_TAKEOVERS = 20;

/** A session in a room, as all nodes know it. Several sessions of one person may share a nickname. */
export interface Seat extends Standing {
  /** Bare JID of the room. */
  readonly room: string;
  /** Full JID. */
  readonly jid: string;
  readonly nick: string;
  /** Child elements of the session's presence, without those of Multi-User Chat. */
  readonly payload: readonly XmlElement[];
  /**
   * Wall-clock milliseconds when the session came. Each node that takes the seat over from another one
   * makes it one later: of two seats of one session the later one counts. One that the session enters
   * anew is later by more than `MAX_TAKEOVERS`.
   */
  readonly joinedMs: number;
  /** Wall-clock milliseconds when anything of it changed for the last time. They grow with each change. */
  readonly changedMs: number;
  /** Local host of the datacenter, and incarnation of the process, that has the session. */
  readonly host: string;
  readonly process: number;
}

/** Everybody who is seen in a room under one nickname: sessions of one person. */
export interface Entry {
  readonly nick: string;
  /** Bare JID. */
  readonly account: string;
  /** In the order in which they came. */
  readonly seats: readonly Seat[];
  /** The seat whose presence others see: the one that was changed last. */
  readonly shown: Seat;
}

/** Returns the bare JID of a seat. */
export function accountOf({ jid }: Pick<Seat, "jid">): string {
  return jid.slice(0, jid.indexOf("/"));
}

/** True for a seat that keeps its nickname when `other`, of somebody else, has it too. Pure. */
export function precedes(seat: Seat, other: Seat): boolean {
  if (seat.joinedMs !== other.joinedMs) return seat.joinedMs < other.joinedMs;
  return seat.jid < other.jid;
}

/**
 * True for a seat that counts although another node tells of `other`, of the same session. Two nodes may
 * have taken over one seat, as the second had not heard of the first. Pure.
 */
export function supersedes(seat: Seat, other: Seat): boolean {
  if (seat.joinedMs !== other.joinedMs) return seat.joinedMs > other.joinedMs;
  if (seat.changedMs !== other.changedMs) return seat.changedMs > other.changedMs;
  return seat.process > other.process;
}

/**
 * The seats in one room, of sessions everywhere.
 *
 * Two people may have one nickname for a moment, as two datacenters gave it away at once or during a
 * split. Then the one who had it first is seen under it, and the other one is not seen.
 */
export class RoomSeats {
  readonly #byJid = new Map<string, Seat>();
  readonly #byNick = new Map<string, Set<string>>();
  /** By full JID, for each process: a node asks for its own seats at each message. */
  readonly #byProcess = new Map<number, Map<string, Seat>>();

  get size(): number {
    return this.#byJid.size;
  }

  /** Nicknames that are taken. */
  get nicks(): Iterable<string> {
    return this.#byNick.keys();
  }

  get nickCount(): number {
    return this.#byNick.size;
  }

  /** All seats. Callers may change the room meanwhile. */
  all(): readonly Seat[] {
    return [...this.#byJid.values()];
  }

  /** All seats of a process. Callers may change the room meanwhile. */
  ofProcess(process: number): readonly Seat[] {
    return [...this.#byProcess.get(process)?.values() ?? []];
  }

  /** True when a process has seats here. */
  hasProcess(process: number): boolean {
    return this.#byProcess.has(process);
  }

  /** Local hosts of the datacenters that have seats here. */
  hosts(): ReadonlySet<string> {
    const hosts = new Set<string>();
    for (const seats of this.#byProcess.values()) {
      for (const { host } of seats.values()) {
        hosts.add(host);
        break; // the others are at the same host
      }
    }
    return hosts;
  }

  of(jid: string): Seat | undefined {
    return this.#byJid.get(jid);
  }

  /** True when any session of an account is here. */
  has(account: string): boolean {
    for (const seat of this.#byJid.values()) if (accountOf(seat) === account) return true;
    return false;
  }

  /** Returns who is seen under a nickname. */
  entry(nick: string): Entry | undefined {
    const jids = this.#byNick.get(nick);
    if (jids === undefined) return undefined;
    const all = [...jids].map((jid) => this.#byJid.get(jid)!) // both maps have them
      .toSorted((one, other) => precedes(one, other) ? -1 : 1);
    const account = accountOf(all[0]!);
    const seats = all.filter((seat) => accountOf(seat) === account);
    const shown = seats.reduce((newest, seat) => seat.changedMs > newest.changedMs ? seat : newest);
    return { nick, account, seats, shown };
  }

  /** Returns the bare JID of who is seen under the nickname of a seat once that has gone. */
  heirOf(seat: Seat): string | undefined {
    const [jid, ...more] = [...this.#byNick.get(seat.nick) ?? []].filter((each) =>
      each !== seat.jid
    );
    if (jid === undefined) return undefined;
    const all = [jid, ...more].map((each) => this.#byJid.get(each)!); // both maps have them
    return accountOf(all.reduce((first, each) => precedes(each, first) ? each : first));
  }

  /** Returns all who are seen, by nickname. */
  entries(): readonly Entry[] {
    return [...this.#byNick.keys()].map((nick) => this.entry(nick)!);
  }

  /** Returns the seats of other people that have a nickname, seen or not. */
  rivals(nick: string, account: string): readonly Seat[] {
    return [...this.#byNick.get(nick) ?? []].map((jid) => this.#byJid.get(jid)!)
      .filter((seat) => accountOf(seat) !== account);
  }

  /** Puts a seat in, in the place of an earlier one of the same session. */
  put(seat: Seat): void {
    this.remove(seat.jid);
    this.#byJid.set(seat.jid, seat);
    const jids = this.#byNick.get(seat.nick);
    if (jids === undefined) this.#byNick.set(seat.nick, new Set([seat.jid]));
    else jids.add(seat.jid);
    const seats = this.#byProcess.get(seat.process);
    if (seats === undefined) this.#byProcess.set(seat.process, new Map([[seat.jid, seat]]));
    else seats.set(seat.jid, seat);
  }

  remove(jid: string): Seat | undefined {
    const seat = this.#byJid.get(jid);
    if (seat === undefined) return undefined;
    this.#byJid.delete(jid);
    const jids = this.#byNick.get(seat.nick)!; // `put` has made it
    jids.delete(jid);
    if (jids.size === 0) this.#byNick.delete(seat.nick);
    const seats = this.#byProcess.get(seat.process)!;
    seats.delete(jid);
    if (seats.size === 0) this.#byProcess.delete(seat.process);
    return seat;
  }
}

/** True when others see no difference between two presences of a nickname. Pure. */
export function looksAlike(one: Entry | undefined, other: Entry | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  const [before, after] = [one.shown, other.shown];
  return one.account === other.account && before.affiliation === after.affiliation &&
    before.role === after.role && before.jid === after.jid && before.payload === after.payload;
}

/** UTF-16 units of a nickname that a new one keeps. */
const KEPT_NICK_UNITS = 200;

/**
 * Returns a nickname that nobody else in the room has, made from that of a seat. Other devices of the
 * same person share it. Pure.
 */
export function freeNick(seat: Pick<Seat, "nick" | "jid">, room: RoomSeats): string {
  // Half of a character is none: an address cannot have it.
  const kept = seat.nick.slice(0, KEPT_NICK_UNITS).replace(/[\ud800-\udbff]$/, "");
  for (let number = 2;; number++) {
    const free = `${kept} ${number}`;
    if (room.rivals(free, accountOf(seat)).length === 0) return free;
  }
}
