import { backoffMs, FairShares, RateLimit, RETAINED_OVERHEAD_BYTES } from "../../base/mod.ts";
import type { CancelTimer, Clock, Holders, Random } from "../../base/mod.ts";
import { recipientHolders } from "../../xmpp/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import type { Envelope } from "../envelope.ts";
import type { RoutingMetrics } from "./routing_metrics.ts";

/** How stanzas without a known route are held; docs/promises.md, "Bounce". */
export interface BounceOptions {
  /** Milliseconds before the first retry; the n-th comes `resendAfterMs`·2^(n−1) later. @default 200 */
  readonly resendAfterMs?: number;
  /** Retries before the sender is told. @default 4 */
  readonly maxRetries?: number;
  /** Stanzas held at once. @default 100000 */
  readonly maxItems?: number;
  /** Bytes held at once, counting what each stanza costs besides its text. @default 67108864 */
  readonly maxBytes?: number;
}

/** Fills in the defaults. */
export function resolveBounceOptions(options: BounceOptions): Required<BounceOptions> {
  return Object.freeze({
    resendAfterMs: options.resendAfterMs ?? 200,
    maxRetries: options.maxRetries ?? 4,
    maxItems: options.maxItems ?? 100_000,
    maxBytes: options.maxBytes ?? 64 * 1024 * 1024,
  });
}

/** Why a held stanza is given back. */
export type BounceFailure = "out-of-retries" | "full" | "stopping";

/** What bouncing asks of the router. */
export interface BounceHandlers {
  /** Local host as far as is known here. */
  cached(key: Jid): string | null | undefined;
  /** Drops recipients, all of one account or domain, from the cache and looks them up again together. */
  relocate(keys: readonly Jid[]): Promise<readonly (string | undefined)[]>;
  /** Sends the stanza on its way; false when nobody answers to the address after all. */
  release(envelope: Envelope, key: Jid, host: string): boolean;
  /** Answers the sender. */
  giveUp(envelope: Envelope, why: BounceFailure): void;
  /** Whose order it is kept in. */
  senderOf(envelope: Envelope): string;
  /** Whose shares of the bounds it counts for, besides its recipient's. */
  holdersOf(envelope: Envelope): Holders;
  /** Who pays for its retries; undefined when they are free. */
  payerOf(envelope: Envelope): string | undefined;
  /** Takes a retry of it that may be made now; false when its payer has none left for the moment. */
  takeRetry(envelope: Envelope): boolean;
  /** Books a retry of it; milliseconds until it may be made. */
  bookRetry(envelope: Envelope): number;
}

interface Held {
  readonly key: Jid;
  entries: Entry[];
  cancel: CancelTimer | undefined;
  /** When the timer is due, while there is one. */
  dueMs: number;
  /** The retry that waits for its payer's rate. */
  booked: BookedRetry | undefined;
  /** True while a lookup is under way: its end decides what happens next. */
  isLooking: boolean;
  /** True when the address was revealed during that lookup, whose answer may be from before. */
  isRevealed: boolean;
  /** True while its stanzas are being sent: delivering one may reveal the same address again. */
  isReleasing: boolean;
  /** What has just come back and has not got its place yet; nothing goes until it has. */
  cameBack: CameBack | undefined;
}

interface BookedRetry {
  readonly payer: string | undefined;
  readonly atMs: number;
}

/** All that waits for one account or domain, whatever the resource. */
interface Group {
  readonly held: Set<Held>;
  /** Ends the wait for the next time that a reveal may be acted on. */
  cancelReveal: CancelTimer | undefined;
  /** The address that was revealed last. */
  revealed: Jid;
}

interface CameBack {
  readonly entries: Entry[];
  /** The last of each sender that waits. */
  readonly lastBySender: Map<string, Envelope>;
}

interface Entry {
  readonly envelope: Envelope;
  /** Whose shares it counts for. */
  readonly holders: Holders;
  dueMs: number;
}

