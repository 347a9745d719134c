import { FairShares, RETAINED_OVERHEAD_BYTES, ShareTab } from "../../base/mod.ts";
import type { Holders } from "../../base/mod.ts";
import { recipientHolders, senderHolders } from "../stanza/holders.ts";
import type { FullJid } from "../jid/jid.ts";
import type { Stanza } from "../stanza/stanza.ts";
import { distance, toHandled } from "./counter.ts";
import type { Delivery } from "./delivery.ts";
import { areDetached } from "./delivery.ts";

/** Cost of keeping a stanza besides its bytes. */
export const UNACKED_OVERHEAD_BYTES = RETAINED_OVERHEAD_BYTES;

/** Bounds of one session's queue. */
export interface UnackedLimits {
  readonly maxItems: number;
  readonly maxBytes: number;
  /** Stanzas that their senders keep as well. */
  readonly maxUnsettled: number;
  /** Bytes that owed errors may cost besides. */
  readonly maxOwedBytes: number;
}

/** Initial state of a queue. */
export interface UnackedQueueDeps {
  /** Stanzas that already count as acknowledged. @default 0 */
  readonly acknowledged?: number;
  /** Budget that all queues of the process share. @default none */
  readonly budget?: FairShares;
  /** Session whose account's share this queue counts against. @default no share */
  readonly jid?: FullJid;
  /** True for a domain whose senders have a share each. @default that of `jid` */
  readonly isUserHost?: ((domain: string) => boolean) | undefined;
}

const NOBODY = { singles: [], crowds: [] };

/**
 * The stanzas that a client was sent, or is to be sent, and has not acknowledged (XEP-0198 §4), in
 * order:
 *
 *     acknowledged → gone [first … written, perhaps there] [… waiting to be written …]
 *
 * All its stanzas count for the account's share of the budget. Those that waited long enough to have
 * bytes of their own (`detach`) also count for their senders' shares. Pure: it knows no connection,
 * clock or log.
 */
export class UnackedQueue {
  readonly #budget: FairShares;
  readonly #tab: ShareTab;
  /** True for a domain whose accounts have a share each. */
  readonly #isUserHost: (domain: string) => boolean;
  readonly #limits: UnackedLimits;
  #entries: Delivery[] = [];
  /** Stanzas as the client gets them, of those entries that others have in other words. */
  #told = new Map<Delivery, Stanza>();
  /** Index of the first entry that is not acknowledged. */
  #head = 0;
  /** Index after the last entry that was written on the present stream. */
  #written = 0;
  /** Index after the last entry that was given to another node; meaningless before `rewindRelay`. */
  #relayed = 0;
  /** Index after the last entry that no other node has to keep any more. */
  #released = 0;
  /** Index after the last entry that has bytes of its own and counts for its sender. */
  #detached = 0;
  #bytes = 0;
  #owedItems = 0;
  #owedBytes = 0;
  #acknowledged = 0;

  constructor(
    limits: UnackedLimits,
    { acknowledged = 0, budget = new FairShares(), jid, isUserHost }: UnackedQueueDeps = {},
  ) {
    this.#limits = limits;
    this.#acknowledged = acknowledged;
    this.#budget = budget;
    this.#isUserHost = isUserHost ?? ((domain) => domain === jid?.domainpart);
    const holders = jid === undefined ? NOBODY : recipientHolders(jid.bare.text);
    this.#tab = new ShareTab(budget, holders);
  }

  /** Stanzas not acknowledged. */
  get items(): number {
    return this.#entries.length - this.#head;
  }

  /** Cost of the unacknowledged stanzas, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Stanzas acknowledged since the beginning. */
  get acknowledgedCount(): number {
    return this.#acknowledged;
  }

