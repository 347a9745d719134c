import { backoffMs, FairShares, RateLimit } from "../../base/mod.ts";
import type { CancelTimer, Clock, Holders, Random } from "../../base/mod.ts";
import { recipientHolders } from "../../xmpp/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import type { Envelope } from "../envelope.ts";
import { resolveBounceOptions } from "./bounce_options.ts";
import type { BounceFailure, BounceOptions } from "./bounce_options.ts";
import { HeldAddress } from "./held_address.ts";
import type { HeldStanza } from "./held_address.ts";
import { costOf } from "./holders_of.ts";
import type { RoutingMetrics } from "./routing_metrics.ts";

/** Callbacks by which the store uses the router. */
export interface BounceEvents {
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
  /** Takes notice of a stanza that begins to wait. */
  taken?(envelope: Envelope): void;
  /** Returns what a stanza waits for before it is sent on its way, a second at most. Never rejects. */
  waitFor?(envelope: Envelope): Promise<void> | undefined;
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

/** One address that stanzas wait for, for an operator. */
export interface BouncingAddress {
  readonly address: string;
  readonly stanzas: number;
  readonly bytes: number;
  /** Retries of the stanza that has had most of them. */
  readonly attempts: number;
  readonly maxAttempts: number;
  /** Milliseconds until the next retry; undefined while none is planned, as during a lookup. */
  readonly nextRetryInMs: number | undefined;
  /** True while a lookup of the address is under way. */
  readonly isLooking: boolean;
}

/** All held addresses of one account or domain, whatever the resource. */
interface Group {
  readonly held: Set<HeldAddress>;
  /** Cancels the timer that acts on the latest reveal. */
  cancelReveal: CancelTimer | undefined;
  /** The address that was revealed last. */
  revealed: Jid;
}

/**
 * Reveals of one account that are acted on at once after a quiet time: more than one login causes.
 * Further ones are acted on once each `resendAfterMs`, so that an account that comes and goes all
 * the time costs a bounded number of lookups.
 */
const REVEAL_BURST = 8;
/**
 * Addresses of an account that one reveal looks up, the revealed one first. The others wait for a
 * retry.
 */
const MAX_REVEALED = 64;

/** Stanzas of an address that are prepared together, before they are sent. */
const PREPARED_AT_ONCE = 64;

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
  #options: Required<BounceOptions>;
  readonly #events: BounceEvents;
  readonly #metrics: RoutingMetrics;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #held = new Map<string, HeldAddress>();
  readonly #byBare = new Map<string, Group>();
  #reveals: RateLimit;
  readonly #lookups = new Set<Promise<void>>();
  readonly #shares: FairShares;
  #isStopped = false;

  constructor(
    options: BounceOptions,
    events: BounceEvents,
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
    this.#events = events;
    this.#metrics = deps.metrics;
    this.#clock = deps.clock;
    this.#random = deps.random;
    this.#reveals = this.#newReveals();
  }

