import { CausewayError, describeError, RateLimit } from "../../base/mod.ts";
import { randomHex } from "../../base/mod.ts";
import type { MucMessage, StoredMucRoom } from "../../storage/mod.ts";
import type { BareJid, Stanza, StanzaErrorCondition, XmlElement } from "../../xmpp/mod.ts";
import {
  buildStanza,
  element,
  errorReply,
  FullJid,
  hasMoreElements,
  isReply,
  MAX_ID_BYTES,
  parseJid,
  STANZA_ERROR_NAMESPACE,
  stanzaElement,
  stanzaId,
  stanzaSource,
  Turns,
} from "../../xmpp/mod.ts";
import type { IqAnswer } from "../iq_service.ts";
import { chooseHistory, readHistoryRequest } from "./history_request.ts";
import { Invitations } from "./invitations.ts";
import { LiveRooms } from "./live_rooms.ts";
import type { LiveRoom, RoomRecord } from "./live_rooms.ts";
import { KEPT_MESSAGES, MessageOrder } from "./message_order.ts";
import { mucMetrics } from "./muc_metrics.ts";
import type { MucMetrics } from "./muc_metrics.ts";
import type { MucServerDeps, MucStanza } from "./muc_ports.ts";
import { MucRequests } from "./muc_requests.ts";
import * as NS from "./namespaces.ts";
import type { SentNews } from "./news.ts";
import { accountOf } from "./occupants.ts";
import type { Seat } from "./occupants.ts";
import { Peers } from "./peers.ts";
import { affiliationOf, entryRefusal, entryRole, roleAfter } from "./room_standing.ts";
import type { Role } from "./room_standing.ts";
import { writeSettings } from "./room_settings.ts";
import {
  numberedMessage,
  occupantIdElement,
  ownElements,
  pastMessage,
  statusMessage,
  writeMessage,
} from "./room_xml.ts";
import type { PresenceNotes } from "./room_xml.ts";
import { WaitingMessages } from "./waiting_messages.ts";

/** Bytes of a stanza for a room. */
const MAX_BYTES = 65_536;
/** Elements and attributes of a stanza for a room. */
const MAX_ELEMENTS = 2_000;
/** Bytes of the presence of an occupant, which every node keeps. */
const MAX_PRESENCE_BYTES = 4_096;
/** Bytes of a nickname: it is part of every message. */
const MAX_NICK_BYTES = 256;
/** Stanzas for all rooms that wait for their turn. */
const MAX_PENDING = 1_000;
/** Their bytes. */
const MAX_PENDING_BYTES = 16_777_216;
/** Those of one person. */
const MAX_PENDING_PER_SENDER = 50;
/** Milliseconds that a message waits for the database, until occupants get it without a number. */
const STORE_PATIENCE_MS = 2_000;
/** Milliseconds without its session after which a seat of this node ends. */
const ABSENT_MS = 60_000;

/** A room that somebody may enter. */
interface FoundRoom {
  readonly record: RoomRecord;
  /** True when it was made for them. */
  readonly isNew: boolean;
  /** Number of the room's last message; 0 when it is not known. */
  readonly lastNumber: number;
}

/**
 * The Multi-User Chat rooms of one domain (XEP-0045). Every node serves all of them.
 *
 * The database holds rooms and their last messages, and numbers those. The sessions that are in a
 * room are known to all nodes: each node tells the others of its own.
 */
export class MucServer<Taken extends MucStanza> {
  readonly #deps: MucServerDeps<Taken>;
  readonly #metrics: MucMetrics;
  readonly #rooms: LiveRooms;
  readonly #order: MessageOrder;
  readonly #peers: Peers;
  readonly #requests: MucRequests;
  readonly #invitations: Invitations;
  readonly #waiting = new WaitingMessages<Taken>();
  readonly #turns = new Turns();
  readonly #rate: RateLimit;
  readonly #pending = new Map<string, number>();
  /** Monotonic milliseconds since when a seat of this node has no session here, by full JID. */
  readonly #absent = new Map<string, number>();
  #pendingCount = 0;
  #pendingBytes = 0;
  #sequence = 0;
  /** True while messages go on without the database. */
  #isStoreDown = false;
  #isReviewing = false;

