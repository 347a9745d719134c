import type { CancelTimer, Clock } from "../../base/mod.ts";
import { CausewayError, describeError } from "../../base/mod.ts";
import type { Counter, Logger, Metrics } from "../../observe/mod.ts";
import type {
  ArchivedMessage,
  ArchiveStore,
  RoomOutbox,
  UnarchivedMessage,
  UnarchivedMessages,
} from "../../storage/mod.ts";
import { roomArchiveKeyOf, roomPeerIn, searchableText } from "../../storage/mod.ts";
import type { BareJid, FullJid, Stanza, XmlElement } from "../../xmpp/mod.ts";
import { element, parseElement, parseJid, serialize, tryParseJid, Turns } from "../../xmpp/mod.ts";
import { answerArchive, ArchiveRetention, ArchiveWriter, isArchivable } from "../archive/mod.ts";
import type { ArchivableOptions, ArchiveEntry } from "../archive/mod.ts";
import type { IqAnswer } from "../iq_service.ts";
import { ROOM_IDS } from "./room_ids.ts";
import { RoomSweep } from "./room_sweep.ts";

/** Messages of a room that are read and written in one step. */
const STEP_MESSAGES = 32;
/** Rooms whose messages are written at the same time; and archives that are removed. */
const MAX_AT_ONCE = 8;
/** Rooms that wait for that. Others wait for their next message, or for somebody who reads. */
const MAX_DIRTY = 10_000;
/** Rooms that are gone, and whose archives are not removed yet. */
const MAX_GONE = 10_000;
/** Milliseconds between two attempts at a database that fails. */
const RETRY_MS = 1_000;
/** Milliseconds that a reader waits until the archive has the messages that the room has taken. */
const READER_PATIENCE_MS = 5_000;
/** Milliseconds after which a message that is refused is given up while the store takes no other one. */
const GIVE_UP_MS = 86_400_000;
/** Messages that were refused, and may be so again. */
const MAX_FAILURES = 10_000;
/** Namespace of addresses that a room shows beside a message (XEP-0045 §7.2.3). */
const MUC_USER = "http://jabber.org/protocol/muc#user";

/** Options of the archives of rooms. */
export interface RoomArchiveOptions {
  /** Messages of a page, if the client names no number, and at most. */
  readonly defaultLimit: number;
  readonly maxLimit: number;
  /** Chat markers without a body (XEP-0333), too. */
  readonly hasChatMarkers: boolean;
  /** Milliseconds for which a message is kept; Infinity: for ever. */
  readonly maxAgeMs: number;
  /** True: messages are found by their words where the store finds them. */
  readonly isSearched: boolean;
}

/** Objects behind the archives of rooms. */
export interface RoomArchivesDeps {
  readonly options: RoomArchiveOptions;
  /** Rooms by their domains. */
  readonly outboxes: ReadonlyMap<string, RoomOutbox>;
  readonly store: ArchiveStore;
  /** Milliseconds in which messages of nodes that have died come into their archives. */
  readonly sweepWithinMs: number;
  /** Sends a message to a client; false when it takes none now. */
  send(to: FullJid, message: Stanza): boolean;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** Readers of one archive that wait for what it lacks. */
interface Asked extends PromiseWithResolvers<string | undefined> {
  readers: number;
}

/** A request to the archive of a room, of somebody who may read it. */
export interface RoomArchiveRequest {
  readonly room: BareJid;
  /** The room that the right to read was found in: a later one of its name has another. */
  readonly creation: number;
  readonly asker: FullJid;
  readonly type: "get" | "set";
  readonly payload: XmlElement;
  /** True for those who may know who is behind a nickname. */
  readonly seesJids: boolean;
}

/**
 * The archives of rooms (XEP-0313). A room has numbered its messages, and keeps them until its archive
 * has them.
 *
 * A node that writes to an archive writes all that it lacks, from the oldest message on. So the archive has
 * the order of the room, whichever nodes write at the same time, and a node that dies leaves its
 * messages to the next one.
 */
export class RoomArchives {
  readonly #deps: RoomArchivesDeps;
  readonly #archivable: ArchivableOptions;
  readonly #writer: ArchiveWriter;
  readonly #retention: ArchiveRetention;
  readonly #sweep: RoomSweep;
  readonly #counters: Readonly<
    Record<"stored" | "failed" | "queries" | "removed" | "overdue", Counter>
  >;
  /** The steps of each room, one after another. */
  readonly #turns = new Turns();
  /** Rooms whose archives are being written. */
  readonly #busy = new Set<string>();
  /** Rooms with readers who wait. Whoever comes before the writing begins waits for the same one. */
  readonly #asked = new Map<string, Asked>();
  /** Rooms whose archives may lack messages, in the order in which they came. */
  readonly #dirty = new Set<string>();
  /** Rooms whose archives are to be removed. */
  readonly #gone = new Set<string>();
  #removing = 0;
  /** Messages that made place for others: since when, and how many the store had taken before. */
  readonly #failures = new Map<string, { readonly taken: number; readonly sinceMs: number }>();
  #taken = 0;
  /** Set while nothing is begun, as the database has failed. */
  #cancelRetry: CancelTimer | undefined;
  #isClosed = false;

