import { backoffMs, FairShares, RateLimit, RETAINED_OVERHEAD_BYTES } from "../../base/mod.ts";
import type { CancelTimer, Clock, Holders, Random } from "../../base/mod.ts";
import { recipientHolders } from "../../xmpp/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import type { Envelope } from "../envelope.ts";
import type { RoutingMetrics } from "./routing_metrics.ts";

/** Options for holding stanzas without a known route; docs/promises.md, "Bounce". */
export interface BounceOptions {
  /** Milliseconds before the first retry; the n-th comes `resendAfterMs`·2^(n−1) later. @default 200 */
  readonly resendAfterMs?: number;
  /** Retries before the sender gets an error. @default 4 */
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

/** Reason why the store returns a held stanza. */
export type BounceFailure = "out-of-retries" | "full" | "stopping";

/** Callbacks by which the store uses the router. */
export interface BounceHandlers {
  /** Local host of `key` according to the cache alone. */
  cached(key: Jid): string | null | undefined;
  /**
   * Drops `keys`, all of one account or domain, from the cache and looks them up in one request.
   */
  relocate(keys: readonly Jid[]): Promise<readonly (string | undefined)[]>;
  /**
   * Sends the stanza on its way; false when no session or component answers to the address after
   * all.
   */
  release(envelope: Envelope, key: Jid, host: string): boolean;
  /** Answers the sender with an error. */
  giveUp(envelope: Envelope, why: BounceFailure): void;
  /** Key of the sender within whose stanzas order is kept. */
  senderOf(envelope: Envelope): string;
  /** Holders of the stanza's shares of the bounds, besides its recipient. */
  holdersOf(envelope: Envelope): Holders;
  /** Account or domain whose rate pays for the stanza's retries; undefined when they are free. */
  payerOf(envelope: Envelope): string | undefined;
  /** Takes a retry for now; false when the payer has no retry left at the moment. */
  takeRetry(envelope: Envelope): boolean;
  /** Books a retry of the stanza; returns the milliseconds until it may be made. */
  bookRetry(envelope: Envelope): number;
}

interface Held {
  readonly key: Jid;
  entries: Entry[];
  cancel: CancelTimer | undefined;
  /** Time at which the timer is due, while there is one. */
  dueMs: number;
  /** Retry that waits for its payer's rate. */
  booked: BookedRetry | undefined;
  /** True while a lookup is under way: its end decides what happens next. */
  isLooking: boolean;
  /**
   * True when the address was revealed during that lookup, whose answer may be older than the
   * reveal.
   */
  isRevealed: boolean;
  /** True while its stanzas are being sent: delivering one may reveal the same address again. */
  isReleasing: boolean;
  /** Returned stanzas that are not yet merged into `entries`; nothing is sent until they are. */
  cameBack: CameBack | undefined;
}

interface BookedRetry {
  readonly payer: string | undefined;
  readonly atMs: number;
}

/** All held addresses of one account or domain, whatever the resource. */
interface Group {
  readonly held: Set<Held>;
  /** Cancels the timer that acts on the latest reveal. */
  cancelReveal: CancelTimer | undefined;
  /** The address that was revealed last. */
  revealed: Jid;
}

interface CameBack {
  readonly entries: Entry[];
  /** The last waiting stanza of each sender. */
  readonly lastBySender: Map<string, Envelope>;
}

interface Entry {
  readonly envelope: Envelope;
  /** Holders of the stanza's shares of the bounds. */
  readonly holders: Holders;
  dueMs: number;
}

/**
 * Reveals of one account that are acted on at once after a quiet time, more than a login makes;
 * after those, one each `resendAfterMs`. An account that comes and goes all the time costs a
 * bounded number of lookups.
 */
const REVEAL_BURST = 8;
/**
 * Addresses of an account that one reveal looks up, the revealed one first. The others wait for a
 * retry.
 */
const MAX_REVEALED = 64;

/**
 * Holds stanzas whose recipient has no known place, by looked-up address and in order. Each sender,
 * recipient and datacenter has its fair share of the bounds (`FairShares`): one that fills its own
 * takes no room from the others.
 *
 * A later stanza to the same address waits behind an earlier one. This keeps order through a
 * bounce, also for stanzas that go back to their sender. One lookup serves all stanzas that wait
 * for one address, and all addresses of one account that are due together.
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
      /** A wider bound that held stanzas count for too. @default none */
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