  constructor(deps: MucServerDeps<Taken>) {
    this.#deps = deps;
    const { service, process, clock, metrics } = deps;
    const counters = this.#metrics = mucMetrics(metrics);
    const { messagesPerSec } = service.options;
    this.#rate = new RateLimit({ perSec: messagesPerSec, burst: 5 * messagesPerSec }, clock);
    const rooms = this.#rooms = new LiveRooms(process, (to, stanza) => {
      // The session has moved to another node, which will tell of it.
      if (!deps.deliver(to, stanza) && !deps.isHere(to)) deps.send(stanza);
    }, counters);
    this.#order = new MessageOrder({
      store: service.store,
      rooms,
      metrics: counters,
      clock,
      inTurn: (room, step) => this.#inTurn(room, step),
    });
    this.#peers = new Peers({
      ...deps,
      rooms,
      counters,
      heard: (news) => this.#heard(news),
      peerBack: () => this.#reviewAll(),
      looked: () => this.#looked(),
    });
    this.#requests = new MucRequests({
      service,
      rooms,
      counters,
      changed: (room, { codes, notes }) => {
        this.#peers.tell({ kind: "changed", room, codes, notes });
        return this.#review(room, { codes, notes });
      },
      destroyed: (room, notes) => {
        this.#peers.tell({ kind: "destroyed", room, notes });
        this.#clear(room, notes);
      },
      giveRole: (room, about) => {
        this.#peers.tell({ kind: "role", room, ...about });
        this.#giveRole(room, about);
      },
    });
    this.#invitations = new Invitations({
      service,
      rooms,
      send: (stanza) => deps.send(stanza),
      changed: (room) => {
        const about = { codes: [], notes: {} };
        this.#peers.tell({ kind: "changed", room, ...about });
        return this.#review(room, about);
      },
    });
    metrics.gauge({
      name: "causeway_muc_pending",
      help: "Stanzas to Multi-User Chat rooms that wait for their turn",
    }, () => this.#pendingCount);
    metrics.gauge({
      name: "causeway_muc_waiting_messages",
      help: "Messages of Multi-User Chat rooms that occupants have and the database has not",
    }, () => this.#waiting.size);
    metrics.gauge({
      name: "causeway_muc_occupants",
      help: "Sessions at all nodes that are in Multi-User Chat rooms, once for each room",
    }, () => rooms.seats);
    metrics.gauge({
      name: "causeway_muc_rooms",
      help: "Multi-User Chat rooms in which somebody is, at any node",
    }, () => rooms.size);
  }

  start(): void {
    this.#peers.start();
  }

  /** True for the domain of the rooms. */
  serves(domainpart: string): boolean {
    return domainpart === this.#deps.service.domain;
  }

  /** Waits until all that was taken is done. */
  async settled(): Promise<void> {
    await this.#turns.settled();
  }

  /** Ends the timers. Messages that the database has not got stay unsettled. */
  async close(): Promise<void> {
    this.#order.close();
    this.#peers.close();
    await this.#turns.settled();
    for (const room of this.#waiting.rooms) {
      while (this.#waiting.first(room) !== undefined) this.#waiting.shift(room);
    }
  }

  /**
   * Takes a stanza for a room, or for the service. Returns `delivered` when it has been taken over,
   * `ignored` when it needs no answer, else the error for its sender.
   */
  take(taken: Taken): "delivered" | "ignored" | StanzaErrorCondition {
    const { stanza } = taken;
    if (this.#isNews(stanza)) {
      this.#peers.took(stanza);
      taken.settle();
      return "delivered";
    }
    const refusal = this.#refusalOf(stanza);
    if (refusal === undefined) {
      this.#begin(taken);
      return "delivered";
    }
    if (refusal !== "ignored") this.#metrics.refused.inc();
    return refusal;
  }

  /** Takes over the seats of a session that has come from another node. */
  arrived(jid: FullJid): void {
    for (const { room, process } of this.#rooms.ofSession(jid.text)) {
      if (process !== this.#deps.process) this.#inTurn(room, () => this.#takeOver(room, jid));
    }
  }

  /** True for news of another node: nobody else writes from the local host of a datacenter. */
  #isNews({ kind, type, from, to }: Stanza): boolean {
    return kind === "message" && type === "headline" && to.localpart === "" &&
      from === from.bare && from.localpart === "" && this.#deps.isLocalHost(from.domainpart);
  }

  /** Returns why a stanza is not taken, before anything is computed from it. */
  #refusalOf(
    { kind, type, to, from, bytes }: Stanza,
  ): "ignored" | StanzaErrorCondition | undefined {
    const sender = from.bare.text;
    if (kind === "presence") {
      if (type !== "available" && type !== "unavailable" && type !== "error") return "ignored";
      // A leave always finds a place, so that no occupant stays behind.
      if (type === "unavailable" || type === "error") return undefined;
      if (!(to instanceof FullJid)) return to.localpart === "" ? "ignored" : "jid-malformed";
    }
    if (kind === "message" && type === "error") return undefined;
    if (from.localpart === "" && kind !== "iq") return "not-allowed";
    if (to.localpart === "" && kind !== "iq") return "service-unavailable";
    if (to.localpart === "" && (to instanceof FullJid || isReplyType(type))) {
      return isReplyType(type) ? "ignored" : "item-not-found";
    }
    if (bytes.length > MAX_BYTES) return "policy-violation";
    if (kind === "presence" && bytes.length > MAX_PRESENCE_BYTES) return "policy-violation";
    if (kind === "message" && !this.#rate.take(sender)) {
      this.#metrics.limited.inc();
      return "resource-constraint";
    }
    const hasPlace = this.#pendingCount < MAX_PENDING &&
      this.#pendingBytes + bytes.length <= MAX_PENDING_BYTES &&
      (this.#pending.get(sender) ?? 0) < MAX_PENDING_PER_SENDER;
    if (!hasPlace) return "resource-constraint";
    return hasMoreElements(stanzaSource(bytes), MAX_ELEMENTS) ? "policy-violation" : undefined;
  }

  #begin(taken: Taken): void {
    const { stanza } = taken;
    const sender = stanza.from.bare.text;
    const { length } = stanza.bytes;
    this.#pendingCount++;
    this.#pendingBytes += length;
    this.#pending.set(sender, (this.#pending.get(sender) ?? 0) + 1);
    this.#turns.run(stanza.to.bare.text, () => this.#handle(taken))
      .catch((thrown) => this.#fail(taken, thrown))
      .finally(() => {
        this.#pendingCount--;
        this.#pendingBytes -= length;
        const left = this.#pending.get(sender)! - 1; // set above
        if (left === 0) this.#pending.delete(sender);
        else this.#pending.set(sender, left);
      });
  }

  #inTurn(room: string, step: () => Promise<void>): void {
    this.#turns.run(room, step).catch((thrown) => this.#note(thrown));
  }

  async #handle(taken: Taken): Promise<void> {
    const { stanza } = taken;
    switch (stanza.kind) {
      case "presence":
        if (stanza.type === "available") return await this.#present(taken);
        if (stanza.type === "unavailable") this.#leave(stanza);
        else this.#unreachable(stanza);
        return taken.settle();
      case "message":
        if (stanza.type === "error") {
          this.#unreachable(stanza);
          return taken.settle();
        }
        return await this.#message(taken);
      case "iq":
        if (isReply(stanza)) {
          this.#passReply(stanza);
          return taken.settle();
        }
        return await this.#request(taken);
    }
  }

  // ---- entering and leaving ----------------------------------------------------------------

  async #present(taken: Taken): Promise<void> {
    const { stanza } = taken;
    const { from, to } = stanza;
    const room = to.bare.text;
    if (!(from instanceof FullJid) || !this.#deps.isHere(from)) {
      return this.#refuse(taken, "not-allowed");
    }
    const presence = stanzaElement(stanza);
    const nick = (to as FullJid).resourcepart; // others are refused
    if (new TextEncoder().encode(nick).length > MAX_NICK_BYTES) {
      return this.#refuse(taken, "not-acceptable");
    }
    const own = this.#ownSeat(room, from.text);
    const join = presence.child("x", NS.MUC);
    if (own === undefined && join === undefined) return this.#refuse(taken, "not-acceptable");
    if (join !== undefined && (own === undefined || own.nick === nick)) {
      return await this.#enter(taken, { presence, join, nick });
    }
    const changed: Seat = {
      ...own!, // one of the two is there
      nick,
      payload: ownElements(presence, room),
      changedMs: this.#nowMs(),
    };
    if (this.#isTaken(room, nick, from.bare.text)) return this.#refuse(taken, "conflict");
    this.#peers.put(changed);
    taken.settle();
  }

  async #enter(
    taken: Taken,
    { presence, join, nick }: {
      readonly presence: XmlElement;
      readonly join: XmlElement;
      readonly nick: string;
    },
  ): Promise<void> {
    const { stanza: { from, to } } = taken;
    const { options } = this.#deps.service;
    const account = from.bare.text;
    const room = to.bare.text;
    const found = await this.#readOrMake(to.bare, account);
    if (typeof found === "string") return this.#refuse(taken, found);
    const { record, isNew, lastNumber } = found;
    const { settings } = record;
    const affiliation = affiliationOf(record.affiliates, account);
    const history = await this.#historyOf(room);
    // From here on nothing is waited for: what was found out stays true.
    const before = this.#ownSeat(room, from.text);
    const seats = this.#rooms.get(room)?.seats;
    const refusal = entryRefusal(affiliation, settings, {
      password: join.child("password", NS.MUC)?.text,
      occupants: before === undefined ? seats?.nickCount ?? 0 : 0,
    });
    if (refusal !== undefined) return this.#refuse(taken, refusal);
    if (this.#isTaken(room, nick, account)) return this.#refuse(taken, "conflict");
    const isInside = seats?.has(account) === true;
    if (!isInside && this.#rooms.countOf(account) >= options.maxUserConferences) {
      return this.#refuse(taken, "resource-constraint");
    }
    if (this.#rooms.isFull) return this.#refuse(taken, "resource-constraint");
    if (!this.#deps.isHere(from as FullJid)) return taken.settle(); // it has ended meanwhile
    const nowMs = this.#nowMs();
    const seat: Seat = {
      room,
      jid: from.text,
      nick,
      affiliation,
      role: before?.role ?? entryRole(affiliation, settings),
      payload: ownElements(presence, room),
      joinedMs: before?.joinedMs ?? nowMs,
      changedMs: nowMs,
      host: this.#deps.localHost,
      process: this.#deps.process,
    };
    this.#rooms.remember(room, record);
    const codes = [...settings.anonymous ? [] : ["100"], ...isNew ? ["201"] : []];
    this.#metrics.joins.inc();
    this.#peers.put(seat, { codes });
    this.#rooms.noteHistory(seat, Math.max(lastNumber, history.at(-1)?.number ?? 0));
    const wanted = chooseHistory(history, {
      maxStanzas: options.historySize,
      ...limitedTo(readHistoryRequest(join, nowMs), options.historySize),
    });
    for (const { number, sentAtMs, stanza: text } of wanted) {
      const past = pastMessage(text, { room, number, sentAtMs });
      this.#rooms.write(seat, buildStanza(past, { to: from }));
    }
    this.#rooms.write(seat, subjectMessage(to.bare, from, record.subject));
    taken.settle();
  }

  /** Returns a room that is there, or makes it; the condition that refuses it. */
  async #readOrMake(
    jid: BareJid,
    account: string,
  ): Promise<FoundRoom | StanzaErrorCondition> {
    const { store, options } = this.#deps.service;
    const room = jid.text;
    let stored: StoredMucRoom | undefined;
    try {
      stored = await store.read(room);
    } catch (thrown) {
      // People may still come while the database is away, if somebody is here.
      const { record } = this.#rooms.get(room) ?? {};
      if (record === undefined || !isStorageFailure(thrown)) throw thrown;
      this.#note(thrown);
      return { record, isNew: false, lastNumber: 0 };
    }
    if (stored !== undefined) {
      return { record: this.#recordOf(stored), isNew: false, lastNumber: stored.lastNumber };
    }
    if (new TextEncoder().encode(jid.localpart).length > options.maxRoomId) return "not-acceptable";
    const settings = { ...options.defaultRoom, isLocked: true, secret: randomHex(16) };
    const affiliates = [{ jid: account, affiliation: "owner" as const, reason: "" }];
    const config = writeSettings(settings);
    const content = { config, isListed: settings.public, affiliates };
    const version = await store.create(room, content);
    if (version === undefined) return await this.#readOrMake(jid, account); // others made it
    this.#metrics.created.inc();
    const record = { version, settings, affiliates, subject: "" };
    return { record, isNew: true, lastNumber: version }; // numbers begin there, too
  }

  #recordOf(stored: StoredMucRoom): RoomRecord {
    const { version, affiliates, subject } = stored;
    return { version, affiliates, subject, settings: this.#requests.settingsOf(stored) };
  }

  /** Returns what a room keeps. None while the database is away. */
  async #historyOf(room: string): Promise<readonly MucMessage[]> {
    try {
      return await this.#deps.service.store.messages(room, {
        limit: Math.max(1, this.#deps.service.options.historySize),
      });
    } catch (thrown) {
      if (!isStorageFailure(thrown)) throw thrown;
      this.#note(thrown);
      return [];
    }
  }

  #leave({ from, to, bytes }: Stanza): void {
    const room = to.bare.text;
    const seat = this.#ownSeat(room, from.text);
    if (seat === undefined) return;
    const isSmall = bytes.length <= MAX_PRESENCE_BYTES;
    const payload = isSmall ? ownElements(parseOf(bytes), room) : [];
    this.#remove(seat, { payload });
  }

  #remove(
    seat: Seat,
    about: { readonly notes?: PresenceNotes; readonly payload?: Seat["payload"] },
  ): void {
    const live = this.#rooms.get(seat.room);
    const isLocked = live?.record?.settings.isLocked === true;
    const isTemporary = live?.record?.settings.persistent === false;
    this.#peers.remove(seat, about);
    const isEmpty = live?.seats.size === 0 && !live.mayHaveOthers;
    if (isEmpty && (isTemporary || isLocked)) {
      this.#inTurn(seat.room, () => this.#removeEmpty(seat.room));
    }
  }

  /** Removes a room that is not to stay when nobody is in it. */
  async #removeEmpty(room: string): Promise<void> {
    const { store } = this.#deps.service;
    const stored = await store.read(room);
    if (stored === undefined || this.#rooms.get(room) !== undefined) return;
    const { persistent, isLocked } = this.#requests.settingsOf(stored);
    if (persistent && !isLocked) return;
    if (!await store.destroy(room, stored.version)) return;
    this.#metrics.destroyed.inc();
    // Somebody may have entered it elsewhere a moment ago.
    this.#peers.tell({ kind: "destroyed", room, notes: { destroyed: {} } });
  }

  /** Ends the seat of a session that could not be reached. */
  #unreachable({ from, to }: Stanza): void {
    const seat = this.#ownSeat(to.bare.text, from.text);
    if (seat === undefined || this.#deps.isHere(from as FullJid)) return;
    this.#remove(seat, { notes: { codes: ["333"] } });
  }

  async #takeOver(room: string, jid: FullJid): Promise<void> {
    const { service: { store }, process, localHost } = this.#deps;
    const stored = await store.read(room);
    if (stored === undefined) return;
    const seat = this.#rooms.get(room)?.seats.of(jid.text);
    if (seat === undefined || seat.process === process || !this.#deps.isHere(jid)) return;
    this.#rooms.remember(room, this.#recordOf(stored));
    const own = { ...seat, process, host: localHost, changedMs: this.#nowMs() };
    this.#peers.put(own);
    this.#rooms.noteHistory(own, stored.lastNumber);
  }

  #isTaken(room: string, nick: string, account: string): boolean {
    const entry = this.#rooms.get(room)?.seats.entry(nick);
    return entry !== undefined && entry.account !== account;
  }

  #ownSeat(room: string, jid: string): Seat | undefined {
    const seat = this.#rooms.get(room)?.seats.of(jid);
    return seat?.process === this.#deps.process ? seat : undefined;
  }

  // ---- messages ----------------------------------------------------------------------------

  async #message(taken: Taken): Promise<void> {
    const { stanza } = taken;
    const { from, to, type } = stanza;
    const room = to.bare.text;
    const message = stanzaElement(stanza);
    const seat = this.#ownSeat(room, from.text);
    if (type !== "groupchat" && !(to instanceof FullJid)) {
      const outcome = await this.#invitations.take(message, { from, room: to.bare, seat });
      return outcome === "sent" ? taken.settle() : this.#refuse(taken, outcome);
    }
    if (seat === undefined) return this.#refuse(taken, "not-acceptable");
    const live = this.#rooms.get(room)!; // the seat is there
    const settings = live.record!.settings; // a session of this node is there
    if (to instanceof FullJid) {
      if (type === "groupchat") return this.#refuse(taken, "bad-request");
      if (!settings.allowPrivateMessages && seat.role !== "moderator") {
        return this.#refuse(taken, "forbidden");
      }
      return this.#whisper(taken, { live, seat, message });
    }
    if (seat.role === "visitor") return this.#refuse(taken, "forbidden");
    const isSubject = message.child("subject") !== undefined &&
      message.child("body") === undefined && message.child("thread") === undefined;
    const maySetSubject = settings.allowChangeSubject || seat.role === "moderator";
    if (isSubject && !maySetSubject) return this.#refuse(taken, "forbidden");
    await this.#post(taken, { live, seat, message, isSubject });
  }

  /** Sends a private message to all sessions of an occupant. */
  #whisper(
    taken: Taken,
    { live, seat, message }: {
      readonly live: LiveRoom;
      readonly seat: Seat;
      readonly message: XmlElement;
    },
  ): void {
    const { resourcepart } = taken.stanza.to as FullJid;
    const target = live.seats.entry(resourcepart);
    if (target === undefined) return this.#refuse(taken, "item-not-found");
    const room = live.jid.text;
    const { name, attributes } = message;
    const { secret } = live.record!.settings;
    const content = [
      ...ownElements(message, room),
      occupantIdElement(secret, accountOf(seat)),
      element("x", { xmlns: NS.MUC_USER }),
    ];
    let left = target.seats.length;
    const settled = () => {
      if (--left === 0) taken.settle();
    };
    for (const { jid } of target.seats) {
      const from = new FullJid(live.jid, seat.nick);
      const private_ = buildStanza(element(name, attributes, ...content), {
        from,
        to: parseJid(jid),
      });
      this.#deps.send(private_, settled);
    }
  }

  async #post(
    taken: Taken,
    { live, seat, message, isSubject }: {
      readonly live: LiveRoom;
      readonly seat: Seat;
      readonly message: XmlElement;
      readonly isSubject: boolean;
    },
  ): Promise<void> {
    const room = live.jid.text;
    const occupant = occupantIdElement(live.record!.settings.secret, accountOf(seat));
    const text = writeMessage(message, { from: `${room}/${seat.nick}`, room, occupant });
    const id = `${this.#deps.process.toString(36)}-${(++this.#sequence).toString(36)}`;
    const posted = { id, number: undefined, sentAtMs: this.#nowMs(), text };
    const subject = isSubject ? text : undefined;
    // A subject waits for nothing: without the database it is refused.
    const mayWait = !isSubject;
    let number: number | undefined | "late";
    if (mayWait && (this.#isStoreDown || this.#waiting.isWaiting(room))) number = "late";
    else {
      try {
        number = await this.#store(room, { ...posted, ...subject !== undefined && { subject } }, {
          mayBeLate: mayWait,
        });
      } catch (thrown) {
        if (!mayWait || !isStorageFailure(thrown)) throw thrown;
        this.#note(thrown);
        number = "late";
      }
    }
    if (number === "late") {
      this.#isStoreDown = true;
      const waiting = { taken, sender: accountOf(seat), message: posted };
      if (!this.#waiting.add(room, waiting)) return this.#refuse(taken, "resource-constraint");
      this.#metrics.messages.inc();
      this.#tellPosted(live, posted);
      return;
    }
    if (number === undefined) {
      this.#refuse(taken, "item-not-found");
      return this.#clear(room, { destroyed: {} });
    }
    this.#metrics.messages.inc();
    if (subject !== undefined && live.record !== undefined) {
      live.record = { ...live.record, subject };
    }
    this.#tellPosted(live, { ...posted, number });
    if (subject !== undefined) {
      this.#peers.tell({ kind: "changed", room, codes: [], notes: {} }, this.#peers.hostsOf(room));
    }
    taken.settle();
  }

  /** Gives a message to the database. `late`: it may take it or not. */
  async #store(
    room: string,
    { id, sentAtMs, text, subject }: {
      readonly id: string;
      readonly sentAtMs: number;
      readonly text: string;
      readonly subject?: string;
    },
    { mayBeLate }: { readonly mayBeLate: boolean },
  ): Promise<number | undefined | "late"> {
    const { service: { store }, clock } = this.#deps;
    const keep = Math.max(KEPT_MESSAGES, this.#deps.service.options.historySize);
    const posting = store.post(room, {
      id,
      sentAtMs,
      stanza: text,
      keep,
      ...subject !== undefined && { subject },
    });
    if (!mayBeLate) return await posting;
    const { promise: late, resolve } = Promise.withResolvers<"late">();
    const cancel = clock.after(STORE_PATIENCE_MS, () => resolve("late"));
    try {
      const outcome = await Promise.race([posting, late]);
      // It goes to the database again, under the same id.
      if (outcome === "late") posting.catch((thrown) => this.#note(thrown));
      return outcome;
    } finally {
      cancel();
    }
  }

  #tellPosted(live: LiveRoom, message: Parameters<MessageOrder["arrive"]>[1]): void {
    const room = live.jid.text;
    this.#peers.tell({ kind: "posted", room, ...message }, this.#peers.hostsOf(room));
    this.#order.arrive(live, message);
  }

  /** Gives waiting messages to the database, in the order in which they were written. */
  async #storeWaiting(room: string): Promise<void> {
    for (;;) {
      const first = this.#waiting.first(room);
      if (first === undefined) return;
      const { message, taken } = first;
      const number = await this.#store(room, message, { mayBeLate: true });
      if (number === "late") return;
      this.#isStoreDown = false;
      this.#waiting.shift(room);
      if (number === undefined) {
        this.#refuse(taken, "item-not-found");
        continue;
      }
      const live = this.#rooms.get(room);
      if (live === undefined) {
        this.#peers.tell({ kind: "posted", room, ...message, number });
      } else this.#tellPosted(live, { ...message, number });
      taken.settle();
    }
  }

  // ---- requests ----------------------------------------------------------------------------

  async #request(taken: Taken): Promise<void> {
    const { stanza } = taken;
    const { from, to } = stanza;
    const id = stanzaId(stanza);
    const iq = stanzaElement(stanza);
    const [payload] = iq.elements;
    if (payload === undefined || iq.elements.length > 1 || (id?.length ?? 0) > MAX_ID_BYTES) {
      return this.#refuse(taken, "bad-request");
    }
    if (to instanceof FullJid) return this.#passRequest(taken, { iq, payload, to });
    const answer = await this.#requests.answer({
      to: to.bare,
      account: from.bare.text,
      type: stanza.type === "set" ? "set" : "get",
      payload,
    });
    this.#finish(taken, answer);
  }

  /** Passes a request on to an occupant, or answers a ping to oneself (XEP-0410). */
  #passRequest(
    taken: Taken,
    { iq, payload, to }: {
      readonly iq: XmlElement;
      readonly payload: XmlElement;
      readonly to: FullJid;
    },
  ): void {
    const { from } = taken.stanza;
    const seats = this.#rooms.get(to.bare.text)?.seats;
    const seat = seats?.of(from.text);
    if (seats === undefined || seat === undefined) return this.#refuse(taken, "not-acceptable");
    if (payload.namespace === NS.PING && to.resourcepart === seat.nick) {
      return this.#finish(taken, "empty");
    }
    const target = seats.entry(to.resourcepart);
    if (target === undefined) return this.#refuse(taken, "item-not-found");
    // A vCard is the account's, not the session's (XEP-0045 §17.4).
    const jid = payload.namespace === NS.VCARD ? target.account : target.shown.jid;
    const request = buildStanza(iq, { from: new FullJid(to.bare, seat.nick), to: parseJid(jid) });
    this.#deps.send(request, () => taken.settle());
  }

  /** Passes an occupant's answer on to the one who has asked. */
  #passReply(stanza: Stanza): void {
    const { from, to } = stanza;
    if (!(to instanceof FullJid)) return;
    const seats = this.#rooms.get(to.bare.text)?.seats;
    const asker = seats?.entry(to.resourcepart);
    const seat = from instanceof FullJid
      ? seats?.of(from.text)
      : seats?.all().find((each) => accountOf(each) === from.text);
    if (asker === undefined || seat === undefined) return;
    const iq = stanzaElement(stanza);
    for (const { jid } of asker.seats) {
      this.#deps.send(
        buildStanza(iq, { from: new FullJid(to.bare, seat.nick), to: parseJid(jid) }),
      );
    }
  }

  #finish(taken: Taken, answer: IqAnswer): void {
    if (answer !== "empty" && "error" in answer) return this.#refuse(taken, answer.error);
    const payload = answer !== "empty" && "payload" in answer ? answer.payload : undefined;
    const { stanza } = taken;
    const id = stanzaId(stanza);
    const result = element("iq", { id, type: "result" }, payload);
    this.#deps.answer(buildStanza(result, { from: stanza.to, to: stanza.from }), taken);
  }

  // ---- changes -----------------------------------------------------------------------------

  /** Takes what another node tells. */
  #heard({ news }: SentNews): void {
    switch (news.kind) {
      case "posted": {
        const live = this.#rooms.get(news.room);
        if (live !== undefined) this.#order.arrive(live, news);
        return;
      }
      case "role":
        return this.#giveRole(news.room, news);
      case "changed": {
        const { room, codes, notes } = news;
        return this.#inTurn(room, () => this.#review(room, { codes, notes }));
      }
      case "destroyed":
        return this.#clear(news.room, news.notes);
    }
  }

  /** Gives the seats of a nickname that are this node's another role. `none`: they leave. */
  #giveRole(
    room: string,
    { nick, role, notes }: {
      readonly nick: string;
      readonly role: Role;
      readonly notes: PresenceNotes;
    },
  ): void {
    const seats = this.#rooms.get(room)?.seats.entry(nick)?.seats ?? [];
    for (const seat of seats) {
      if (seat.process !== this.#deps.process || seat.role === role) continue;
      if (role === "none") this.#remove(seat, { notes });
      else this.#peers.put({ ...seat, role, changedMs: this.#nowMs() }, { notes });
    }
  }

  /** Takes all sessions of this node out of a room that is gone. */
  #clear(room: string, notes: PresenceNotes): void {
    const live = this.#rooms.get(room);
    if (live === undefined) return;
    for (const seat of this.#rooms.clear(live, notes)) {
      this.#metrics.leaves.inc();
      this.#peers.gone(seat, { notes });
    }
  }

  /**
   * Reads a room that has changed, and does to the sessions of this node what follows. In the turn of
   * the room.
   */
  async #review(
    room: string,
    { codes, notes }: { readonly codes: readonly string[]; readonly notes: PresenceNotes },
  ): Promise<void> {
    if (this.#rooms.get(room)?.record === undefined) return; // nobody is here
    const stored = await this.#deps.service.store.read(room);
    const live = this.#rooms.get(room);
    if (live?.record === undefined) return;
    if (stored === undefined) return this.#clear(room, { destroyed: {} });
    const record = this.#recordOf(stored);
    live.record = record;
    const { settings } = record;
    for (const seat of this.#rooms.own(live)) {
      const affiliation = affiliationOf(record.affiliates, accountOf(seat));
      const role = roleAfter(seat, affiliation, settings);
      if (role === "none") {
        const wasConfigured = affiliation === seat.affiliation;
        const code = affiliation === "outcast" ? "301" : wasConfigured ? "322" : "321";
        this.#remove(seat, { notes: { ...notes, affiliation, codes: [code] } });
        continue;
      }
      if (affiliation === seat.affiliation && role === seat.role) continue;
      const changed = { ...seat, affiliation, role, changedMs: this.#nowMs() };
      this.#peers.put(changed, { notes: { ...notes, codes: [] } });
    }
    if (codes.length === 0) return;
    for (const seat of this.#rooms.own(live)) {
      this.#rooms.write(seat, statusMessage(live.jid, parseJid(seat.jid), codes));
    }
  }

  /** Looks after a split, or a lost link, at all rooms with sessions of this node, one by one. */
  #reviewAll(): void {
    if (this.#isReviewing) return;
    this.#isReviewing = true;
    const work = async () => {
      for (const live of this.#rooms.all()) {
        if (live.delivered === undefined) continue;
        await this.#turns.run(live.jid.text, async () => {
          await this.#order.catchUp(live);
          await this.#review(live.jid.text, { codes: [], notes: {} });
        }).catch((thrown) => this.#note(thrown));
      }
    };
    work().finally(() => this.#isReviewing = false);
  }

  /** Each second: messages are tried again, and seats end whose session is long gone. */
  #looked(): void {
    for (const room of this.#waiting.rooms) this.#inTurn(room, () => this.#storeWaiting(room));
    if (this.#waiting.size === 0) this.#isStoreDown = false;
    const nowMs = this.#deps.clock.monotonicMs();
    const absent = new Set<string>();
    for (const seat of this.#rooms.ofProcess(this.#deps.process)) {
      const jid = parseJid(seat.jid);
      if (!(jid instanceof FullJid) || this.#deps.isHere(jid)) continue;
      absent.add(seat.jid);
      const since = this.#absent.get(seat.jid);
      if (since === undefined) this.#absent.set(seat.jid, nowMs);
      else if (nowMs - since >= ABSENT_MS) this.#remove(seat, { notes: { codes: ["333"] } });
    }
    for (const jid of this.#absent.keys()) if (!absent.has(jid)) this.#absent.delete(jid);
  }

  // ---- endings -----------------------------------------------------------------------------

  #refuse(taken: Taken, condition: StanzaErrorCondition): void {
    this.#metrics.refused.inc();
    // Presence that finds no recipient has no answer elsewhere. A full room does (§7.2.9).
    const error = taken.stanza.kind === "presence" && condition === "service-unavailable"
      ? fullRoomError(taken.stanza)
      : errorReply(taken.stanza, condition);
    if (error === undefined) taken.settle();
    else this.#deps.answer(error, taken);
  }

  #fail(taken: Taken, thrown: unknown): void {
    this.#note(thrown);
    this.#refuse(taken, isStorageFailure(thrown) ? "resource-constraint" : "internal-server-error");
  }

  #note(thrown: unknown): void {
    this.#metrics.failures.inc();
    const fields = { error: describeError(thrown) };
    // The database reports its own failures, once and not for each stanza.
    if (isStorageFailure(thrown)) this.#deps.logger.debug("muc.no-storage", fields);
    else this.#deps.logger.error("muc.bug", fields);
  }

  #nowMs(): number {
    return this.#deps.clock.wallMs();
  }
}

