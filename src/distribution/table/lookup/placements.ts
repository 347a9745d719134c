import { LRUCache } from "lru-cache";
import type { Clock } from "../../../base/mod.ts";
import type { Jid } from "../../../xmpp/mod.ts";
import type { Claim } from "../claims/claims.ts";
import type { CacheOptions } from "../options.ts";

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
 * Places of an account's sessions and a domain's connections on the other nodes of this datacenter.
 * They are read from claims together with the location, and kept as long. While this is the
 * datacenter's only node nothing is read or kept.
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

  /**
   * Returns the last read placements, however old: the location beside them tells whether they
   * still count.
   */
  of(jid: Jid): readonly Placement[] {
    if (!this.isShared) return NOWHERE;
    return this.#entries.get(keyOf(jid))?.placements ?? NOWHERE;
  }

  /** True when the account or domain needs a lookup before `of` can answer for it. */
  isStale(jid: Jid): boolean {
    if (!this.isShared) return false;
    const entry = this.#entries.get(keyOf(jid));
    return entry === undefined || this.#clock.monotonicMs() >= entry.untilMs;
  }

  /**
   * Keeps the placements in `claims`, which are live ones of this datacenter's other nodes.
   * @param options.isOld true if they serve only pending lookups, and none after them. Default:
   * false
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
    if (this.#entries.size > 0) this.#entries.delete(nameOf(key));
  }

  /**
   * Has the next use of the account or domain that `key` belongs to wait for a lookup. A stanza whose
   * lookup has just ended still finds what that has read.
   */
  expireKey(key: string): void {
    if (this.#entries.size === 0) return;
    const entry = this.#entries.peek(nameOf(key));
    if (entry !== undefined) entry.untilMs = -Infinity;
  }

  clear(): void {
    this.#entries.clear();
  }
}

function nameOf(key: string): string {
  const slash = key.indexOf("/");
  return slash === -1 ? key : key.slice(0, slash);
}

function keyOf(jid: Jid): string {
  return jid.localpart === "" ? jid.domainpart : jid.bare.text;
}
