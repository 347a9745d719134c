import type { CancelTimer } from "../../base/mod.ts";
import { describeError } from "../../base/mod.ts";
import type { Stanza } from "../../xmpp/mod.ts";
import { hasMoreElements, parseJid, stanzaElement, stanzaSource } from "../../xmpp/mod.ts";
import type { RoomStanza } from "../rooms/mod.ts";
import type { LiveRooms } from "./live_rooms.ts";
import type { MucMetrics } from "./muc_metrics.ts";
import type { MucServerDeps } from "./muc_ports.ts";
import type { News, RoomChangeNews, SentNews } from "./news.ts";
import { newsStanza, readNews, SEATS_IN_PART } from "./news.ts";
import type { Seat } from "./occupants.ts";
import { SharedSeats } from "./shared_seats.ts";
import type { SharedSeatsDeps } from "./shared_seats.ts";

/** Milliseconds between two looks at who lives. */
const LOOK_MS = 1_000;
/** Looks in a row at which a process must be missing: Redis may have lost its lease for a moment. */
const MISSES = 2;
/** Milliseconds until all seats of a node are asked for again. */
const ASK_AGAIN_MS = 2_000;
/** Milliseconds that entering waits for the seats of a node that has not told of them yet. */
const MEET_MS = 3_000;
/** Milliseconds without a word after which seats of a live node may be unknown here. */
const SILENT_MS = 5_000;
/** Nodes whose seats are known at most. */
const MAX_PEERS = 2_000;
/** Seats of one node that are taken at most. */
const MAX_SEATS_OF_PEER = 200_000;
/** Bounds of one piece of news. */
const MAX_NEWS_BYTES = 1_048_576;
const MAX_NEWS_ELEMENTS = 40_000;

/** Another node, as far as its seats are known here. */
interface Peer {
  readonly host: string;
  /** Changes of its seats that have come; undefined until all of its seats have come once. */
  count: number | undefined;
  /** Changes of rooms that it has told; undefined until it has said how many there were. */
  changes: number | undefined;
  /** Monotonic milliseconds when it said that there were no more changes of its seats. */
  heardMs: number;
  misses: number;
  /** Monotonic milliseconds when all of its seats were asked for. */
  askedMs: number;
  /** Seats of the parts that have come. */
  parts: Map<string, Seat> | undefined;
}

/** Collaborators of `Peers`. */
export interface PeersDeps extends
  Pick<SharedSeatsDeps, "handOver" | "seated">,
  Pick<
    MucServerDeps<RoomStanza>,
    | "service"
    | "localHost"
    | "process"
    | "tell"
    | "hosts"
    | "knownHosts"
    | "liveProcesses"
    | "hasNeighbours"
    | "clock"
    | "logger"
  > {
  readonly rooms: LiveRooms;
  readonly counters: MucMetrics;
  /** Called with news that are no matter of seats alone, and with seats that are gone. */
  heard(news: SentNews): void;
  /** Called when changes of rooms may not have come: the rooms are to be read again. */
  mayHaveMissed(): void;
  /** Called at each look. */
  looked(): void;
}

/**
 * Other nodes, as far as this one hears them: it tells them of its seats and of changes of rooms, and
 * takes their news.
 *
 * Each node numbers the changes of its seats. A node that has missed one asks for all seats of the
 * other, which come in parts. Seats of a process that has lost its lease are withdrawn, and come back
 * with it.
 *
 * Changes of rooms are numbered apart, as they are in the database: a node that has missed one, or
 * loses a node that may not have told of one, reads the rooms of its own sessions again. So does a node
 * that hears another one again after a silence.
 */
export class Peers {
  readonly seats: SharedSeats;
  readonly #deps: PeersDeps;
  readonly #peers = new Map<number, Peer>();
  /** Local hosts that can be reached, as the last look has found them. */
  #hosts = new Set<string>();
  /** Monotonic milliseconds when a datacenter was told of all seats of this node. */
  readonly #toldAllMs = new Map<string, number>();
  /** Datacenters that asked again too soon. They are told at the next look. */
  readonly #owed = new Set<string>();
  /** Monotonic milliseconds when a live process was seen first, by process, until its seats come. */
  readonly #strangers = new Map<number, number>();
  #whenMet = Promise.withResolvers<void>();
  /** A check under way, for all who enter meanwhile. */
  #checking: Promise<void> | undefined;
  /** Live processes of all datacenters that are known; undefined until a look has found them. */
  #live: ReadonlyMap<string, ReadonlySet<number>> | undefined;
  #changes = 0;
  #cancel: CancelTimer | undefined;
  #isClosed = false;

