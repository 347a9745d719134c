import { backoffMs } from "../../base/mod.ts";
import type { CancelTimer, Clock, Random } from "../../base/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import type { Envelope } from "../envelope.ts";
import type { RoutingMetrics } from "./routing_metrics.ts";

/** How stanzas without a known route are held; `design.md` §7. */
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
  /** Local host from memory alone. */
  cached(key: Jid): string | null | undefined;
  /** Drops the recipient from the cache and looks it up again. */
  relocate(key: Jid): Promise<string | undefined>;
  /** Sends the stanza on its way; false when nobody answers to the address after all. */
  release(envelope: Envelope, key: Jid, host: string): boolean;
  /** Answers the sender. */
  giveUp(envelope: Envelope, why: BounceFailure): void;
  /** Whose order it is kept in. */
  senderOf(envelope: Envelope): string;
}

interface Held {
  readonly key: Jid;
  entries: Entry[];
  cancel: CancelTimer | undefined;
  /** True while a lookup is under way: its end decides what happens next. */
  isLooking: boolean;
  /** True while its stanzas are being sent: delivering one may reveal the same address again. */
  isReleasing: boolean;
}

interface Entry {
  readonly envelope: Envelope;
  dueMs: number;
}

/** An envelope, its entry and its stanza object, beside the text. */
const ENTRY_OVERHEAD_BYTES = 512;

/**
 * Holds stanzas whose recipient nobody can place, per looked-up address and in order.
 *
 * A later stanza to the same address waits behind an earlier one, so that order is kept through a bounce,
 * also when they go back to their sender; one lookup serves all that wait for one address.
 */
export class BounceStore {
  readonly #options: Required<BounceOptions>;
  readonly #handlers: BounceHandlers;
  readonly #metrics: RoutingMetrics;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #held = new Map<string, Held>();
  /** All that waits for one account or domain, whatever the resource. */
  readonly #byBare = new Map<string, Set<Held>>();
  readonly #lookups = new Set<Promise<void>>();
  #count = 0;
  #bytes = 0;
  #isStopped = false;

  constructor(
    options: BounceOptions,
    handlers: BounceHandlers,
    deps: { readonly metrics: RoutingMetrics; readonly clock: Clock; readonly random: Random },
  ) {
    this.#options = resolveBounceOptions(options);
    this.#handlers = handlers;
    this.#metrics = deps.metrics;
    this.#clock = deps.clock;
    this.#random = deps.random;
  }

  /** Stanzas held. */
  get size(): number {
    return this.#count;
  }

  /** True when something waits for this very address. */
  holds(key: Jid): boolean {
    return this.#count > 0 && this.#held.has(key.text);
  }

  /**
   * Takes the stanza over, behind all that waits for the same address. A stanza that is out of retries
   * or finds no room goes back to its sender.
   */
  hold(envelope: Envelope, key: Jid): void {
    this.#hold(envelope, key, this.#held.get(key.text)?.entries.length ?? 0);
  }

  /**
   * Takes over what comes back from where it had been sent, before what its sender has sent later and
   * waits for the same address; false when nothing of that kind waits.
   */
  holdBefore(envelope: Envelope, key: Jid): boolean {
    const entries = this.#count > 0 ? this.#held.get(key.text)?.entries : undefined;
    if (entries === undefined) return false;
    const sender = this.#handlers.senderOf(envelope);
    const { process, sequence } = envelope;
    const at = entries.findIndex(({ envelope: each }) =>
      each.process === process && each.sequence > sequence &&
      this.#handlers.senderOf(each) === sender
    );
    if (at >= 0) this.#hold(envelope, key, at);
    return at >= 0;
  }

