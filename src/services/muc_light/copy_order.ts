import type { CancelTimer, Clock } from "../../base/mod.ts";
import { describeError } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import type { RoomMessage } from "../../storage/mod.ts";
import type { BareJid, FullJid, Jid, Stanza } from "../../xmpp/mod.ts";
import { attributeOf, childElements, parseElement, stanzaSource, Turns } from "../../xmpp/mod.ts";
import { STANZA_IDS } from "../archive/mod.ts";
import { ROOM_IDS } from "../rooms/mod.ts";
import { AFFILIATIONS } from "./namespaces.ts";
import { numberedMessage } from "./room_message.ts";

/** Milliseconds that a message waits for earlier ones, before those are read from the database. */
const GAP_MS = 250;
/** Messages that are read from the database: whoever misses more reads the archive. */
const MAX_MISSING = 50;
/** Milliseconds after which earlier messages of a room are not read: it has been silent. */
const FORGET_MS = 60_000;
/** People and rooms that are remembered, one entry for each person in each room. */
const MAX_ENTRIES = 50_000;
/** Messages that are remembered because people here got them from the database, before their copies. */
const MAX_READ = 50_000;
/** Messages that wait at once, and their bytes. */
const [MAX_HELD, MAX_HELD_BYTES] = [2_000, 8_388_608];

/** A message of a room on its way to a person at this node. */
export interface RoomCopy {
  readonly stanza: Stanza;
  /** True for one of which another is answered for. */
  readonly isCopy: boolean;
  /** Copies its bytes, which are to stay as they are. */
  detach(): void;
  settle(): void;
}

/** Objects behind the order. */
export interface CopyOrderDeps<Copy extends RoomCopy> {
  /** Returns messages that a room keeps with numbers between `after` and `before`, at most `limit`. */
  read(
    room: BareJid,
    page: { readonly after: number; readonly before: number; readonly limit: number },
  ): Promise<readonly RoomMessage[]>;
  /** Gives a message to the sessions of this node, or has it go to where its person is now. */
  give(copy: Copy): void;
  /** Gives a copy of a message to one session of this node, if that is to get it. The message goes on waiting. */
  giveTo(session: FullJid, message: Copy): void;
  /** Gives a message that the database had to the sessions of this node. False: none took it. */
  giveMissing(message: Stanza): boolean;
  /** Settles the copy of a message that sessions of this node have got from the database. */
  drop(copy: Copy): void;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** Messages of one room that one person here has got. */
interface Entry<Copy> {
  /** Names the room and the person. */
  readonly key: string;
  readonly room: BareJid;
  readonly to: Jid;
  /** Number of the last message. */
  last: number;
  /** Monotonic milliseconds when a message came. */
  atMs: number;
  readonly held: Map<number, Copy>;
  /** True while what waits came after a silence: whoever has been away reads the archive. */
  isAfterSilence: boolean;
  /** True while nothing has come since the person came to the room, or left it. */
  beginsAnew: boolean;
  cancel: CancelTimer | undefined;
}

/**
 * Gives the messages of MUC Light rooms to each person at this node in the order of their numbers. Nodes
 * of several datacenters number messages of a room, and copies travel from each of them, so that one
 * may overtake another. It waits for the other then, which is read from the database if it does not
 * come.
 */
export class CopyOrder<Copy extends RoomCopy> {
  readonly #deps: CopyOrderDeps<Copy>;
  /** By room and recipient; those that are silent for the longest time come first. */
  readonly #entries = new Map<string, Entry<Copy>>();
  /** The same by the bare JIDs of recipients. */
  readonly #byAccount = new Map<string, Set<Entry<Copy>>>();
  /** Entries of which messages wait. */
  readonly #waiting = new Set<Entry<Copy>>();
  readonly #turns = new Turns();
  /**
   * Messages that sessions here got from the database before their copies came, by the key of their
   * entry and their number; the first one that was read comes first.
   */
  readonly #read = new Set<string>();
  #held = 0;
  #heldBytes = 0;
  #isClosed = false;