  /** True when a stanza waits for this very address. */
  holds(key: Jid): boolean {
    return this.size > 0 && this.#held.has(key.text);
  }

  /**
   * Takes the stanza over, behind all others that wait for the same address. A stanza that is out
   * of retries or finds no room goes back to its sender.
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
    // Its payer waits for a booked retry: this stanza's retry must not come before that one.
    const isBooked = held.booked !== undefined &&
      held.booked.payer === this.#handlers.payerOf(envelope);
    this.#wakeAt(held, isBooked ? held.booked!.atMs : entry.dueMs);
  }

  /**
   * Takes over a returned stanza, to go before later stanzas of its sender that wait for the same
   * address. It takes no notice of the bounds, as the stanza was within those of a lane. Stanzas
   * returned in one moment are sent together, as soon as their destination is known.
   *
   * @param isAlone true when no other stanza of the sender waits elsewhere: then it may also be the
   * last
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
   * Acts on news of where this address, or its account, is: sends what waits for the account, in
   * order. An account that is revealed too often has to wait for the next time.
   */
  reveal(jid: Jid): void {
    if (this.size === 0) return;
    const group = this.#byBare.get(jid.bare.text);
    if (group === undefined) return;
    group.revealed = jid;
    if (group.cancelReveal !== undefined) return; // the pending timer acts on this reveal too
    const waitMs = this.#reveals.charge(jid.bare.text);
    if (waitMs === 0) return this.#findRevealed(group);
    this.#metrics.lookupsDelayed.reveal.inc();
    group.cancelReveal = this.#clock.after(waitMs, () => {
      group.cancelReveal = undefined;
      this.#findRevealed(group);
    });
  }

  /**
   * Sends what waits for this address, in order, to `host`, where it is known to be. Uses up no
   * retries. Returns true when nothing waits any more.
   */
  flush(key: Jid, host: string): boolean {
    const held = this.#held.get(key.text);
    if (held === undefined) return true;
    if (held.isReleasing || held.cameBack !== undefined) return false;
    this.#release(held, host);
    return held.entries.length === 0;
  }

  /** Returns all held stanzas to the router; for a graceful stop. */
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
    // A microtask later all that one lane, session or node returns is here.
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

  /** Merges the returned stanzas in order; false when there are none. */
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
      // Pushed one by one, as a spread would pass more arguments than a call can have.
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

  /** Sets the timer to `dueMs`, unless an earlier one is set. */
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

  /**
   * Looks up the address whose timer is due, with all addresses of its account that are due as
   * well.
   */
  #retry(held: Held): void {
    held.cancel = undefined;
    // Addresses that are due a moment later are included: many that wait for one account cost few
    // lookups.
    const untilMs = this.#clock.monotonicMs() + this.#options.resendAfterMs / 20;
    const due: Held[] = [];
    for (const each of this.#byBare.get(held.key.bare.text)?.held ?? []) {
      const isDue = each === held || (each.cancel !== undefined && each.dueMs <= untilMs);
      if (isDue && this.#mayRetry(each, untilMs)) due.push(each);
    }
    if (due.length > 0) this.#lookUp(due, untilMs);
  }

  /**
   * True when a payer of a due stanza has a retry left; otherwise sets the timer for the booked
   * one.
   */
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
    if (first === undefined) return true; // no stanza is due any more
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

  /**
   * Sends what waits for these addresses of one account. Looks up those that the cache does not
   * know.
   */
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

  /** @param untilMs stanzas due until then have used a retry */
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

  /** Sends from the front until one finds no session. The rest stays in its order. */
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
    // In most cases no stanza was sent: then all stays as it was.
    if (next === 0 && held.entries.length === 0) held.entries = entries;
    else held.entries = [...entries.slice(next), ...held.entries];
    if (held.entries.length === 0 && held.cameBack === undefined) this.#forget(held);
  }

  #countRetry(held: Held, untilMs: number): void {
    if (untilMs === -Infinity) return;
    const { maxRetries } = this.#options;
    const kept: Entry[] = [];
    const spent: Entry[] = [];
    /** Due time of each sender's last stanza that stays. */
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
          // The jitter let it overtake its sender's earlier stanza: it is due again with that one.
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

/** Returns the bytes that a stanza counts for. */
function costOf({ stanza }: Envelope): number {
  return stanza.bytes.length + RETAINED_OVERHEAD_BYTES;
}