  #hold(envelope: Envelope, key: Jid, at: number): void {
    if (envelope.bounces >= this.#options.maxRetries) {
      return this.#handlers.giveUp(envelope, "out-of-retries");
    }
    const cost = envelope.stanza.bytes.length + ENTRY_OVERHEAD_BYTES;
    if (this.#count >= this.#options.maxItems || this.#bytes + cost > this.#options.maxBytes) {
      return this.#handlers.giveUp(envelope, "full");
    }
    if (this.#isStopped) return this.#handlers.giveUp(envelope, "stopping");
    envelope.detach();
    this.#metrics.bounceHeld.inc();
    let held = this.#held.get(key.text);
    if (held === undefined) {
      held = { key, entries: [], cancel: undefined, isLooking: false, isReleasing: false };
      this.#held.set(key.text, held);
      const group = this.#byBare.get(key.bare.text);
      if (group === undefined) this.#byBare.set(key.bare.text, new Set([held]));
      else group.add(held);
    }
    held.entries.splice(at, 0, { envelope, dueMs: this.#dueMs(envelope) });
    this.#changeSize(1, cost);
    this.#schedule(held);
  }

  /** Something revealed where this account or domain is: what waits for it goes, in order. */
  reveal(bare: string): void {
    if (this.#count === 0) return;
    const group = this.#byBare.get(bare);
    if (group === undefined) return;
    for (const held of [...group]) this.flush(held.key);
  }

  /**
   * Sends what waits for this address, in order, if `host`, memory or else Redis knows where it is.
   * Retries are not used up. True when nothing waits any more.
   */
  flush(key: Jid, host = this.#handlers.cached(key)): boolean {
    const held = this.#held.get(key.text);
    if (held === undefined) return true;
    if (held.isReleasing) return false;
    if (typeof host === "string") this.#release(held, host);
    else if (!held.isLooking) this.#lookUp(held, false);
    return held.entries.length === 0;
  }

  /** Gives everything up; for a graceful stop. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const held of [...this.#held.values()]) {
      const entries = held.entries;
      this.#forget(held);
      for (const { envelope } of entries) {
        this.#changeSize(-1, -(envelope.stanza.bytes.length + ENTRY_OVERHEAD_BYTES));
        this.#handlers.giveUp(envelope, "stopping");
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

  #schedule(held: Held): void {
    if (held.isLooking || held.entries.length === 0) return;
    let dueMs = Infinity;
    for (const entry of held.entries) dueMs = Math.min(dueMs, entry.dueMs);
    held.cancel?.();
    held.cancel = this.#clock.after(
      Math.max(0, dueMs - this.#clock.monotonicMs()),
      () => this.#lookUp(held, true),
    );
  }

  #lookUp(held: Held, isRetry: boolean): void {
    held.cancel?.();
    held.cancel = undefined;
    held.isLooking = true;
    // A stanza due a moment later goes along: a crowd waiting for one address costs one lookup.
    const untilMs = this.#clock.monotonicMs() + this.#options.resendAfterMs / 20;
    const lookup = this.#handlers.relocate(held.key).then((host) => {
      held.isLooking = false;
      if (held.entries.length === 0) return;
      if (host !== undefined) this.#release(held, host);
      if (isRetry) this.#countRetry(held, untilMs);
      if (held.entries.length === 0) this.#forget(held);
      else this.#schedule(held);
    });
    this.#lookups.add(lookup);
    void lookup.then(() => this.#lookups.delete(lookup));
  }

  /** Sends from the front until one finds nobody; what is left stays in its order. */
  #release(held: Held, host: string): void {
    const entries = held.entries;
    held.entries = [];
    held.isReleasing = true;
    let next = 0;
    for (; next < entries.length; next++) {
      const { envelope } = entries[next]!;
      const cost = envelope.stanza.bytes.length + ENTRY_OVERHEAD_BYTES;
      if (!this.#handlers.release(envelope, held.key, host)) break;
      this.#changeSize(-1, -cost);
    }
    held.isReleasing = false;
    held.entries = [...entries.slice(next), ...held.entries];
    if (held.entries.length === 0) this.#forget(held);
  }

  #countRetry(held: Held, untilMs: number): void {
    const { maxRetries } = this.#options;
    const kept: Entry[] = [];
    const spent: Envelope[] = [];
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
          spent.push(envelope);
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
    for (const envelope of spent) {
      this.#changeSize(-1, -(envelope.stanza.bytes.length + ENTRY_OVERHEAD_BYTES));
      this.#handlers.giveUp(envelope, "out-of-retries");
    }
  }

  #forget(held: Held): void {
    held.cancel?.();
    held.cancel = undefined;
    held.entries = [];
    if (this.#held.get(held.key.text) !== held) return;
    this.#held.delete(held.key.text);
    const group = this.#byBare.get(held.key.bare.text);
    group?.delete(held);
    if (group?.size === 0) this.#byBare.delete(held.key.bare.text);
  }

  #changeSize(count: number, bytes: number): void {
    this.#count += count;
    this.#bytes += bytes;
    this.#metrics.bounceQueueSize.set(this.#count);
    this.#metrics.bounceQueueBytes.set(this.#bytes);
  }
}
