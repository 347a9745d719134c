import { LRUCache } from "lru-cache";
import type { Clock } from "../../base/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import type { Claim } from "./claims.ts";
import type { CacheOptions } from "./options.ts";

/** A session, or a component's connection, on another node of this datacenter. */
export interface Placement {
  readonly node: string;
  /** Empty for a component. */
  readonly resourcepart: string;
  /** RFC 6121 §4.7.2.3; undefined while the resource is connected but not available. */
  readonly priority: number | undefined;
}

interface Entry {
  placements: readonly Placement[];
  untilMs: number;
}

const NOWHERE: readonly Placement[] = [];

/**
 * Where in this datacenter the sessions of an account and the connections of a domain are, this node
 * apart: read from their claims together with their location, and kept as long. Nothing is read, kept
 * or asked while this is the datacenter's only node.
 */
export class Placements {
  readonly #entries: LRUCache<string, Entry>;
  readonly #clock: Clock;
  readonly #options: Required<CacheOptions>;
  /** True while this datacenter has other nodes. */
  isShared = false;

  constructor(clock: Clock, options: Required<CacheOptions>) {
    this.#clock = clock;
    this.#options = options;
    this.#entries = new LRUCache({ max: options.maxJids });
  }

  /** What was last read, however old: the location beside it says whether it may still be used. */
  of(jid: Jid): readonly Placement[] {
    if (!this.isShared) return NOWHERE;
    return this.#entries.get(keyOf(jid))?.placements ?? NOWHERE;
  }

  /** True when the account or domain has to be looked up before `of` can answer for it. */
  isStale(jid: Jid): boolean {
    if (!this.isShared) return false;
    const entry = this.#entries.get(keyOf(jid));
    return entry === undefined || this.#clock.monotonicMs() >= entry.untilMs;
  }

  /**
   * Keeps the placements that `claims`, live ones of this datacenter's other nodes, tell of.
   * @param options.isOld they serve those who have asked, and nobody after them. Default: false
   */
  put(jid: Jid, claims: readonly Claim[], options: { readonly isOld?: boolean } = {}): void {
    if (!this.isShared) return;
    const placements = claims.length === 0
      ? NOWHERE
      : claims.map(({ node, resourcepart, priority }) => ({ node, resourcepart, priority }));
    const { domainLifetimeMs, jidLifetimeMs } = this.#options;
    const lifetimeMs = jid.localpart === "" ? domainLifetimeMs : jidLifetimeMs;
    const untilMs = this.#clock.monotonicMs() + (options.isOld === true ? 0 : lifetimeMs);
    const entry = this.#entries.get(keyOf(jid));
    if (entry === undefined) this.#entries.set(keyOf(jid), { placements, untilMs });
    else {
      entry.placements = placements;
      entry.untilMs = untilMs;
    }
  }

  /** Drops the account or domain that `key` of the session table belongs to. */
  forgetKey(key: string): void {
    if (this.#entries.size === 0) return;
    const slash = key.indexOf("/");
    this.#entries.delete(slash === -1 ? key : key.slice(0, slash));
  }

  clear(): void {
    this.#entries.clear();
  }
}

function keyOf(jid: Jid): string {
  return jid.localpart === "" ? jid.domainpart : jid.bare.text;
}
