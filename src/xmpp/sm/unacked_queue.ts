import { FairShares, RETAINED_OVERHEAD_BYTES, ShareTab } from "../../base/mod.ts";
import type { Holders } from "../../base/mod.ts";
import { recipientHolders, senderHolders } from "../holders.ts";
import type { FullJid } from "../jid.ts";
import type { Stanza } from "../stanza.ts";
import { distance, toHandled } from "./counter.ts";
import type { Delivery } from "./delivery.ts";

/** What keeping a stanza costs besides its bytes. */
export const UNACKED_OVERHEAD_BYTES = RETAINED_OVERHEAD_BYTES;

/** Bounds of one session's queue. */
export interface UnackedLimits {
  readonly maxItems: number;
  readonly maxBytes: number;
  /** Stanzas that whoever sent them keeps as well. */
  readonly maxUnsettled: number;
  /** Bytes that errors which are owed may cost besides. */
  readonly maxOwedBytes: number;
}

/** What a queue begins with. */
export interface UnackedStart {
  /** Stanzas that count as acknowledged already. @default 0 */
  readonly acknowledged?: number;
  /** The bound that all queues of the process share. @default none */
  readonly budget?: FairShares;
  /** Whose share of it this queue counts for: its account's. @default nobody's */
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
 * What it keeps counts for its account's share of the budget, and what has waited long enough to have bytes
 * of its own (`detach`) for that of its sender too. Pure: it knows no connection, clock or log.
 */
export class UnackedQueue {
  readonly #budget: FairShares;
  readonly #tab: ShareTab;
  /** True for a domain whose accounts have a share each. */
  readonly #isUserHost: (domain: string) => boolean;
  readonly #limits: UnackedLimits;
  #entries: Delivery[] = [];
  /** Index of the first entry that is not acknowledged. */
  #head = 0;
  /** Index behind the last entry that was written on the present stream. */
  #written = 0;
  /** Index behind the last entry that was given to another node; of no meaning before `rewindRelay`. */
  #relayed = 0;
  /** Index behind the last entry that nobody else has to keep any more. */
  #released = 0;
  /** Index behind the last entry that has bytes of its own, and counts for its sender. */
  #detached = 0;
  #bytes = 0;
  #owedItems = 0;
  #owedBytes = 0;
  #acknowledged = 0;

