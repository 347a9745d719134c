import type { CancelTimer, Holders } from "../../base/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import type { Envelope } from "../envelope.ts";

/** A stanza that the bounce store holds. */
export interface HeldStanza {
  readonly envelope: Envelope;
  /** Holders of the stanza's shares of the bounds. */
  readonly holders: Holders;
  /** Monotonic milliseconds of its next retry. */
  dueMs: number;
}

/** Retry that waits for its payer's rate. */
export interface BookedRetry {
  readonly payer: string | undefined;
  readonly atMs: number;
}

/** One round of retries of an address. */
export interface RetryRound {
  /** Stanzas due until then have used up a retry. */
  readonly untilMs: number;
  readonly maxRetries: number;
  /** Returns the time of a stanza's next retry. */
  readonly dueMs: (envelope: Envelope) => number;
}

interface CameBack {
  readonly stanzas: HeldStanza[];
  /** The last waiting stanza of each sender. */
  readonly lastBySender: Map<string, Envelope>;
}

/**
 * Stanzas that bounce for one address, in order, with the state of its retries. Stanzas that come
 * back to it within one moment take their places by age.
 */
export class HeldAddress {
  readonly key: Jid;
  /** Cancels the timer of the next retry; undefined while there is none. */
  cancel: CancelTimer | undefined;
  /** Time at which the timer is due, while there is one. */
  dueMs = Infinity;
  /** True while the first stanzas wait before they are sent to where the recipient is. */
  isPreparing = false;
  /** Retry that waits for its payer's rate. */
  booked: BookedRetry | undefined;
  /** True while a lookup is under way: its end decides what happens next. */
  isLooking = false;
  /**
   * True when the address was revealed during that lookup, whose answer may be older than the
   * reveal.
   */
  isRevealed = false;
  readonly #senderOf: (envelope: Envelope) => string;
  #stanzas: HeldStanza[] = [];
  /** Returned stanzas that are not yet merged into `#stanzas`; nothing is sent until they are. */
  #cameBack: CameBack | undefined;
  #isReleasing = false;

  /** @param senderOf returns the key of the sender within whose stanzas order is kept */
  constructor(key: Jid, senderOf: (envelope: Envelope) => string) {
    this.key = key;
    this.#senderOf = senderOf;
  }

  /** True while nothing waits, except for stanzas that are coming back. */
  get isEmpty(): boolean {
    return this.#stanzas.length === 0;
  }

  /**
   * True while nothing may be sent: its stanzas are being sent already (delivering one may reveal
   * the same address again), more are coming back, or the first ones are being prepared.
   */
  get isStill(): boolean {
    return this.#isReleasing || this.isPreparing || this.#cameBack !== undefined;
  }

  /** True while more stanzas are coming back. */
  get isExpecting(): boolean {
    return this.#cameBack !== undefined;
  }

  /** The stanzas, in order. */
  get stanzas(): readonly HeldStanza[] {
    return this.#stanzas;
  }

  /** Adds a stanza behind all others. */
  push(held: HeldStanza): void {
    this.#stanzas.push(held);
    this.#cameBack?.lastBySender.set(this.#senderOf(held.envelope), held.envelope);
  }

  /** Begins to collect returned stanzas, until `merge`. */
  expectMore(): void {
    const lastBySender = new Map<string, Envelope>();
    for (const { envelope } of this.#stanzas) lastBySender.set(this.#senderOf(envelope), envelope);
    this.#cameBack = { stanzas: [], lastBySender };
  }

  /** True when a younger stanza of the same sender waits here. Called after `expectMore`. */
  hasYounger(envelope: Envelope): boolean {
    const last = this.#cameBack?.lastBySender.get(this.#senderOf(envelope));
    return last !== undefined && envelope.isOlderThan(last);
  }

  /** Collects a returned stanza. Called after `expectMore`. */
  comeBack(held: HeldStanza): void {
    this.#cameBack!.stanzas.push(held);
  }

  /** Merges the returned stanzas in order; false when they are merged already. */
  merge(): boolean {
    const cameBack = this.#cameBack;
    if (cameBack === undefined) return false;
    this.#cameBack = undefined;
    const bySender = Map.groupBy(cameBack.stanzas, ({ envelope }) => this.#senderOf(envelope));
    const next = new Map<string, number>();
    const merged: HeldStanza[] = [];
    for (const held of this.#stanzas) {
      const sender = this.#senderOf(held.envelope);
      const returned = bySender.get(sender);
      let at = next.get(sender) ?? 0;
      while (returned !== undefined && at < returned.length) {
        if (!returned[at]!.envelope.isOlderThan(held.envelope)) break;
        merged.push(returned[at++]!);
      }
      next.set(sender, at);
      merged.push(held);
    }
    for (const [sender, returned] of bySender) {
      // Pushed one by one, as a spread would pass more arguments than a call can have.
      for (let at = next.get(sender) ?? 0; at < returned.length; at++) merged.push(returned[at]!);
    }
    this.#stanzas = merged;
    return true;
  }

  /** Time of the first retry that a stanza waits for; Infinity without one. */
  get firstDueMs(): number {
    let dueMs = Infinity;
    for (const held of this.#stanzas) dueMs = Math.min(dueMs, held.dueMs);
    return dueMs;
  }

  /** Sends from the front until `send` refuses one. The rest stays in its order. */
  release(send: (held: HeldStanza) => boolean): void {
    const stanzas = this.#stanzas;
    this.#stanzas = [];
    this.#isReleasing = true;
    let next = 0;
    while (next < stanzas.length && send(stanzas[next]!)) next++;
    this.#isReleasing = false;
    // In most cases no stanza was sent: then all stays as it was.
    if (next === 0 && this.#stanzas.length === 0) this.#stanzas = stanzas;
    else this.#stanzas = [...stanzas.slice(next), ...this.#stanzas];
  }

  /** Counts a retry of the stanzas that were due; takes those that are out of retries. */
  takeSpent({ untilMs, maxRetries, dueMs }: RetryRound): readonly HeldStanza[] {
    const kept: HeldStanza[] = [];
    const spent: HeldStanza[] = [];
    /** Due time of each sender's last stanza that stays. */
    const dueMsBySender = new Map<string, number>();
    for (const held of this.#stanzas) {
      const { envelope } = held;
      const sender = this.#senderOf(envelope);
      if (held.dueMs <= untilMs) {
        const isSpent = ++envelope.bounces >= maxRetries;
        const earlierDueMs = dueMsBySender.get(sender);
        if (!isSpent) held.dueMs = dueMs(envelope);
        else if (earlierDueMs === undefined) {
          spent.push(held);
          continue;
        } else {
          // The jitter let it overtake its sender's earlier stanza: it is due again with that one.
          envelope.bounces = maxRetries - 1;
          held.dueMs = earlierDueMs;
        }
      }
      kept.push(held);
      dueMsBySender.set(sender, held.dueMs);
    }
    this.#stanzas = kept;
    return spent;
  }

  /** Takes all stanzas, in order. */
  takeAll(): readonly HeldStanza[] {
    this.merge();
    const all = this.#stanzas;
    this.#stanzas = [];
    return all;
  }
}