  /**
   * Takes another pace and number of retries from now on. Retries that are planned keep their times, and
   * the bounds on what is held stay.
   */
  change({ resendAfterMs, maxRetries }: BounceOptions): void {
    const before = this.#options;
    this.#options = resolveBounceOptions({
      ...before,
      ...(resendAfterMs !== undefined && { resendAfterMs }),
      ...(maxRetries !== undefined && { maxRetries }),
    });
    if (this.#options.resendAfterMs !== before.resendAfterMs) this.#reveals = this.#newReveals();
  }

  #newReveals(): RateLimit {
    const perSec = 1000 / Math.max(1, this.#options.resendAfterMs);
    return new RateLimit({ perSec, burst: REVEAL_BURST }, this.#clock);
  }

  /** Stanzas held. */
  get size(): number {
    return this.#shares.items;
  }

  /** Addresses that stanzas wait for. */
  get addresses(): number {
    return this.#held.size;
  }

  /** Returns the addresses that stanzas wait for from the place `from` on, at most `most` of them. */
  inspect(from: number, most: number): readonly BouncingAddress[] {
    const nowMs = this.#clock.monotonicMs();
    return this.#held.values().drop(from).take(most).map((held) => ({
      address: held.key.text,
      stanzas: held.stanzas.length,
      bytes: held.stanzas.reduce((sum, { envelope }) => sum + costOf(envelope), 0),
      attempts: held.stanzas.reduce((most, { envelope }) => Math.max(most, envelope.bounces), 0),
      maxAttempts: this.#options.maxRetries,
      nextRetryInMs: held.dueMs === Infinity ? undefined : Math.max(0, held.dueMs - nowMs),
      isLooking: held.isLooking,
    })).toArray();
  }

  /** Stanzas that wait for this very address. */
  waitingFor(key: Jid): number {
    return this.#held.get(key.text)?.stanzas.length ?? 0;
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
      return this.#events.giveUp(envelope, "out-of-retries");
    }
    const holders = this.#holdersOf(envelope, key);
    if (!this.#shares.mayHold(holders, costOf(envelope))) {
      return this.#events.giveUp(envelope, "full");
    }
    if (this.#isStopped) return this.#events.giveUp(envelope, "stopping");
    let held = this.#held.get(key.text);
    if (held === undefined) {
      held = new HeldAddress(key, this.#events.senderOf);
      this.#held.set(key.text, held);
      const group = this.#byBare.get(key.bare.text);
      if (group !== undefined) group.held.add(held);
      else {
        const started = { held: new Set([held]), cancelReveal: undefined, revealed: key };
        this.#byBare.set(key.bare.text, started);
      }
    }
    const taken = this.#take(envelope, holders);
    held.push(taken);
    // Its payer waits for a booked retry: this stanza's retry must not come before that one.
    const isBooked = held.booked !== undefined &&
      held.booked.payer === this.#events.payerOf(envelope);
    this.#wakeAt(held, isBooked ? held.booked!.atMs : taken.dueMs);
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
    if (!held.isExpecting) this.#expectMore(held);
    if (!isAlone && !held.hasYounger(envelope)) return false;
    held.comeBack(this.#take(envelope, this.#holdersOf(envelope, key)));
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
    if (held.isStill) return false;
    this.#release(held, host);
    return held.isEmpty;
  }

  /** Returns all held stanzas to the router; for a graceful stop. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const held of [...this.#held.values()]) {
      const all = held.takeAll();
      this.#forget(held);
      for (const each of all) {
        this.#letGo(each, costOf(each.envelope));
        this.#events.giveUp(each.envelope, "stopping");
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
    const { singles, crowds } = this.#events.holdersOf(envelope);
    return { singles: [...singles, ...recipientHolders(key.bare.text).singles], crowds };
  }

  #take(envelope: Envelope, holders: Holders): HeldStanza {
    envelope.detach();
    this.#metrics.bounceHeld.inc();
    this.#shares.hold(holders, costOf(envelope));
    this.#showSize();
    this.#events.taken?.(envelope);
    const dueMs = this.#dueMs(envelope);
    if (envelope.trace !== undefined) this.#noteHeld(envelope, dueMs);
    return { envelope, holders, dueMs };
  }

  #noteHeld({ trace, bounces }: Envelope, dueMs: number): void {
    const waitMs = Math.max(0, Math.round(dueMs - this.#clock.monotonicMs()));
    trace?.note("held", { retry: bounces + 1, waitMs });
  }

  #letGo({ holders }: HeldStanza, cost: number): void {
    this.#shares.release(holders, cost);
    this.#showSize();
  }

  #expectMore(held: HeldAddress): void {
    held.expectMore();
    // A microtask later all that one lane, session or node returns is here.
    queueMicrotask(() => {
      if (!held.merge()) return;
      this.#find([held]);
      this.#schedule(held);
    });
  }

  #schedule(held: HeldAddress): void {
    held.cancel?.();
    held.cancel = undefined;
    this.#wakeAt(held, held.firstDueMs);
  }

  /** Sets the timer to `dueMs`, unless an earlier one is set. */
  #wakeAt(held: HeldAddress, dueMs: number): void {
    if (held.isLooking || held.isPreparing || dueMs === Infinity) return;
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
  #retry(held: HeldAddress): void {
    held.cancel = undefined;
    // Addresses that are due a moment later are included: many that wait for one account cost few
    // lookups.
    const untilMs = this.#clock.monotonicMs() + this.#options.resendAfterMs / 20;
    const due: HeldAddress[] = [];
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
  #mayRetry(held: HeldAddress, untilMs: number): boolean {
    const nowMs = this.#clock.monotonicMs();
    const { booked } = held;
    if (booked !== undefined && booked.atMs <= nowMs) {
      held.booked = undefined;
      return true;
    }
    const { payerOf, takeRetry, bookRetry } = this.#events;
    const asked = new Set(booked === undefined ? [] : [booked.payer]);
    let first: Envelope | undefined;
    for (const { envelope, dueMs } of held.stanzas) {
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
  #find(all: readonly HeldAddress[]): void {
    const unknown: HeldAddress[] = [];
    for (const held of all) {
      if (held.isStill) continue;
      const host = this.#events.cached(held.key);
      if (typeof host === "string") this.#release(held, host);
      else if (held.isLooking) held.isRevealed = true;
      else unknown.push(held);
    }
    if (unknown.length > 0) this.#lookUp(unknown);
  }

  /** @param untilMs stanzas due until then have used a retry */
  #lookUp(all: readonly HeldAddress[], untilMs = -Infinity): void {
    for (const held of all) {
      held.cancel?.();
      held.cancel = undefined;
      held.isLooking = true;
      held.isRevealed = false;
    }
    const lookup = this.#events.relocate(all.map(({ key }) => key)).then((hosts) => {
      for (const [i, held] of all.entries()) this.#lookedUp(held, hosts[i], untilMs);
    });
    this.#lookups.add(lookup);
    void lookup.then(() => this.#lookups.delete(lookup));
  }

  #lookedUp(held: HeldAddress, host: string | undefined, untilMs: number): void {
    held.isLooking = false;
    held.merge();
    if (held.isEmpty || held.isPreparing) return;
    for (const { envelope } of held.stanzas) {
      envelope.trace?.note("looked-up", { place: host, source: "redis" });
    }
    if (host !== undefined) this.#release(held, host);
    // Its stanzas have been found: they use up no retry while they wait for their way.
    if (held.isPreparing) return;
    if (untilMs !== -Infinity) this.#countRetry(held, untilMs);
    if (held.isEmpty) {
      // Stanzas that came back while the last one left go on by themselves, in a moment.
      if (!held.isExpecting) this.#forget(held);
      return;
    }
    if (held.isRevealed) this.#find([held]);
    this.#schedule(held);
  }

  /** Sends from the front until one finds no session. */
  #release(held: HeldAddress, host: string): void {
    let isWaiting = false;
    held.release((each) => {
      const cost = costOf(each.envelope);
      isWaiting = this.#events.waitFor?.(each.envelope) !== undefined;
      if (isWaiting) return false;
      if (!this.#events.release(each.envelope, held.key, host)) return false;
      this.#letGo(each, cost);
      return true;
    });
    if (isWaiting) return this.#prepare(held);
    if (held.isEmpty && !held.isExpecting) this.#forget(held);
  }

  /** Waits for what the first stanzas wait for. Then they are sent to where the recipient is by then. */
  #prepare(held: HeldAddress): void {
    held.isPreparing = true;
    held.cancel?.();
    held.cancel = undefined;
    const first = held.stanzas.slice(0, PREPARED_AT_ONCE);
    const prepared = Promise.all(first.map(({ envelope }) => this.#events.waitFor!(envelope)));
    void prepared.then(() => {
      held.isPreparing = false;
      if (this.#held.get(held.key.text) !== held) return;
      this.#find([held]);
      if (!held.isEmpty) this.#schedule(held);
    });
  }

  #countRetry(held: HeldAddress, untilMs: number): void {
    const spent = held.takeSpent({
      untilMs,
      maxRetries: this.#options.maxRetries,
      dueMs: (envelope) => {
        const dueMs = this.#dueMs(envelope);
        if (envelope.trace !== undefined) this.#noteHeld(envelope, dueMs);
        return dueMs;
      },
    });
    for (const each of spent) {
      this.#letGo(each, costOf(each.envelope));
      this.#events.giveUp(each.envelope, "out-of-retries");
    }
  }

  #forget(held: HeldAddress): void {
    held.cancel?.();
    held.cancel = undefined;
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
