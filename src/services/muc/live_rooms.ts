import type { MucAffiliate } from "../../storage/mod.ts";
import { FullJid, parseJid, readdress } from "../../xmpp/mod.ts";
import type { BareJid, Stanza, XmlElement } from "../../xmpp/mod.ts";
import type { GoneSeats } from "./gone_seats.ts";
import type { MucMetrics } from "./muc_metrics.ts";
import { accountOf, looksAlike, RoomSeats } from "./occupants.ts";
import type { Entry, Seat } from "./occupants.ts";
import type { RoomSettings } from "./room_settings.ts";
import { occupantIdElement, occupantPresence } from "./room_xml.ts";
import type { PresenceNotes } from "./room_xml.ts";

/** Seats of all nodes that one node knows at most. */
const MAX_SEATS = 200_000;

/** A room as this node has read it from the database. */
export interface RoomRecord {
  /** Tells the room from others of its name, as `StoredMucRoom.creation` does. */
  readonly creation: number;
  readonly settings: RoomSettings;
  readonly affiliates: readonly MucAffiliate[];
  /** Message that has set the subject, as it is stored; empty without one. */
  readonly subject: string;
}

/** A message on its way to the occupants. */
export interface PostedMessage {
  readonly id: string;
  readonly number: number | undefined;
  readonly sentAtMs: number;
  /** Text of the message, as it is stored. */
  readonly text: string;
}

/** The coming of a session of this node. */
export interface Arrival {
  /** Number up to which it got messages as history. */
  readonly number: number;
  /** Position among all who came. */
  readonly position: number;
  /** Makes a later message wait, while its old node has not said which of them came there. */
  readonly hold?: (message: PostedMessage) => void;
}

/** A room in which somebody is, anywhere. */
export interface LiveRoom {
  readonly jid: BareJid;
  readonly seats: RoomSeats;
  /** Set while sessions of this node are in the room. */
  record: RoomRecord | undefined;
  /** Number of the last message that sessions of this node got; undefined while none are here. */
  delivered: number | undefined;
  /** Messages that wait for earlier ones, by number. */
  readonly held: Map<number, PostedMessage>;
  /** Numbers that were passed over and may still come. */
  readonly passedOver: Set<number>;
  /** Messages that were delivered before the database had them: `arrivals` at that time, by id. */
  readonly unnumbered: Map<string, number>;
  /** Arrivals of the sessions here, by full JID. */
  readonly since: Map<string, Arrival>;
  /** Sessions that have come here so far. */
  arrivals: number;
  /** True while a step is planned that reads missing messages. */
  isCatchingUp: boolean;
  /** True when occupants may be there that were withdrawn: their node cannot be reached. */
  mayHaveOthers: boolean;
}

/**
 * A way to write to a session of this node.
 * @param follows true: a session that has moved to another node gets the stanza there
 */
export type DeliverTo = (
  to: FullJid,
  stanza: Stanza,
  about: { readonly follows: boolean },
) => void;

/** A change of what is seen in a room. */
interface Change {
  /** Nicknames that it concerns. */
  readonly nicks: readonly string[];
  apply(): void;
  readonly notes?: PresenceNotes | undefined;
  /** Content of the presence with which somebody leaves. */
  readonly payload?: readonly XmlElement[] | undefined;
  /** Session of this node that leaves the nickname that it had. It is always told. */
  readonly leaver?: Seat | undefined;
  /** Full JID of a session that is told otherwise. */
  readonly except?: string | undefined;
}

/**
 * The rooms in which somebody is, at any node. Sessions of this node are told of each change that
 * shows: who is seen under a nickname is compared before and after it.
 */
export class LiveRooms {
  readonly #rooms = new Map<string, LiveRoom>();
  /** Numbers of seats by bare JID and room. */
  readonly #ofAccount = new Map<string, Map<string, number>>();
  /** Sessions of this node with a seat, and the numbers of their seats, by full JID. */
  readonly #ownSessions = new Map<string, { readonly jid: FullJid; seats: number }>();
  readonly #process: number;
  readonly #deliver: DeliverTo;
  readonly #metrics: MucMetrics;
  readonly #gone: Pick<GoneSeats, "note">;
  #seats = 0;

  /** @param gone notes seats that are gone, or have another nickname */
  constructor(
    process: number,
    deliver: DeliverTo,
    metrics: MucMetrics,
    gone: Pick<GoneSeats, "note"> = { note() {} },
  ) {
    this.#process = process;
    this.#deliver = deliver;
    this.#metrics = metrics;
    this.#gone = gone;
  }