  constructor(deps: RoomArchivesDeps) {
    this.#deps = deps;
    const { options, store, metrics, logger, clock, outboxes } = deps;
    this.#archivable = {
      hasChatMarkers: options.hasChatMarkers,
      hasGroupchats: true,
      hasSubjects: true,
    };
    this.#writer = new ArchiveWriter({ store, logger, clock });
    const messages = (outcome: string) =>
      metrics.counter({
        name: "causeway_room_archive_messages_total",
        help:
          "Messages that this node has written to archives of rooms, by outcome: stored, now or " +
          "from before; or failed because the database cannot hold the message",
        labels: { outcome },
      });
    this.#counters = {
      stored: messages("stored"),
      failed: messages("failed"),
      queries: metrics.counter({
        name: "causeway_room_archive_queries_total",
        help: "Pages of archives of rooms that clients were sent",
      }),
      removed: metrics.counter({
        name: "causeway_room_archive_removed_total",
        help:
          "Messages that this node has removed from archives of rooms because they were too old",
      }),
      overdue: metrics.counter({
        name: "causeway_room_archive_overdue_total",
        help:
          "Rooms that this node has found with messages which other nodes had left for their archives",
      }),
    };
    metrics.gauge({
      name: "causeway_room_archive_rooms_pending",
      help: "Rooms with messages that this node has yet to write to their archives",
    }, () => this.#dirty.size + this.#busy.size);
    this.#retention = new ArchiveRetention({
      maxAgeMs: options.maxAgeMs === Infinity
        ? new Map()
        : new Map([...outboxes.keys()].map((domain) => [domain, options.maxAgeMs])),
      storeOf: () => store,
      removed: this.#counters.removed,
      clock,
      logger,
    });
    this.#sweep = new RoomSweep({
      outboxes: [...outboxes.values()],
      withinMs: deps.sweepWithinMs,
      found: (room) => this.#foundOverdue(room),
      isUseful: () => this.#cancelRetry === undefined && this.#dirty.size < MAX_DIRTY,
      clock,
      logger,
    });
  }

  /** Begins to remove messages that are too old, and to look for those that nodes have left. */
  start(): void {
    this.#retention.start();
    this.#sweep.start();
  }

  /** True when archives are searched by words. */
  get searchesText(): boolean {
    return this.#deps.options.isSearched && this.#deps.store.searchesText;
  }

  /** Wall-clock milliseconds of the oldest messages that rooms show. */
  get oldestMs(): number {
    return this.#deps.clock.wallMs() - this.#deps.options.maxAgeMs;
  }

  /** True for a message that archives take. */
  takes(message: Uint8Array): boolean {
    return isArchivable(
      { kind: "message", type: "groupchat", bytes: message },
      this.#archivable,
    );
  }

  /** Notes that a room has taken a message that its archive lacks. */
  posted(room: string): void {
    if (this.#isClosed || this.#dirty.has(room) || this.#dirty.size >= MAX_DIRTY) return;
    this.#dirty.add(room);
    this.#pump();
  }

  #foundOverdue(room: string): void {
    // The database may have rooms of domains that this node does not serve.
    const domain = tryParseJid(room)?.domainpart;
    if (domain === undefined || !this.#deps.outboxes.has(domain) || this.#busy.has(room)) return;
    this.#counters.overdue.inc();
    this.posted(room);
  }

  /** Removes the archive of a room that is gone, as soon as that can be done. */
  removed(room: string): void {
    if (this.#isClosed || this.#gone.size >= MAX_GONE) return;
    this.#gone.add(room);
    this.#pump();
  }

  /**
   * Answers a request to an archive.
   *
   * @throws CausewayError `storage/…`
   */
  async answer(
    { room, creation, asker, type, payload, seesJids }: RoomArchiveRequest,
  ): Promise<IqAnswer> {
    const { store, options, send } = this.#deps;
    const key = await this.#caughtUp(room.text);
    if (key !== roomArchiveKeyOf(room.text, { creation })) return { error: "item-not-found" };
    return await answerArchive({ type, payload }, {
      store,
      key,
      owner: room,
      asker,
      ids: ROOM_IDS,
      limits: { ...options, searchesText: this.searchesText },
      pages: this.#counters.queries,
      send: (to, message) => send(to, message),
      shown: (message) => seesJids ? message : withoutSender(message),
    });
  }

  /** Ends its work. Messages that are not archived stay with their rooms. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRetry?.();
    for (const [room, { reject }] of this.#asked) reject(notInTime(room));
    this.#asked.clear();
    await Promise.all([this.#writer.close(), this.#retention.stop(), this.#sweep.stop()]);
    await this.#turns.settled();
  }

  /** Begins what there are places for; first that for which readers wait. */
  #pump(): void {
    if (this.#isClosed) return;
    for (const [room, asked] of this.#asked) {
      if (this.#busy.size >= MAX_AT_ONCE) break;
      if (this.#busy.has(room)) continue;
      this.#asked.delete(room);
      this.#begin(room, asked);
    }
    if (this.#cancelRetry !== undefined) return;
    for (const room of this.#dirty) {
      if (this.#busy.size >= MAX_AT_ONCE) break;
      if (!this.#busy.has(room)) this.#begin(room);
    }
    for (const room of this.#gone) {
      if (this.#removing >= MAX_AT_ONCE) break;
      this.#gone.delete(room);
      this.#removing++;
      void this.#removeArchive(room).finally(() => {
        this.#removing--;
        this.#pump();
      });
    }
  }

  /** Writes what the archive of a room lacks, also for readers who wait for that. */
  #begin(room: string, asked?: Asked): void {
    this.#dirty.delete(room);
    this.#busy.add(room);
    this.#turns.run(room, () => this.#drain(room))
      .then((key) => asked?.resolve(key), (thrown) => {
        asked?.reject(thrown);
        this.#failed(room, thrown);
      })
      .finally(() => {
        this.#busy.delete(room);
        this.#pump();
      });
  }

  #failed(room: string, thrown: unknown): void {
    this.#deps.logger.debug("room-archive.not-stored", { error: describeError(thrown) });
    this.#retryLater();
    this.posted(room);
  }

  #retryLater(): void {
    if (this.#isClosed) return;
    this.#cancelRetry ??= this.#deps.clock.after(RETRY_MS, () => {
      this.#cancelRetry = undefined;
      this.#pump();
    });
  }

  /** Returns the key of a room's archive, once that has all that the room has taken. */
  async #caughtUp(room: string): Promise<string | undefined> {
    const { clock } = this.#deps;
    if (this.#isClosed || this.#writer.isLate) throw notInTime(room);
    const { promise: late, reject } = Promise.withResolvers<never>();
    const cancel = clock.after(READER_PATIENCE_MS, () => reject(notInTime(room)));
    const asked = this.#ask(room);
    try {
      return await Promise.race([asked.promise, late]);
    } finally {
      cancel();
      asked.readers--;
      if (asked.readers === 0 && this.#asked.get(room) === asked) this.#asked.delete(room);
    }
  }

  #ask(room: string): Asked {
    const before = this.#asked.get(room);
    if (before !== undefined) {
      before.readers++;
      return before;
    }
    const asked = { ...Promise.withResolvers<string | undefined>(), readers: 1 };
    asked.promise.catch(() => {}); // reported to those who still wait
    this.#asked.set(room, asked);
    this.#pump();
    return asked;
  }

  /**
   * Writes what the archive of a room lacks. Returns the key of the archive; undefined when the room
   * is gone.
   */
  async #drain(room: string): Promise<string | undefined> {
    const outbox = this.#outboxOf(room);
    for (;;) {
      const found = await outbox.unarchived(room, STEP_MESSAGES);
      if (found === undefined) return undefined;
      const key = roomArchiveKeyOf(room, found);
      const last = found.messages.at(-1);
      if (last === undefined) return key;
      await this.#write(room, found);
      // Messages that were not written at the end of the node stay with the room.
      if (this.#isClosed) return key;
      const { creation } = found;
      if (!await outbox.markArchived(room, { creation, number: last.number })) {
        this.removed(room); // what was written is of no use
        return undefined;
      }
      if (found.messages.length < STEP_MESSAGES) return key;
    }
  }

  /**
   * Writes messages of a room, but for those that the store cannot hold.
   *
   * @throws CausewayError `storage/failed` when some are to be tried again
   */
  async #write(room: string, found: UnarchivedMessages): Promise<void> {
    const messages = found.messages.flatMap((message): ArchivedMessage[] => {
      const bytes = new TextEncoder().encode(message.stanza);
      return this.takes(bytes) ? [this.#entryOf(room, message, found)] : [];
    });
    let isToRepeat = false;
    const givenUp: ArchivedMessage[] = [];
    const ends = new Map<ArchiveEntry, () => void>();
    // From the last one on: nothing gets into the archive before an earlier message.
    const takeBack = () => {
      isToRepeat = true;
      for (const [entry, end] of [...ends].reverse()) if (this.#writer.cancel(entry)) end();
    };
    const written = messages.map((message) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const entry: ArchiveEntry = {
        message,
        late: () => {}, // those who read it wait for it by themselves
        refused: () => {
          // Other rooms need the place.
          if (!this.#isToGiveUp(message)) takeBack();
          else if (this.#writer.cancel(entry)) {
            givenUp.push(message);
            resolve();
          }
        },
        done: (outcome) => {
          if (outcome !== "failed") {
            this.#taken++;
            this.#failures.delete(failureKeyOf(message));
            this.#counters.stored.inc();
          } else if (this.#isClosed) takeBack();
          else givenUp.push(message);
          resolve();
        },
      };
      ends.set(entry, resolve);
      return { entry, promise };
    });
    for (const { entry } of written) this.#writer.add(entry);
    await Promise.all(written.map(({ promise }) => promise));
    if (this.#isClosed) return;
    if (isToRepeat) {
      throw new CausewayError("storage/failed", `Cannot write messages of ${room} to its archive`);
    }
    for (const message of givenUp) {
      this.#counters.failed.inc();
      this.#failures.delete(failureKeyOf(message));
    }
  }

  /**
   * Notes that a message makes place for others. True when the store cannot hold it, as far as one
   * knows: it has taken another one since the first time. A store that takes none is away.
   */
  #isToGiveUp(message: ArchivedMessage): boolean {
    const key = failureKeyOf(message);
    const first = this.#failures.get(key);
    const nowMs = this.#deps.clock.monotonicMs();
    if (first !== undefined) {
      return this.#taken > first.taken || nowMs - first.sinceMs >= GIVE_UP_MS;
    }
    const [oldest] = this.#failures.keys();
    if (oldest !== undefined && this.#failures.size >= MAX_FAILURES) this.#failures.delete(oldest);
    this.#failures.set(key, { taken: this.#taken, sinceMs: nowMs });
    return false;
  }

  #entryOf(
    room: string,
    { number, sentAtMs, sender, stanza }: UnarchivedMessage,
    found: UnarchivedMessages,
  ): ArchivedMessage {
    const { name, attributes, children } = parseElement(new TextEncoder().encode(stanza));
    const peer = roomPeerIn({ attributes }, room);
    // Rooms of MUC Light show who has written a message by themselves.
    const isHidden = sender !== undefined && sender !== peer.resourcepart;
    const whole = element(
      name,
      attributes,
      ...children,
      isHidden ? element("x", { xmlns: MUC_USER }, element("item", { jid: sender })) : undefined,
    );
    const bytes = new TextEncoder().encode(serialize(whole));
    return {
      archive: roomArchiveKeyOf(room, found),
      ...ROOM_IDS.idOf(number),
      peer,
      sentAtMs,
      stanza: bytes,
      ...this.searchesText && { text: searchableText({ bytes }) },
    };
  }

  /** Never rejects. */
  async #removeArchive(room: string): Promise<void> {
    const { store, logger } = this.#deps;
    try {
      await store.removeAll(room, async () => {
        // The room may have been made again.
        const found = await this.#outboxOf(room).unarchived(room, 1);
        return found && roomArchiveKeyOf(room, found);
      });
    } catch (thrown) {
      logger.debug("room-archive.not-removed", { room, error: describeError(thrown) });
      if (this.#gone.size < MAX_GONE) this.#gone.add(room);
      this.#retryLater();
    }
  }

  #outboxOf(room: string): RoomOutbox {
    const outbox = this.#deps.outboxes.get(parseJid(room).domainpart);
    if (outbox === undefined) throw new TypeError(`Cannot archive messages of ${room}`);
    return outbox;
  }
}

function failureKeyOf({ archive, sequence }: ArchivedMessage): string {
  return `${archive} ${sequence}`;
}

function notInTime(room: string): CausewayError {
  const message = `Cannot read the archive of ${room}: it is not written in time`;
  return new CausewayError("storage/overloaded", message);
}

/** Returns a message without the address of its sender. */
function withoutSender({ name, attributes, children }: XmlElement): XmlElement {
  const kept = children.filter((child) =>
    typeof child === "string" || child.namespace !== MUC_USER
  );
  return element(name, attributes, ...kept);
}