  constructor(deps: PeersDeps) {
    this.#deps = deps;
    this.seats = new SharedSeats({
      ...deps,
      tell: (news) => this.tell(news),
      countOf: (process) => this.#peers.get(process)?.count,
    });
  }

  start(): void {
    this.#lookLater(0);
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
    this.#whenMet.resolve();
  }

  /**
   * Waits until this node has the seats of all live nodes, so that it sees which nicknames are taken.
   * A node that keeps silent for `MEET_MS` is waited for no longer: it has no rooms, or is cut off.
   */
  async met(): Promise<void> {
    const { clock } = this.#deps;
    const endMs = clock.monotonicMs() + MEET_MS;
    await (this.#checking ??= this.#check().finally(() => this.#checking = undefined));
    while (!this.#isClosed) {
      const sinceMs = Math.max(...this.#strangers.values());
      const leftMs = Math.min(sinceMs + MEET_MS, endMs) - clock.monotonicMs();
      if (leftMs <= 0) return;
      const { promise: late, resolve } = Promise.withResolvers<void>();
      const cancel = clock.after(leftMs, resolve);
      await Promise.race([this.#whenMet.promise, late]);
      cancel();
    }
  }

  /** Looks when there may be nodes that the last look has not found. */
  async #check(): Promise<void> {
    const hosts = await this.#deps.hosts();
    if (this.#live === undefined || hosts.some((host) => !this.#hosts.has(host))) await this.look();
  }

  /**
   * Tells nodes something.
   * @param hosts local hosts of their datacenters. @default all
   */
  tell(news: News, hosts: Iterable<string> = this.#hosts): void {
    const { localHost, service, process, hasNeighbours } = this.#deps;
    const stanza = newsStanza(news, {
      process,
      from: parseJid(localHost).bare,
      to: parseJid(service.domain).bare,
    });
    for (const host of hosts) {
      if (host !== localHost || hasNeighbours()) this.#deps.tell(host, stanza);
    }
  }

  /** Tells all nodes of a change of a room that is in the database. */
  tellChange(change: RoomChangeNews): void {
    this.tell({ ...change, change: ++this.#changes });
  }

  /**
   * True while this node knows all seats, as far as it can know: it hears every live node, and each
   * datacenter has one. On the other side of a split there may be occupants of any room.
   */
  get isWhole(): boolean {
    return this.#live !== undefined && this.unheard.length === 0;
  }

  /** Local hosts of datacenters that have no live node, or one that this node does not hear. */
  get unheard(): readonly string[] {
    const { process: own, clock } = this.#deps;
    const sinceMs = clock.monotonicMs() - SILENT_MS;
    const isHeard = (process: number) => {
      const peer = this.#peers.get(process);
      return process === own || peer?.count !== undefined && peer.heardMs >= sinceMs;
    };
    return [...this.#live ?? []]
      .filter(([, processes]) => processes.size === 0 || ![...processes].every(isHeard))
      .map(([host]) => host);
  }

  /** Returns the datacenters that have sessions in a room. */
  hostsOf(room: string): ReadonlySet<string> {
    return this.#deps.rooms.get(room)?.seats.hosts() ?? new Set();
  }

  /**
   * Takes news of another node.
   * @param stanza comes from the local host of its datacenter
   */
  took(stanza: Stanza): void {
    const { service, process, logger } = this.#deps;
    if (this.#isClosed || stanza.bytes.length > MAX_NEWS_BYTES) return;
    if (hasMoreElements(stanzaSource(stanza.bytes), MAX_NEWS_ELEMENTS)) return;
    try {
      const sent = readNews(stanzaElement(stanza), stanza.from.domainpart, service.domain);
      if (sent !== undefined && sent.process !== process) this.#take(sent);
    } catch (thrown) {
      logger.error("muc.bug", { error: describeError(thrown) });
    }
  }

  #take(sent: SentNews): void {
    const { news, host } = sent;
    switch (news.kind) {
      case "beat": {
        const peer = this.#peerOf(sent);
        if (peer === undefined) return;
        if (peer.count === news.count) this.#heard(peer);
        else this.#ask(sent, peer);
        const { changes = 0 } = news;
        if (peer.changes !== undefined && changes > peer.changes) {
          peer.changes = changes;
          this.#deps.mayHaveMissed();
        }
        return;
      }
      case "want":
        if (news.of !== this.#deps.process) return;
        // It is told of changes from now on, also when it has come after the last look.
        this.#hosts.add(host);
        return this.#tellAll(host);
      case "whole":
        return this.#takePart(sent, news);
      case "seat":
      case "gone": {
        const peer = this.#peerOf(sent);
        if (peer === undefined || news.count <= (peer.count ?? -1)) return;
        if (peer.count === undefined || news.count !== peer.count + 1) {
          return this.#ask(sent, peer);
        }
        peer.count = news.count;
        if (news.kind === "seat") this.seats.take(news.seat);
        else {
          this.seats.takeGone(sent.process, news);
          this.#deps.heard(sent);
        }
        return;
      }
      case "changed":
      case "destroyed":
        this.#noteChange(sent, news.change);
        return this.#deps.heard(sent);
      default:
        this.#deps.heard(sent);
    }
  }

  /** Notes the number of a change of a room, which nodes of the version before do not tell. */
  #noteChange({ process, host }: SentNews, change: number | undefined): void {
    const peer = this.#peers.get(process);
    if (change === undefined || peer?.changes === undefined || peer.host !== host) return;
    const isNext = change <= peer.changes + 1;
    peer.changes = Math.max(peer.changes, change);
    if (!isNext) this.#deps.mayHaveMissed();
  }

  #peerOf({ process, host }: Pick<SentNews, "process" | "host">): Peer | undefined {
    let peer = this.#peers.get(process);
    if (peer === undefined && this.#peers.size < MAX_PEERS) {
      peer = {
        host,
        count: undefined,
        changes: undefined,
        heardMs: -Infinity,
        misses: 0,
        askedMs: -Infinity,
        parts: undefined,
      };
      this.#peers.set(process, peer);
    }
    return peer?.host === host ? peer : undefined;
  }

  #ask({ process, host }: Pick<SentNews, "process" | "host">, peer: Peer): void {
    const nowMs = this.#deps.clock.monotonicMs();
    peer.heardMs = -Infinity;
    if (nowMs - peer.askedMs < ASK_AGAIN_MS) return;
    peer.askedMs = nowMs;
    this.tell({ kind: "want", of: process }, [host]);
  }

  /** Tells a datacenter of all seats of this node; once in a while, however often it asks. */
  #tellAll(host: string): void {
    const nowMs = this.#deps.clock.monotonicMs();
    if (nowMs - (this.#toldAllMs.get(host) ?? -Infinity) < ASK_AGAIN_MS / 2) {
      this.#owed.add(host);
      return;
    }
    this.#owed.delete(host);
    this.#toldAllMs.set(host, nowMs);
    const seats = this.#deps.rooms.ofProcess(this.#deps.process);
    const parts = Math.max(1, Math.ceil(seats.length / SEATS_IN_PART));
    for (let part = 0; part < parts; part++) {
      this.tell({
        kind: "whole",
        count: this.seats.count,
        changes: this.#changes,
        isFirst: part === 0,
        isLast: part === parts - 1,
        seats: seats.slice(part * SEATS_IN_PART, (part + 1) * SEATS_IN_PART),
      }, [host]);
    }
  }

  #takePart(
    sent: SentNews,
    { count, changes, isFirst, isLast, seats }: News & { kind: "whole" },
  ): void {
    const peer = this.#peerOf(sent);
    if (peer === undefined) return;
    if (isFirst) peer.parts = new Map();
    const { parts } = peer;
    if (parts === undefined || parts.size >= MAX_SEATS_OF_PEER) return;
    for (const seat of seats) parts.set(`${seat.room}/${seat.jid}`, seat);
    if (!isLast) return;
    peer.parts = undefined;
    peer.askedMs = -Infinity;
    const mayHaveMissed = (changes ?? 0) > (peer.changes ?? 0);
    peer.count = count;
    peer.changes = changes;
    for (const seat of this.#deps.rooms.ofProcess(sent.process)) {
      if (!parts.has(`${seat.room}/${seat.jid}`)) this.seats.takeOut(seat);
    }
    for (const seat of parts.values()) this.seats.take(seat);
    if (this.#strangers.delete(sent.process)) this.#noteMet();
    this.#heard(peer);
    if (mayHaveMissed) this.#deps.mayHaveMissed();
  }

  /**
   * Notes that all seats of a peer are known. Messages of rooms have no number among its news: those of
   * a silence, or of a gap between its numbers, may be lost.
   */
  #heard(peer: Peer): void {
    const nowMs = this.#deps.clock.monotonicMs();
    const wasSilent = peer.heardMs < nowMs - SILENT_MS;
    peer.heardMs = nowMs;
    if (wasSilent) this.#deps.mayHaveMissed();
  }

  #lookLater(afterMs = LOOK_MS): void {
    if (this.#isClosed) return;
    this.#cancel = this.#deps.clock.after(afterMs, () => {
      this.look().catch((thrown) => {
        this.#deps.logger.error("muc.bug", { error: describeError(thrown) });
      }).finally(() => this.#lookLater());
    });
  }

  /** Tells all nodes that this one lives, and withdraws the seats of those that do not. */
  async look(): Promise<void> {
    const { hosts, knownHosts, localHost, liveProcesses } = this.#deps;
    const reachable = await hosts();
    if (this.#isClosed) return;
    this.#hosts = new Set([localHost, ...reachable]);
    for (const { host } of this.#peers.values()) this.#hosts.add(host);
    for (const host of this.#toldAllMs.keys()) {
      if (!this.#hosts.has(host)) this.#toldAllMs.delete(host);
    }
    this.tell({ kind: "beat", count: this.seats.count, changes: this.#changes });
    for (const host of this.#owed) this.#tellAll(host);
    this.seats.look();
    this.#deps.looked();
    const asked = new Set([...this.#hosts, ...knownHosts()]);
    const live = await liveProcesses([...asked]);
    if (live === undefined || this.#isClosed) return;
    this.#live = new Map(Array.from(asked, (host) => [host, live.get(host) ?? new Set()]));
    this.#findStrangers(live);
    let hasLost = false;
    for (const [process, peer] of this.#peers) {
      if (live.get(peer.host)?.has(process) === true) peer.misses = 0;
      else if (++peer.misses >= MISSES) {
        this.#withdraw(process);
        hasLost = true;
      }
    }
    // A node that died may have changed a room and told nobody, or not have passed on what it heard.
    if (hasLost) this.#deps.mayHaveMissed();
  }

  /** Asks the live processes that have told nothing yet for their seats. */
  #findStrangers(live: ReadonlyMap<string, ReadonlySet<number>>): void {
    const { process: own, clock } = this.#deps;
    const all = [...live].flatMap(([host, processes]) =>
      [...processes].map((process) => ({ host, process }))
    );
    const isAlive = new Set(all.map(({ process }) => process));
    for (const process of this.#strangers.keys()) {
      if (!isAlive.has(process)) this.#strangers.delete(process);
    }
    for (const { host, process } of all) {
      if (process === own || this.#peers.get(process)?.count !== undefined) continue;
      if (!this.#strangers.has(process)) this.#strangers.set(process, clock.monotonicMs());
      const peer = this.#peerOf({ host, process });
      if (peer !== undefined) this.#ask({ host, process }, peer);
    }
    this.#noteMet();
  }

  /** Wakes those who wait, once no live node is left whose seats have not come. */
  #noteMet(): void {
    if (this.#strangers.size > 0) return;
    this.#whenMet.resolve();
    this.#whenMet = Promise.withResolvers();
  }

  #withdraw(process: number): void {
    const { rooms, counters, logger } = this.#deps;
    this.#peers.delete(process);
    const seats = rooms.ofProcess(process);
    for (const seat of seats) {
      // They may be there still, on the other side of a split.
      const live = rooms.get(seat.room);
      if (live !== undefined && rooms.hasOwn(live)) live.mayHaveOthers = true;
      this.seats.takeOut(seat, { notes: { codes: ["333"] } });
      counters.withdrawn.inc();
    }
    if (seats.length > 0) logger.warn("muc.occupants-withdrawn", { occupants: seats.length });
  }
}