  /** Seats of all nodes. */
  get seats(): number {
    return this.#seats;
  }

  get isFull(): boolean {
    return this.#seats >= MAX_SEATS;
  }

  get size(): number {
    return this.#rooms.size;
  }

  all(): readonly LiveRoom[] {
    return [...this.#rooms.values()];
  }

  get(room: string): LiveRoom | undefined {
    return this.#rooms.get(room);
  }

  /** Rooms that an account is in. */
  countOf(account: string): number {
    return this.#ofAccount.get(account)?.size ?? 0;
  }

  /** Returns the seats in a room that are sessions of this node. */
  own(live: LiveRoom): readonly Seat[] {
    return live.seats.ofProcess(this.#process);
  }

  /** True while sessions of this node are in a room. */
  hasOwn(live: LiveRoom): boolean {
    return live.seats.hasProcess(this.#process);
  }

  /** Sessions of this node that are in any room. Callers may change rooms meanwhile. */
  ownSessions(): readonly FullJid[] {
    return Array.from(this.#ownSessions.values(), ({ jid }) => jid);
  }

  /** Returns the seat of a session of this node in a room. */
  ownSeat(room: string, jid: string): Seat | undefined {
    const seat = this.#rooms.get(room)?.seats.of(jid);
    return seat?.process === this.#process ? seat : undefined;
  }

  /** Returns all seats of a process. */
  ofProcess(process: number): readonly Seat[] {
    return this.all().flatMap(({ seats }) => seats.ofProcess(process));
  }

  /** Returns all seats of a session. */
  ofSession(jid: string): readonly Seat[] {
    const rooms = this.#ofAccount.get(accountOf({ jid }))?.keys() ?? [];
    return [...rooms].flatMap((room) => this.#rooms.get(room)?.seats.of(jid) ?? []);
  }

  /**
   * Puts a seat in, and shows it. A seat past the bound of all seats is left out. One of another node
   * may take the place of this node's seat of the same session.
   */
  put(seat: Seat, change: Pick<Change, "notes" | "except"> = {}): void {
    const live = this.#open(seat.room);
    const before = live.seats.of(seat.jid);
    if (before === undefined && this.isFull) return this.#closeIfEmpty(live);
    const nicks = before === undefined || before.nick === seat.nick
      ? [seat.nick]
      : [before.nick, seat.nick];
    const isOwnMove = before !== undefined && before.nick !== seat.nick &&
      before.process === this.#process;
    this.#change(live, {
      ...change,
      nicks,
      ...before !== undefined && before.nick !== seat.nick && {
        notes: {
          ...change.notes,
          codes: ["303", ...change.notes?.codes ?? []],
          newNick: seat.nick,
        },
      },
      ...isOwnMove && { leaver: before },
      apply: () => {
        live.seats.put(seat);
        this.#count(seat, 1);
        if (before !== undefined) this.#count(before, -1);
      },
    });
    if (before !== undefined && before.nick !== seat.nick) this.#gone.note(before);
    if (before?.process === this.#process && seat.process !== this.#process) {
      live.since.delete(seat.jid);
      this.#left(live);
    }
  }

  /** Puts a session of this node in, and tells it who is there (XEP-0045 §7.2.2). */
  enter(seat: Seat, codes: readonly string[]): void {
    this.put(seat, { except: seat.jid });
    const live = this.#rooms.get(seat.room);
    if (live === undefined) return;
    const own = live.seats.entry(seat.nick);
    for (const entry of live.seats.entries()) {
      if (entry.nick !== seat.nick) this.#show(live, entry, [seat], {});
    }
    if (own !== undefined) this.#show(live, own, [seat], { codes });
  }

  /** Takes a seat out, and shows that. */
  remove(
    room: string,
    jid: string,
    { notes, payload }: Pick<Change, "notes" | "payload"> = {},
  ): Seat | undefined {
    const live = this.#rooms.get(room);
    const seat = live?.seats.of(jid);
    if (live === undefined || seat === undefined) return undefined;
    const isOwn = seat.process === this.#process;
    this.#change(live, {
      nicks: [seat.nick],
      notes,
      payload,
      ...isOwn && { leaver: seat },
      apply: () => {
        live.seats.remove(jid);
        live.since.delete(jid);
        this.#count(seat, -1);
      },
    });
    this.#gone.note(seat);
    if (isOwn) this.#left(live);
    this.#closeIfEmpty(live);
    return seat;
  }

  /** Takes all sessions of this node out of a room, each of which is told of itself alone. */
  clear(live: LiveRoom, notes: PresenceNotes): readonly Seat[] {
    const own = this.own(live);
    for (const seat of own) {
      const entry = live.seats.entry(seat.nick)!; // the seat is there
      this.#hide(live, { ...entry, seats: [seat] }, [seat], { notes });
      live.seats.remove(seat.jid);
      this.#count(seat, -1);
    }
    this.#left(live);
    this.#closeIfEmpty(live);
    return own;
  }

  /**
   * Notes that messages up to a number came to a newcomer as history. Returns the room if the newcomer
   * is the first session of this node in it.
   */
  noteHistory(seat: Seat, number: number): LiveRoom | undefined {
    const live = this.#rooms.get(seat.room);
    if (live === undefined) return undefined;
    live.since.set(seat.jid, { number, position: ++live.arrivals });
    if (live.delivered !== undefined) return undefined;
    live.delivered = number;
    return live;
  }

  /** Tells a session of this node that the seat is gone which it had at another node. */
  tellLost(seat: Seat): void {
    this.write(
      seat,
      occupantPresence({
        from: new FullJid(parseJid(seat.room).bare, seat.nick),
        to: parseJid(seat.jid),
        type: "unavailable",
        payload: [],
        standing: seat,
        jid: seat.jid,
        notes: { codes: ["333", "110"] },
      }),
    );
  }

  /**
   * Takes no seat that is older than another one of its session, and under another nickname. Sessions
   * that have come here, its own too, may have been shown the nickname at other nodes.
   */
  passOver(seat: Seat): void {
    this.#gone.note(seat);
    const live = this.#rooms.get(seat.room);
    if (live === undefined) return;
    for (const each of this.own(live)) this.tellGone(each, [seat.nick]);
  }

  /** Tells a session of this node which of these nicknames nobody has any longer. */
  tellGone({ room, jid }: Seat, nicks: Iterable<string>): void {
    const live = this.#rooms.get(room);
    const seat = live?.seats.of(jid);
    if (live === undefined || seat === undefined) return;
    for (const nick of nicks) {
      if (live.seats.entry(nick) !== undefined) continue;
      this.write(
        seat,
        occupantPresence({
          from: new FullJid(live.jid, nick),
          to: parseJid(jid),
          type: "unavailable",
          payload: [],
          standing: { affiliation: "none", role: "none" },
        }),
        { follows: false },
      );
    }
  }

  /** Writes to the session of a seat of this node. */
  write(seat: Seat, stanza: Stanza, { follows = true } = {}): void {
    const to = parseJid(seat.jid);
    if (!(to instanceof FullJid)) return; // seats have full JIDs
    this.#metrics.deliveries.inc();
    this.#deliver(to, stanza, { follows });
  }

  #change(live: LiveRoom, change: Change): void {
    const before = change.nicks.map((nick) => live.seats.entry(nick));
    change.apply();
    const after = change.nicks.map((nick) => live.seats.entry(nick));
    const viewers = this.own(live).filter(({ jid }) => jid !== change.except);
    for (const [i, entry] of before.entries()) {
      if (entry === undefined) continue;
      const isGone = after[i]?.account !== entry.account;
      const { leaver } = change;
      const isLeft = leaver !== undefined && leaver.nick === entry.nick &&
        accountOf(leaver) === entry.account;
      if (!isGone && !isLeft) continue;
      const others = viewers.filter(({ jid }) => jid !== leaver?.jid);
      const told = [...isGone ? others : [], ...isLeft ? [leaver] : []];
      this.#hide(live, entry, told, change);
    }
    const moved = change.leaver && live.seats.of(change.leaver.jid);
    for (const [i, entry] of after.entries()) {
      if (entry === undefined) continue;
      // A session that takes a nickname of the same person's other device sees itself under it. One that
      // gives up such a nickname sees that device under it: it was told that nobody has the nickname.
      const isOwn = moved !== undefined && accountOf(moved) === entry.account;
      const isSame = looksAlike(before[i], entry);
      if (isSame && !isOwn) continue;
      const { newNick: _, codes = [], ...notes } = change.notes ?? {};
      const kept = codes.filter((code) => code !== "303" && code !== "307");
      this.#show(live, entry, isSame ? [moved!] : viewers, { ...notes, codes: kept });
    }
  }

