import { LRUCache } from "lru-cache";
import type { Clock } from "../../../base/mod.ts";
import type { Jid } from "../../../xmpp/mod.ts";
import type { CacheOptions } from "../options.ts";
import type { UsedEntry } from "./used_entry.ts";
import { useEntry } from "./used_entry.ts";

/** Cached answer for one address, for an operator. */
export interface CachedAnswer {
  readonly address: string;
  /** Null for a remembered miss. */
  readonly host: string | null;
  /** Milliseconds since the answer was cached, as its lifetime tells. */
  readonly ageMs: number;
  /** Milliseconds until it no longer counts; negative when it is kept for times without Redis. */
  readonly expiresInMs: number;
}

/** Cached answer for one address; the object is reused when the answer changes. */
interface Entry extends UsedEntry {
  /** Null for an address that is not in the table. */
  host: string | null;
  /** Monotonic milliseconds after which it no longer counts. */
  untilMs: number;
}

/**
 * Answers of the session table, kept in memory for their lifetimes.
 *
 * One probe answers: the entry of a full JID holds the result of its lookup, by its own key or else
 * by its bare JID's. `lru-cache` bounds the number. Lifetimes are ours: an old entry must still be
 * there when Redis is not, and `lru-cache`'s own lifetimes would start timers.
 */
export class LocationCache {
  readonly #jids: LRUCache<string, Entry>;
  readonly #domains: LRUCache<string, Entry>;
  readonly #clock: Clock;
  readonly #options: Required<CacheOptions>;
  /** True while Redis cannot be asked: entries past their lifetime still answer. */
  isDegraded = false;

  constructor(clock: Clock, options: Required<CacheOptions>) {
    this.#clock = clock;
    this.#options = options;
    this.#jids = new LRUCache({ max: options.maxJids });
    this.#domains = new LRUCache({ max: options.maxJids });
  }

  /** JIDs and domains that are kept. */
  get size(): number {
    return this.#jids.size + this.#domains.size;
  }

  /** Host of `jid`; null for a remembered miss, undefined when it is not cached. */
  cached(jid: Jid): string | null | undefined {
    const nowMs = this.#clock.monotonicMs();
    const entry = jid.localpart === ""
      ? useEntry(this.#domains, jid.domainpart, nowMs)
      : useEntry(this.#jids, jid.text, nowMs);
    if (entry === undefined) return undefined;
    if (nowMs < entry.untilMs) return entry.host;
    // An old miss does not count, even while Redis is away.
    return this.isDegraded && entry.host !== null ? entry.host : undefined;
  }

  /** Host of `jid` of any age; undefined when none was ever known. */
  stale(jid: Jid): string | undefined {
    const host = jid.localpart === ""
      ? this.#domains.peek(jid.domainpart)?.host
      : this.#jids.peek(jid.text)?.host ?? this.#jids.peek(jid.bare.text)?.host;
    return host ?? undefined;
  }

  /** Like `stale`, for one key of the table alone. */
  hostOf(key: string): string | undefined {
    return (this.#jids.peek(key) ?? this.#domains.peek(key))?.host ?? undefined;
  }

  /** Returns what is kept for `jid` and its bare JID, and leaves everything as it is. */
  inspect(jid: Jid): readonly CachedAnswer[] {
    const nowMs = this.#clock.monotonicMs();
    const { jidLifetimeMs, domainLifetimeMs } = this.#options;
    const answers: CachedAnswer[] = [];
    const look = (cache: LRUCache<string, Entry>, address: string, lifetimeMs: number) => {
      const entry = cache.peek(address);
      if (entry === undefined) return;
      const expiresInMs = entry.untilMs - nowMs;
      const ageMs = Math.max(0, lifetimeMs - expiresInMs);
      answers.push({ address, host: entry.host, ageMs, expiresInMs });
    };
    if (jid.localpart === "") look(this.#domains, jid.domainpart, domainLifetimeMs);
    else {
      for (const address of new Set([jid.text, jid.bare.text])) {
        look(this.#jids, address, jidLifetimeMs);
      }
    }
    return answers;
  }

  /** Keeps the table's answer for a JID with a localpart, full or bare. */
  putJid(text: string, host: string | null): void {
    this.#put(this.#jids, text, host, this.#options.jidLifetimeMs);
  }

  /** Keeps the table's answer for a domain. */
  putDomain(domain: string, host: string | null): void {
    const lifetimeMs = host === null
      ? Math.min(this.#options.jidLifetimeMs, this.#options.domainLifetimeMs)
      : this.#options.domainLifetimeMs;
    this.#put(this.#domains, domain, host, lifetimeMs);
  }

  /** Keeps a guess for the shortest lifetime, for a domain too. */
  putLearned(jid: Jid, host: string): void {
    const isDomain = jid.localpart === "";
    this.#put(
      isDomain ? this.#domains : this.#jids,
      isDomain ? jid.domainpart : jid.text,
      host,
      this.#options.jidLifetimeMs,
    );
  }

  /** Drops the entry of `jid`, and its bare JID's, which answers for it. */
  forget(jid: Jid): void {
    if (jid.localpart === "") this.#domains.delete(jid.domainpart);
    else {
      this.#jids.delete(jid.text);
      this.#jids.delete(jid.bare.text);
    }
  }

  /** Ends the lifetime of the entries of `jid` and of its bare JID. */
  expire(jid: Jid): void {
    const untilMs = this.#clock.monotonicMs();
    const entries = jid.localpart === ""
      ? [this.#domains.peek(jid.domainpart)]
      : [this.#jids.peek(jid.text), this.#jids.peek(jid.bare.text)];
    for (const entry of entries) if (entry !== undefined) entry.untilMs = untilMs;
  }

  /** Drops everything, as recent changes may have been missed. */
  clear(): void {
    this.#jids.clear();
    this.#domains.clear();
  }

  /** Drops the entry of one key of the table: a full JID, a bare JID or a domain. */
  forgetKey(key: string): void {
    if (!this.#jids.delete(key)) this.#domains.delete(key);
  }

  #put(cache: LRUCache<string, Entry>, key: string, host: string | null, lifetimeMs: number): void {
    if (host === null && !this.#options.cacheMissed) {
      cache.delete(key);
      return;
    }
    const usedMs = this.#clock.monotonicMs();
    const untilMs = usedMs + lifetimeMs;
    const entry = cache.get(key);
    if (entry === undefined) cache.set(key, { host, untilMs, usedMs });
    else {
      entry.host = host;
      entry.untilMs = untilMs;
      entry.usedMs = usedMs;
    }
  }
}