/**
 * Reveals of one account that are acted on at once after a quiet time, more than a login makes; past
 * that one each `resendAfterMs`. Who comes and goes all the time costs a bounded number of lookups.
 */
const REVEAL_BURST = 8;
/** Addresses of an account that one reveal looks up, the revealed one first; the others wait for a retry. */
const MAX_REVEALED = 64;

/**
 * Holds stanzas whose recipient nobody can place, per looked-up address and in order. Each sender,
 * recipient and datacenter has its fair share of the bounds (`FairShares`): one that fills its own
 * takes no room from the others.
 *
 * A later stanza to the same address waits behind an earlier one, so that order is kept through a bounce,
 * also when they go back to their sender; one lookup serves all that wait for one address, and for
 * all addresses of one account that are due together.
 */
export class BounceStore {
  readonly #options: Required<BounceOptions>;
  readonly #handlers: BounceHandlers;
  readonly #metrics: RoutingMetrics;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #held = new Map<string, Held>();
  readonly #byBare = new Map<string, Group>();
  readonly #reveals: RateLimit;
  readonly #lookups = new Set<Promise<void>>();
  readonly #shares: FairShares;
  #isStopped = false;

  constructor(
    options: BounceOptions,
    handlers: BounceHandlers,
    deps: {
      readonly metrics: RoutingMetrics;
      readonly clock: Clock;
      readonly random: Random;
      /** A wider bound that what is held counts for. @default none */
      readonly budget?: FairShares;
    },
  ) {
    this.#options = resolveBounceOptions(options);
    const { maxItems, maxBytes } = this.#options;
    this.#shares = new FairShares({
      maxItems,
      maxBytes,
      ...(deps.budget !== undefined && { within: deps.budget }),
    });
    this.#handlers = handlers;
    this.#metrics = deps.metrics;
    this.#clock = deps.clock;
    this.#random = deps.random;
    const perSec = 1000 / Math.max(1, this.#options.resendAfterMs);
    this.#reveals = new RateLimit({ perSec, burst: REVEAL_BURST }, deps.clock);
  }

  /** Stanzas held. */
  get size(): number {
    return this.#shares.items;
  }

  /** True when something waits for this very address. */
  holds(key: Jid): boolean {
    return this.size > 0 && this.#held.has(key.text);
  }

  /**
   * Takes the stanza over, behind all that waits for the same address. A stanza that is out of retries
   * or finds no room goes back to its sender.
   */
  hold(envelope: Envelope, key: Jid): void {
    if (envelope.bounces >= this.#options.maxRetries) {
      return this.#handlers.giveUp(envelope, "out-of-retries");
    }
    const holders = this.#holdersOf(envelope, key);
    if (!this.#shares.mayHold(holders, costOf(envelope))) {
      return this.#handlers.giveUp(envelope, "full");
    }
    if (this.#isStopped) return this.#handlers.giveUp(envelope, "stopping");
    let held = this.#held.get(key.text);
    if (held === undefined) {
      held = {
        key,
        entries: [],
        cancel: undefined,
        dueMs: Infinity,
        booked: undefined,
        isLooking: false,
        isRevealed: false,
        isReleasing: false,
        cameBack: undefined,
      };
      this.#held.set(key.text, held);
      const group = this.#byBare.get(key.bare.text);
      if (group !== undefined) group.held.add(held);
      else {
        const started = { held: new Set([held]), cancelReveal: undefined, revealed: key };
        this.#byBare.set(key.bare.text, started);
      }
    }
    const entry = this.#take(envelope, holders);
    held.entries.push(entry);
    held.cameBack?.lastBySender.set(this.#handlers.senderOf(envelope), envelope);
    // Its payer has to wait for the retry that is booked: this one does not come before.
    const isBooked = held.booked !== undefined &&
      held.booked.payer === this.#handlers.payerOf(envelope);
    this.#wakeAt(held, isBooked ? held.booked!.atMs : entry.dueMs);
  }

  /**
   * Takes over what comes back from where it had been sent, to go before what its sender has sent since
   * and waits for the same address; whatever the bounds, for it was within those of a lane. What comes
   * back in one moment goes together, as soon as it is known where to.
   *
   * @param isAlone true when nothing of its sender waits elsewhere: then it may also be the last
   * @returns false when it has no place here
   */
  holdAgain(envelope: Envelope, key: Jid, isAlone: boolean): boolean {
    const held = this.size > 0 ? this.#held.get(key.text) : undefined;
    if (held === undefined) return false;
    const cameBack = held.cameBack ??= this.#expectMore(held);
    const last = cameBack.lastBySender.get(this.#handlers.senderOf(envelope));
    if (!isAlone && (last === undefined || !envelope.isOlderThan(last))) return false;
    cameBack.entries.push(this.#take(envelope, this.#holdersOf(envelope, key)));
    return true;
  }

  /**
   * Something revealed where this address, or its account, is: what waits for the account goes, in order.
   * An account that is revealed again and again has to wait for the next time.
   */
  reveal(jid: Jid): void {
    if (this.size === 0) return;
    const group = this.#byBare.get(jid.bare.text);
    if (group === undefined) return;
    group.revealed = jid;
    if (group.cancelReveal !== undefined) return; // one is to come, and acts on this too
    const waitMs = this.#reveals.charge(jid.bare.text);
    if (waitMs === 0) return this.#findRevealed(group);
    this.#metrics.lookupsDelayed.reveal.inc();
    group.cancelReveal = this.#clock.after(waitMs, () => {
      group.cancelReveal = undefined;
      this.#findRevealed(group);
    });
  }

  /**
   * Sends what waits for this address, in order, to `host`, where it is known to be. Retries are not used
   * up. True when nothing waits any more.
   */
  flush(key: Jid, host: string): boolean {
    const held = this.#held.get(key.text);
    if (held === undefined) return true;
    if (held.isReleasing || held.cameBack !== undefined) return false;
    this.#release(held, host);
    return held.entries.length === 0;
  }

  /** Gives everything up; for a graceful stop. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const held of [...this.#held.values()]) {
      this.#merge(held);
      const entries = held.entries;
      this.#forget(held);
      for (const entry of entries) {
        this.#letGo(entry, costOf(entry.envelope));
        this.#handlers.giveUp(entry.envelope, "stopping");
      }
    }
    await Promise.all(this.#lookups);
  }

  #dueMs(envelope: Envelope): number {
    const { resendAfterMs } = this.#options;
    return this.#clock.monotonicMs() + backoffMs(
      envelope.bounces + 1,
      { firstMs: resendAfterMs, maxMs: Number.MAX_SAFE_INTEGER },
      this.#random,
    );
  }

  #holdersOf(envelope: Envelope, key: Jid): Holders {
    const { singles, crowds } = this.#handlers.holdersOf(envelope);
    return { singles: [...singles, ...recipientHolders(key.bare.text).singles], crowds };
  }

  #take(envelope: Envelope, holders: Holders): Entry {
    envelope.detach();
    this.#metrics.bounceHeld.inc();
    this.#shares.hold(holders, costOf(envelope));
    this.#showSize();
    return { envelope, holders, dueMs: this.#dueMs(envelope) };
  }

  #letGo({ holders }: Entry, cost: number): void {
    this.#shares.release(holders, cost);
    this.#showSize();
  }

  #expectMore(held: Held): CameBack {
    const { senderOf } = this.#handlers;
    // A microtask later: then all that one lane, session or node gives back is here.
    queueMicrotask(() => {
      if (!this.#merge(held)) return;
      this.#find([held]);
      this.#schedule(held);
    });
    return {
      entries: [],
      lastBySender: new Map(held.entries.map(({ envelope }) => [senderOf(envelope), envelope])),
    };
  }

  /** Gives what came back its place; false when nothing has. */
  #merge(held: Held): boolean {
    const { cameBack } = held;
    if (cameBack === undefined) return false;
    held.cameBack = undefined;
    const { senderOf } = this.#handlers;
    const bySender = Map.groupBy(cameBack.entries, ({ envelope }) => senderOf(envelope));
    const next = new Map<string, number>();
    const merged: Entry[] = [];
    for (const entry of held.entries) {
      const sender = senderOf(entry.envelope);
      const returned = bySender.get(sender);
      let at = next.get(sender) ?? 0;
      while (returned !== undefined && at < returned.length) {
        if (!returned[at]!.envelope.isOlderThan(entry.envelope)) break;
        merged.push(returned[at++]!);
      }
      next.set(sender, at);
      merged.push(entry);
    }
    for (const [sender, returned] of bySender) {
      // One by one: there is no bound to their number that a call's arguments would keep to.
      for (let at = next.get(sender) ?? 0; at < returned.length; at++) merged.push(returned[at]!);
    }
    held.entries = merged;
    return true;
  }

  #schedule(held: Held): void {
    let dueMs = Infinity;
    for (const entry of held.entries) dueMs = Math.min(dueMs, entry.dueMs);
    held.cancel?.();
    held.cancel = undefined;
    this.#wakeAt(held, dueMs);
  }

  /** Looks again then, unless it does so before. */
  #wakeAt(held: Held, dueMs: number): void {
    if (held.isLooking || dueMs === Infinity) return;
    if (held.cancel !== undefined && held.dueMs <= dueMs) return;
    held.cancel?.();
    held.dueMs = dueMs;
    held.cancel = this.#clock.after(
      Math.max(0, dueMs - this.#clock.monotonicMs()),
      () => this.#retry(held),
    );
  }

  /** Looks up the address whose timer is due, and with it all of its account that are due as well. */
  #retry(held: Held): void {
    held.cancel = undefined;
    // What is due a moment later goes along: a crowd waiting for one account costs few lookups.
    const untilMs = this.#clock.monotonicMs() + this.#options.resendAfterMs / 20;
    const due: Held[] = [];
    for (const each of this.#byBare.get(held.key.bare.text)?.held ?? []) {
      const isDue = each === held || (each.cancel !== undefined && each.dueMs <= untilMs);
      if (isDue && this.#mayRetry(each, untilMs)) due.push(each);
    }
    if (due.length > 0) this.#lookUp(due, untilMs);
  }

  /** True when somebody whose stanzas are due pays for a lookup; otherwise it is tried again later. */
  #mayRetry(held: Held, untilMs: number): boolean {
    const nowMs = this.#clock.monotonicMs();
    const { booked } = held;
    if (booked !== undefined && booked.atMs <= nowMs) {
      held.booked = undefined;
      return true;
    }
    const { payerOf, takeRetry, bookRetry } = this.#handlers;
    const asked = new Set(booked === undefined ? [] : [booked.payer]);
    let first: Envelope | undefined;
    for (const { envelope, dueMs } of held.entries) {
      if (dueMs > untilMs) continue;
      first ??= envelope;
      const payer = payerOf(envelope);
      if (asked.has(payer)) continue;
      asked.add(payer);
      if (!takeRetry(envelope)) continue;
      return true;
    }
    if (first === undefined) return true; // all have gone by now: there is nothing to look up
    if (booked === undefined) {
      this.#metrics.lookupsDelayed.retry.inc();
      held.booked = { payer: payerOf(first), atMs: nowMs + bookRetry(first) };
    }
    held.cancel?.();
    held.cancel = undefined;
    this.#wakeAt(held, held.booked!.atMs);
    return false;
  }

  #findRevealed({ held, revealed }: Group): void {
    const first = [this.#held.get(revealed.text), this.#held.get(revealed.bare.text)];
    const found = new Set(first.filter((each) => each !== undefined));
    for (const each of held) {
      if (found.size >= MAX_REVEALED) break;
      found.add(each);
    }
    this.#find([...found]);
  }

  /** Sends what waits for these addresses of one account, where memory or else Redis knows where they are. */
  #find(all: readonly Held[]): void {
    const unknown: Held[] = [];
    for (const held of all) {
      if (held.isReleasing || held.cameBack !== undefined) continue;
      const host = this.#handlers.cached(held.key);
      if (typeof host === "string") this.#release(held, host);
      else if (held.isLooking) held.isRevealed = true;
      else unknown.push(held);
    }
    if (unknown.length > 0) this.#lookUp(unknown);
  }

  /** @param untilMs counts a retry of what is due until then */
  #lookUp(all: readonly Held[], untilMs = -Infinity): void {
    for (const held of all) {
      held.cancel?.();
      held.cancel = undefined;
      held.isLooking = true;
      held.isRevealed = false;
    }
    const lookup = this.#handlers.relocate(all.map(({ key }) => key)).then((hosts) => {
      for (const [i, held] of all.entries()) this.#lookedUp(held, hosts[i], untilMs);
    });
    this.#lookups.add(lookup);
    void lookup.then(() => this.#lookups.delete(lookup));
  }

  #lookedUp(held: Held, host: string | undefined, untilMs: number): void {
    held.isLooking = false;
    this.#merge(held);
    if (held.entries.length === 0) return;
    if (host !== undefined) this.#release(held, host);
    this.#countRetry(held, untilMs);
    if (held.entries.length === 0) return this.#forget(held);
    if (held.isRevealed) this.#find([held]);
    this.#schedule(held);
  }

  /** Sends from the front until one finds nobody; what is left stays in its order. */
  #release(held: Held, host: string): void {
    const entries = held.entries;
    held.entries = [];
    held.isReleasing = true;
    let next = 0;
    for (; next < entries.length; next++) {
      const entry = entries[next]!;
      const cost = costOf(entry.envelope);
      if (!this.#handlers.release(entry.envelope, held.key, host)) break;
      this.#letGo(entry, cost);
    }
    held.isReleasing = false;
    // Mostly nobody answers to the address still: then all stays as it was.
    if (next === 0 && held.entries.length === 0) held.entries = entries;
    else held.entries = [...entries.slice(next), ...held.entries];
    if (held.entries.length === 0 && held.cameBack === undefined) this.#forget(held);
  }

  #countRetry(held: Held, untilMs: number): void {
    if (untilMs === -Infinity) return;
    const { maxRetries } = this.#options;
    const kept: Entry[] = [];
    const spent: Entry[] = [];
    /** When the last of each sender that stays is due. */
    const dueMsBySender = new Map<string, number>();
    for (const entry of held.entries) {
      const { envelope } = entry;
      const sender = this.#handlers.senderOf(envelope);
      if (entry.dueMs <= untilMs) {
        const isSpent = ++envelope.bounces >= maxRetries;
        const earlierDueMs = dueMsBySender.get(sender);
        if (!isSpent) entry.dueMs = this.#dueMs(envelope);
        else if (earlierDueMs === undefined) {
          spent.push(entry);
          continue;
        } else {
          // The dice let it overtake its sender's earlier one: it comes back behind that.
          envelope.bounces = maxRetries - 1;
          entry.dueMs = earlierDueMs;
        }
      }
      kept.push(entry);
      dueMsBySender.set(sender, entry.dueMs);
    }
    held.entries = kept;
    for (const entry of spent) {
      this.#letGo(entry, costOf(entry.envelope));
      this.#handlers.giveUp(entry.envelope, "out-of-retries");
    }
  }

  #forget(held: Held): void {
    held.cancel?.();
    held.cancel = undefined;
    held.entries = [];
    if (this.#held.get(held.key.text) !== held) return;
    this.#held.delete(held.key.text);
    const group = this.#byBare.get(held.key.bare.text);
    if (group === undefined || !group.held.delete(held) || group.held.size > 0) return;
    group.cancelReveal?.();
    this.#byBare.delete(held.key.bare.text);
  }

  #showSize(): void {
    this.#metrics.bounceQueueSize.set(this.#shares.items);
    this.#metrics.bounceQueueBytes.set(this.#shares.bytes);
  }
}

/** Bytes that a stanza counts for. */
function costOf({ stanza }: Envelope): number {
  return stanza.bytes.length + RETAINED_OVERHEAD_BYTES;
}