  #show(live: LiveRoom, entry: Entry, viewers: readonly Seat[], notes: PresenceNotes): void {
    this.#tell(live, entry, viewers, { notes, payload: entry.shown.payload });
  }

  #hide(
    live: LiveRoom,
    entry: Entry,
    viewers: readonly Seat[],
    { notes = {}, payload = [] }: Pick<Change, "notes" | "payload">,
  ): void {
    this.#tell(live, entry, viewers, { notes, payload, type: "unavailable" });
  }

  #tell(
    live: LiveRoom,
    entry: Entry,
    viewers: readonly Seat[],
    { notes, payload, type }: {
      readonly notes: PresenceNotes;
      readonly payload: readonly XmlElement[];
      readonly type?: "unavailable";
    },
  ): void {
    if (viewers.length === 0) return;
    const { shown, account, nick } = entry;
    const from = new FullJid(live.jid, nick);
    const settings = live.record?.settings;
    const occupant = settings && occupantIdElement(settings.secret, account);
    const made = new Map<string, Stanza>();
    for (const viewer of viewers) {
      const isSelf = viewer.nick === nick && accountOf(viewer) === account;
      const seesJid = isSelf || viewer.role === "moderator" || settings?.anonymous === false;
      const codes = [...notes.codes ?? [], ...isSelf ? ["110"] : []];
      // Status codes of entering and renaming by the room are for the session itself.
      const key = `${isSelf} ${seesJid}`;
      let stanza = made.get(key);
      if (stanza === undefined) {
        const kept = isSelf ? codes : codes.filter((code) => !SELF_CODES.has(code));
        made.set(
          key,
          stanza = occupantPresence({
            from,
            to: parseJid(viewer.jid),
            type,
            payload,
            standing: shown,
            jid: seesJid ? shown.jid : undefined,
            notes: { ...notes, codes: kept },
            occupant,
          }),
        );
      }
      // A session that has moved is shown the room by its new node, which may know more than this one.
      const isOut = type === "unavailable" && notes.newNick === undefined;
      const follows = isSelf && isOut && (codes.length > 1 || notes.destroyed !== undefined);
      this.write(viewer, readdress(stanza, parseJid(viewer.jid)), { follows });
    }
  }

  #open(room: string): LiveRoom {
    let live = this.#rooms.get(room);
    if (live === undefined) {
      live = {
        jid: parseJid(room).bare,
        seats: new RoomSeats(),
        record: undefined,
        delivered: undefined,
        held: new Map(),
        passedOver: new Set(),
        unnumbered: new Map(),
        since: new Map(),
        arrivals: 0,
        isCatchingUp: false,
        mayHaveOthers: false,
      };
      this.#rooms.set(room, live);
    }
    return live;
  }

  /** Forgets what only sessions of this node need, once the last of them has left. */
  #left(live: LiveRoom): void {
    if (this.hasOwn(live)) return;
    live.record = undefined;
    live.delivered = undefined;
    live.held.clear();
    live.passedOver.clear();
    live.unnumbered.clear();
    live.since.clear();
  }

  #closeIfEmpty(live: LiveRoom): void {
    if (live.seats.size === 0) this.#rooms.delete(live.jid.text);
  }

  #count(seat: Seat, by: 1 | -1): void {
    this.#seats += by;
    const account = accountOf(seat);
    let rooms = this.#ofAccount.get(account);
    if (rooms === undefined) this.#ofAccount.set(account, rooms = new Map());
    const count = (rooms.get(seat.room) ?? 0) + by;
    if (count > 0) rooms.set(seat.room, count);
    else rooms.delete(seat.room);
    if (rooms.size === 0) this.#ofAccount.delete(account);
    if (seat.process === this.#process) this.#countOwn(seat, by);
  }

  #countOwn({ jid }: Seat, by: 1 | -1): void {
    let session = this.#ownSessions.get(jid);
    if (session === undefined) {
      session = { jid: parseJid(jid) as FullJid, seats: 0 }; // seats have full JIDs
      this.#ownSessions.set(jid, session);
    }
    session.seats += by;
    if (session.seats === 0) this.#ownSessions.delete(jid);
  }

  /** Lets a record be used that was read for a session that is about to enter. */
  remember(room: string, record: RoomRecord): LiveRoom {
    const live = this.#open(room);
    live.record = record;
    return live;
  }
}

/** Status codes that only the session itself is told of. */
const SELF_CODES: ReadonlySet<string> = new Set(["100", "110", "170", "201", "210"]);