  constructor(deps: CopyOrderDeps<Copy>) {
    this.#deps = deps;
    deps.metrics.gauge({
      name: "causeway_muc_light_held",
      help: "Messages of MUC Light rooms that wait at this node for earlier ones of their room",
    }, () => this.#held);
  }

  /**
   * Takes a message of a room that is about to be given to a person. False: it is to be given now, and
   * by the caller.
   */
  take(copy: Copy): boolean {
    if (this.#isClosed) return false;
    const { from: { bare: room }, to } = copy.stanza;
    const key = `${room.text} ${to.text}`;
    const number = numberOf(copy.stanza);
    if (number === undefined) {
      if (isAboutRecipient(copy.stanza)) this.#beginAnew(key);
      return false;
    }
    const nowMs = this.#deps.clock.monotonicMs();
    const entry = this.#entries.get(key);
    if (entry === undefined) {
      this.#remember(key, { room, to, last: number, nowMs });
      return false;
    }
    if (entry.held.size === 0) entry.isAfterSilence = nowMs - entry.atMs > FORGET_MS;
    entry.atMs = nowMs;
    this.#entries.delete(key);
    this.#entries.set(key, entry); // it is the newest
    if (number <= entry.last) {
      if (!this.#read.delete(`${key} ${number}`)) return false; // late, or for another device
      this.#deps.drop(copy);
      return true;
    }
    const isNext = number === entry.last + 1 ||
      (entry.isAfterSilence && number - entry.last > MAX_MISSING);
    if (entry.beginsAnew || (isNext && entry.held.size === 0)) {
      entry.beginsAnew = false;
      entry.last = number;
      return false;
    }
    return this.#hold(entry, number, copy);
  }

  /**
   * Gives a session that moves to another node next what waits for it, in its order: it would not get
   * that there.
   * @param isLast true when no other session of the account is here, for which it could go on waiting
   */
  leaving(session: FullJid, isLast: boolean): void {
    for (const entry of this.#waiting) {
      if (entry.to.text !== session.text && entry.to.text !== session.bare.text) continue;
      if (isLast) this.#pass(entry);
      else for (const [, message] of inOrder(entry)) this.#deps.giveTo(session, message);
    }
  }

  /**
   * Forgets what an account has got, as none of its sessions is here any more: it may get messages
   * elsewhere before one comes back. What waits goes to where the account is.
   */
  gone(account: BareJid): void {
    for (const entry of this.#byAccount.get(account.text) ?? []) this.#forget(entry);
  }

  /** Gives all messages that wait, and holds none from now on. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const entry of this.#waiting) this.#pass(entry);
    await this.#turns.settled();
  }

  #remember(
    key: string,
    { room, to, last, nowMs }: {
      readonly room: BareJid;
      readonly to: Jid;
      readonly last: number;
      readonly nowMs: number;
    },
  ): void {
    if (this.#entries.size >= MAX_ENTRIES) {
      const [oldest] = this.#entries.values();
      if (oldest !== undefined) this.#forget(oldest);
    }
    const entry: Entry<Copy> = {
      key,
      room,
      to,
      last,
      atMs: nowMs,
      held: new Map(),
      isAfterSilence: false,
      beginsAnew: false,
      cancel: undefined,
    };
    this.#entries.set(key, entry);
    const account = to.bare.text;
    const others = this.#byAccount.get(account);
    if (others === undefined) this.#byAccount.set(account, new Set([entry]));
    else others.add(entry);
  }

  #forget(entry: Entry<Copy>): void {
    this.#entries.delete(entry.key);
    const account = entry.to.bare.text;
    const others = this.#byAccount.get(account);
    others?.delete(entry);
    if (others?.size === 0) this.#byAccount.delete(account);
    this.#pass(entry);
  }

  /** Gives what waits for a person in a room, and begins anew with the next message. */
  #beginAnew(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#pass(entry);
    entry.beginsAnew = true;
  }

  #hold(entry: Entry<Copy>, number: number, copy: Copy): boolean {
    const { length } = copy.stanza.bytes;
    const isFull = this.#held >= MAX_HELD || this.#heldBytes + length > MAX_HELD_BYTES;
    const same = entry.held.get(number);
    if (same !== undefined && copy.isCopy && !same.isCopy) {
      copy.settle();
      return true;
    }
    // It came twice. The sender of the first one may have died, so that nobody else would keep it.
    if (same !== undefined) {
      this.#letGo(entry, number, same);
      same.settle();
    }
    copy.detach();
    entry.held.set(number, copy);
    this.#waiting.add(entry);
    this.#held++;
    this.#heldBytes += length;
    this.#drain(entry);
    // There is no place to wait: it goes on in its order, with those that wait already.
    if (isFull && entry.held.has(number)) this.#pass(entry);
    return true;
  }

  /** Gives what follows the last message. What still waits then waits for another one, for as long. */
  #drain(entry: Entry<Copy>): void {
    const { last } = entry;
    for (;;) {
      const copy = entry.held.get(entry.last + 1);
      if (copy === undefined) break;
      this.#give(entry, entry.last + 1, copy);
    }
    if (entry.last > last || entry.held.size === 0) {
      entry.cancel?.();
      entry.cancel = undefined;
      entry.isAfterSilence = false;
    }
    if (entry.held.size === 0) return;
    entry.cancel ??= this.#deps.clock.after(GAP_MS, () => {
      void this.#turns.run(entry.key, () => this.#catchUp(entry));
    });
  }