  constructor(
    limits: UnackedLimits,
    { acknowledged = 0, budget = new FairShares(), jid, isUserHost }: UnackedStart = {},
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

  /** Bytes that they cost. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Stanzas acknowledged since the beginning. */
  get acknowledgedCount(): number {
    return this.#acknowledged;
  }

  /** The number of the last stanza written, as the client counts. */
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

  /** True when one more stanza of `stanzaBytes` would be more than it may hold. */
  isFullFor(stanzaBytes: number, isOwed: boolean): boolean {
    const { maxItems, maxBytes, maxOwedBytes } = this.#limits;
    const bytes = stanzaBytes + UNACKED_OVERHEAD_BYTES;
    if (isOwed) return this.#owedBytes + bytes > maxOwedBytes;
    return this.items - this.#owedItems >= maxItems ||
      this.#bytes - this.#owedBytes + bytes > maxBytes;
  }

  /**
   * True when the budget has room for one more stanza.
   * @param isForLong the sender's share must allow it too, as nobody is there to take it soon
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

  /** True when it holds more than it may. */
  get isOver(): boolean {
    const { maxItems, maxBytes, maxOwedBytes } = this.#limits;
    return this.items - this.#owedItems > maxItems || this.#bytes - this.#owedBytes > maxBytes ||
      this.#owedBytes > maxOwedBytes;
  }

  /**
   * Keeps `delivery`, whatever the bounds.
   * @returns true when the oldest that others kept too was released for it: only here is it kept now
   */
  push(delivery: Delivery): boolean {
    const bytes = delivery.stanza.bytes.length + UNACKED_OVERHEAD_BYTES;
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

  /** The oldest one that is not acknowledged. */
  get first(): Delivery | undefined {
    return this.#entries[this.#head];
  }

  /** Takes out the oldest one, which the client is not to get; only while no stream carries the rest. */
  dropFirst(): void {
    this.#leave();
    if (this.#written < this.#head) this.#written = this.#head;
    if (this.#relayed < this.#head) this.#relayed = this.#head;
    this.#tidy();
  }

  /** The next one to write; undefined when all are. */
  get nextToWrite(): Delivery | undefined {
    return this.#entries[this.#written];
  }

  /** The one that `nextToWrite` named has been written. */
  wrote(): void {
    this.#written++;
  }

  /** On a new stream everything is to be written again (XEP-0198 §5). */
  rewind(): void {
    this.#written = this.#head;
  }

  /** Stanzas that another node was given and has not settled. */
  get relayed(): number {
    return this.#relayed - this.#head;
  }

  /** The next one to give to another node; undefined when it has all. */
  get nextToRelay(): Delivery | undefined {
    return this.#entries[this.#relayed];
  }

  /** The one that `nextToRelay` named is on its way. */
  relayedNext(): void {
    this.#relayed++;
  }

  /** All but the first `kept` are to be given to another node, again. */
  rewindRelay(kept: number): void {
    this.#relayed = Math.min(this.#head + kept, this.#entries.length);
  }

  /** Calls `done` for the first `count` of those that another node was given, at most. */
  settle(count: number, done: (delivery: Delivery) => void): void {
    this.#take(Math.min(count, this.relayed), done);
    if (this.#written < this.#head) this.#written = this.#head;
    this.#tidy();
  }

  /**
   * The client has handled `h` stanzas: calls `done` for those it had not acknowledged before.
   * @returns false, and nothing happens, when it claims what was never written to it
   */
  acknowledge(h: number, done: (delivery: Delivery) => void): boolean {
    const count = distance(toHandled(this.#acknowledged), h);
    if (count > this.unacknowledgedWrites) return false;
    this.#take(count, done);
    if (this.#relayed < this.#head) this.#relayed = this.#head;
    this.#tidy();
    return true;
  }

  /** @param count not above what is there */
  #take(count: number, done: (delivery: Delivery) => void): void {
    for (let left = count; left > 0; left--) done(this.#leave());
    this.#acknowledged += count;
  }

  /** Takes the oldest one out of the account. */
  #leave(): Delivery {
    const delivery = this.#entries[this.#head]!;
    if (this.#head < this.#detached) this.#countForSender(delivery, -1);
    this.#head++;
    const bytes = delivery.stanza.bytes.length + UNACKED_OVERHEAD_BYTES;
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

  /** Gives everything held bytes of its own, so that it pins nothing else, and counts it for its senders. */
  detach(): void {
    for (; this.#detached < this.#entries.length; this.#detached++) {
      const delivery = this.#entries[this.#detached]!;
      delivery.detach();
      this.#countForSender(delivery, 1);
    }
  }

  /** What a node answers the account with is nobody else's doing. */
  #countForSender({ stanza, isOwed }: Delivery, sign: 1 | -1): void {
    if (isOwed) return;
    const bytes = stanza.bytes.length + UNACKED_OVERHEAD_BYTES;
    this.#budget.owe(this.#holdersOf(stanza), sign * bytes);
  }

  #holdersOf({ from }: Stanza): Holders {
    return senderHolders(from, this.#isUserHost(from.domainpart));
  }

  /** Empties the queue: what the client has not acknowledged, in order. */
  takeAll(): Delivery[] {
    const taken = this.#entries.slice(this.#head);
    for (let at = this.#head; at < this.#detached; at++) {
      this.#countForSender(this.#entries[at]!, -1);
    }
    this.#budget.grow(-this.#bytes);
    this.#tab.remove(this.#bytes);
    this.#entries = [];
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

  /** Forgets the places of what is gone: at once when nothing is left, else now and then. */
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