function fullRoomError(presence: Stanza): Stanza {
  const error = element(
    "error",
    { type: "wait" },
    element("service-unavailable", { xmlns: STANZA_ERROR_NAMESPACE }),
  );
  const answer = element("presence", { type: "error", id: stanzaId(presence) }, error);
  return buildStanza(answer, { from: presence.to, to: presence.from });
}

function isReplyType(type: string): boolean {
  return type === "result" || type === "error";
}

function isStorageFailure(thrown: unknown): boolean {
  return thrown instanceof CausewayError && thrown.code.startsWith("storage/");
}

function parseOf(bytes: Uint8Array): XmlElement {
  return stanzaElement({ bytes } as Stanza);
}

/** Returns a wish for history within the bound of the service. */
function limitedTo(
  wish: ReturnType<typeof readHistoryRequest>,
  historySize: number,
): ReturnType<typeof readHistoryRequest> {
  return { ...wish, maxStanzas: Math.min(wish.maxStanzas ?? historySize, historySize) };
}

/** Returns the message that tells a newcomer the subject; an empty one without any (§7.2.15). */
function subjectMessage(room: BareJid, to: Stanza["to"], subject: string): Stanza {
  if (subject === "") {
    const message = element("message", { type: "groupchat" }, element("subject"));
    return buildStanza(message, { from: room, to });
  }
  return buildStanza(numberedMessage(subject, { room: room.text, number: undefined }), { to });
}