  #give(entry: Entry<Copy>, number: number, copy: Copy): void {
    this.#letGo(entry, number, copy);
    entry.last = Math.max(entry.last, number);
    this.#deps.give(copy);
  }

  #letGo(entry: Entry<Copy>, number: number, copy: Copy): void {
    entry.held.delete(number);
    if (entry.held.size === 0) this.#waiting.delete(entry);
    this.#held--;
    this.#heldBytes -= copy.stanza.bytes.length;
  }

  /** Reads the messages that are missing, and gives what waits for them. Never rejects. */
  async #catchUp(entry: Entry<Copy>): Promise<void> {
    entry.cancel = undefined;
    const { last: after } = entry;
    const [first, last] = [Math.min(...entry.held.keys()), Math.max(...entry.held.keys())];
    const isUnread = entry.isAfterSilence || first - after > MAX_MISSING;
    if (entry.held.size === 0 || isUnread) return this.#pass(entry);
    // The room may have gone far ahead: what is missing lies between these.
    const limit = 2 * MAX_MISSING;
    const before = Math.min(last, after + limit + 1);
    let found: readonly RoomMessage[] = [];
    try {
      found = await this.#deps.read(entry.room, { after, before, limit });
    } catch (thrown) {
      // The database reports its own failures. What has come goes on without what has not.
      this.#deps.logger.debug("muc-light.no-storage", { error: describeError(thrown) });
    }
    for (const { number, stanza } of found) {
      if (!entry.held.has(last) || number <= entry.last) continue;
      const copy = entry.held.get(number);
      if (copy !== undefined) {
        this.#give(entry, number, copy);
        continue;
      }
      entry.last = number;
      const message = parseElement(new TextEncoder().encode(stanza));
      const missing = numberedMessage(message, { room: entry.room, to: entry.to, number });
      // Where nobody took it, its copy goes its own way.
      if (!this.#deps.giveMissing(missing)) continue;
      this.#noteRead(`${entry.key} ${number}`);
    }
    // What has come meanwhile has waited for less.
    this.#pass(entry, last);
  }

  #noteRead(message: string): void {
    const [oldest] = this.#read;
    if (oldest !== undefined && this.#read.size >= MAX_READ) this.#read.delete(oldest);
    this.#read.add(message);
  }

  /**
   * Gives what waits, in its order, whatever is missing before it.
   * @param upTo number of the last message that does not go on waiting. @default all of them go
   */
  #pass(entry: Entry<Copy>, upTo = Infinity): void {
    for (const [number, copy] of inOrder(entry)) {
      // The one before may have made a session leave.
      if (number <= upTo && entry.held.has(number)) this.#give(entry, number, copy);
    }
    this.#drain(entry);
  }
}

/** Returns what waits, with its numbers, in its order. */
function inOrder<Copy>({ held }: Entry<Copy>): readonly [number, Copy][] {
  return [...held].toSorted(([one], [other]) => one - other);
}

/** Returns the number that a room has given to a message. */
function numberOf({ bytes, from }: Stanza): number | undefined {
  for (const child of childElements(stanzaSource(bytes))) {
    if (child.name !== "stanza-id" || child.namespace !== STANZA_IDS) continue;
    if (attributeOf(child, "by") !== from.bare.text) continue;
    return ROOM_IDS.tryRead(attributeOf(child, "id") ?? "")?.sequence;
  }
  return undefined;
}

/** True for an event of a room by which its recipient comes, goes or gets another affiliation. */
function isAboutRecipient({ bytes, from, to }: Stanza): boolean {
  if (from !== from.bare) return false;
  return childElements(stanzaSource(bytes)).some((child) => {
    if (child.name !== "x" || child.namespace !== AFFILIATIONS) return false;
    const { start, end, defaultNamespace, prefixes } = child;
    const event = parseElement(child.bytes.subarray(start, end), defaultNamespace, prefixes);
    return event.elements.some((each) => each.name === "user" && each.text === to.bare.text);
  });
}