  /** Number of the last stanza written, as the client counts. */
  get sentCount(): number {
    return toHandled(this.#acknowledged + this.unacknowledgedWrites);
  }

  /** Stanzas that were written and not acknowledged. */
  get unacknowledgedWrites(): number {
    return this.#written - this.#head;
  }

  /** True when everything has been written. */
  get isWritten(): boolean {
    return this.#written === this.#entries.length;
  }

  /** True when one more stanza of `stanzaBytes` would exceed the bounds. */
  isFullFor(stanzaBytes: number, isOwed: boolean): boolean {
    const { maxItems, maxBytes, maxOwedBytes } = this.#limits;
    const bytes = stanzaBytes + UNACKED_OVERHEAD_BYTES;
    if (isOwed) return this.#owedBytes + bytes > maxOwedBytes;
    return this.items - this.#owedItems >= maxItems ||
      this.#bytes - this.#owedBytes + bytes > maxBytes;
  }

  /**
   * True when the budget has room for one more stanza.
   * @param isForLong true when no client will take it soon; the sender's share must then allow it too
   */
  hasBudgetFor(stanza: Stanza, { isOwed, isForLong }: {
    readonly isOwed: boolean;
    readonly isForLong: boolean;
  }): boolean {
    const bytes = stanza.bytes.length + UNACKED_OVERHEAD_BYTES;
    return this.#budget.mayGrow(bytes) && this.#tab.mayAdd(bytes) &&
      (isOwed || !isForLong ||
        this.#budget.mayOwe(this.#holdersOf(stanza), bytes));
  }

  /** True when the queue holds more than it may. */
  get isOver(): boolean {
    const { maxItems, maxBytes, maxOwedBytes } = this.#limits;
    return this.items - this.#owedItems > maxItems || this.#bytes - this.#owedBytes > maxBytes ||
      this.#owedBytes > maxOwedBytes;
  }

  /**
   * Keeps `delivery`, even past the bounds.
   * @param told the stanza as the client gets it, also when it gets it again
   * @returns true when the oldest one that its sender also kept was released for it: now only this queue
   * keeps that one
   */
  push(delivery: Delivery, told: Stanza = delivery.stanza): boolean {
    if (told !== delivery.stanza) this.#told.set(delivery, told);
    const bytes = this.#costOf(delivery);
    this.#entries.push(delivery);
    this.#bytes += bytes;
    this.#budget.grow(bytes);
    this.#tab.add(bytes);
    if (delivery.isOwed) {
      this.#owedItems++;
      this.#owedBytes += bytes;
    }
    return this.#entries.length - this.#released > this.#limits.maxUnsettled &&
      this.#entries[this.#released++]!.release();
  }

  /** True while a copy of `delivery` is kept. */
  hasCopyOf(delivery: Delivery): boolean {
    return this.all.some((each) => each.isCopyOf?.(delivery) === true);
  }

  /**
   * Keeps `delivery` in the place of a copy of it: the copy would be dropped when the session ends.
   * @param told as for `push`
   * @returns the copy; undefined, and nothing happens, when none is kept. "relayed": another node has
   *   it, and must be given `delivery`, too
   */
  replaceCopy(delivery: Delivery, told: Stanza): Delivery | "relayed" | undefined {
    const at = this.#entries.findIndex((each, at) =>
      at >= this.#head && each.isCopyOf?.(delivery) === true
    );
    const copy = this.#entries[at];
    if (copy === undefined) return undefined;
    if (at < this.#relayed) return "relayed";
    const before = this.#costOf(copy);
    if (at < this.#detached) this.#countForSender(copy, -1);
    this.#told.delete(copy);
    this.#entries[at] = delivery;
    if (told !== delivery.stanza) this.#told.set(delivery, told);
    const more = this.#costOf(delivery) - before;
    this.#bytes += more;
    this.#budget.grow(more);
    this.#tab.add(more);
    if (at < this.#detached) {
      this.#countForSender(delivery, 1);
      this.#detachOne(delivery);
    }
    if (at < this.#released) delivery.release();
    return copy;
  }

  /** The unacknowledged stanzas, in order. */
  get all(): readonly Delivery[] {
    return this.#entries.slice(this.#head);
  }

  /** The oldest unacknowledged stanza. */
  get first(): Delivery | undefined {
    return this.#entries[this.#head];
  }

  /**
   * Removes the oldest stanza, which the client must not get. Called only while no stream carries the
   * rest.
   */
  dropFirst(): void {
    this.#leave();
    if (this.#written < this.#head) this.#written = this.#head;
    if (this.#relayed < this.#head) this.#relayed = this.#head;
    this.#tidy();
  }

  /** The next stanza to write; undefined when all are written. */
  get nextToWrite(): Delivery | undefined {
    return this.#entries[this.#written];
  }

  /** Returns a kept stanza as the client gets it. */
  toldOf(delivery: Delivery): Stanza {
    return this.#told.get(delivery) ?? delivery.stanza;
  }

  /** Marks the stanza of `nextToWrite` as written. */
  wrote(): void {
    this.#written++;
  }

  /** Marks everything as unwritten, because a new stream must write it again (XEP-0198 §5). */
  rewind(): void {
    this.#written = this.#head;
  }

  /** Stanzas that another node has received and not settled. */
  get relayed(): number {
    return this.#relayed - this.#head;
  }

  /** The next stanza to give to another node; undefined when that node has all. */
  get nextToRelay(): Delivery | undefined {
    return this.#entries[this.#relayed];
  }

  /** Marks the stanza of `nextToRelay` as given. */
  relayedNext(): void {
    this.#relayed++;
  }

  /** Marks all stanzas but the first `kept` as not yet given to another node. */
  rewindRelay(kept: number): void {
    this.#relayed = Math.min(this.#head + kept, this.#entries.length);
  }

  /** Calls `done` for the first `count` stanzas that another node has received, at most for all of them. */
  settle(count: number, done: (delivery: Delivery) => void): void {
    this.#take(Math.min(count, this.relayed), done);
    if (this.#written < this.#head) this.#written = this.#head;
    this.#tidy();
  }

  /**
   * Handles `h` of the client: calls `done` for the stanzas that it acknowledges now.
   * @returns false, and nothing happens, when it claims stanzas that were never written to it
   */
  acknowledge(h: number, done: (delivery: Delivery) => void): boolean {
    const count = distance(toHandled(this.#acknowledged), h);
    if (count > this.unacknowledgedWrites) return false;
    this.#take(count, done);
    if (this.#relayed < this.#head) this.#relayed = this.#head;
    this.#tidy();
    return true;
  }

  /** @param count at most the number of entries */
  #take(count: number, done: (delivery: Delivery) => void): void {
    for (let left = count; left > 0; left--) done(this.#leave());
    this.#acknowledged += count;
  }

  /** Removes the oldest stanza and its cost. */
  #leave(): Delivery {
    const delivery = this.#entries[this.#head]!;
    if (this.#head < this.#detached) this.#countForSender(delivery, -1);
    this.#head++;
    const bytes = this.#costOf(delivery);
    this.#told.delete(delivery);
    this.#bytes -= bytes;
    this.#budget.grow(-bytes);
    this.#tab.remove(bytes);
    if (delivery.isOwed) {
      this.#owedItems--;
      this.#owedBytes -= bytes;
    }
    if (this.#detached < this.#head) this.#detached = this.#head;
    if (this.#released < this.#head) this.#released = this.#head;
    return delivery;
  }

  /**
   * Copies every stanza into bytes of its own, so that it pins nothing else, and counts it for its
   * sender.
   */
  detach(): void {
    for (; this.#detached < this.#entries.length; this.#detached++) {
      const delivery = this.#entries[this.#detached]!;
      this.#detachOne(delivery);
      this.#countForSender(delivery, 1);
    }
  }

  #detachOne(delivery: Delivery): void {
    delivery.detach();
    const told = this.#told.get(delivery);
    if (told !== undefined && !areDetached(told.bytes)) {
      this.#told.set(delivery, { ...told, bytes: told.bytes.slice() });
    }
  }

  #costOf(delivery: Delivery): number {
    const told = this.#told.get(delivery)?.bytes.length ?? 0;
    return delivery.stanza.bytes.length + told + UNACKED_OVERHEAD_BYTES;
  }

  /** An owed error answers the account itself, so it counts for no sender. */
  #countForSender({ stanza, isOwed }: Delivery, sign: 1 | -1): void {
    if (isOwed) return;
    const bytes = stanza.bytes.length + UNACKED_OVERHEAD_BYTES;
    this.#budget.owe(this.#holdersOf(stanza), sign * bytes);
  }

  #holdersOf({ from }: Stanza): Holders {
    return senderHolders(from, this.#isUserHost(from.domainpart));
  }

  /** Empties the queue and returns its stanzas in order, each also as the client gets it. */
  takeAllTold(): (readonly [Delivery, Stanza])[] {
    const told = this.all.map((each) => [each, this.toldOf(each)] as const);
    this.takeAll();
    return told;
  }

  /** Empties the queue and returns the unacknowledged stanzas in order. */
  takeAll(): Delivery[] {
    const taken = [...this.all];
    for (let at = this.#head; at < this.#detached; at++) {
      this.#countForSender(this.#entries[at]!, -1);
    }
    this.#budget.grow(-this.#bytes);
    this.#tab.remove(this.#bytes);
    this.#entries = [];
    this.#told.clear();
    this.#head = 0;
    this.#written = 0;
    this.#relayed = 0;
    this.#detached = 0;
    this.#released = 0;
    this.#bytes = 0;
    this.#owedItems = 0;
    this.#owedBytes = 0;
    return taken;
  }

  /** Frees the slots of removed entries: at once when the queue is empty, else now and then. */
  #tidy(): void {
    const head = this.#head;
    if (head === this.#entries.length) this.#entries.length = 0;
    else if (head >= 256 && head * 2 >= this.#entries.length) this.#entries.splice(0, head);
    else return;
    this.#head = 0;
    this.#written -= head;
    this.#relayed = Math.max(0, this.#relayed - head);
    this.#detached -= head;
    this.#released -= head;
  }
}
