import { LRUCache } from "lru-cache";
import type { Clock } from "../../../base/mod.ts";
import type { Jid } from "../../../xmpp/mod.ts";
import type { Claim } from "../claims/claims.ts";
import { isNewer } from "../claims/claims.ts";
import type { CacheOptions } from "../options.ts";
import type { UsedEntry } from "./used_entry.ts";
import { useEntry } from "./used_entry.ts";

/** A session, or a component's connection, on another node of this datacenter. */
export interface Placement {
  readonly node: string;
  /** Empty for a component. */
  readonly resourcepart: string;
  /** RFC 6121 §4.7.2.3; undefined while the resource is connected but not available. */
  readonly priority: number | undefined;
}

/** A session of an account that has sessions in several datacenters. */
export interface SessionHost {
  /** Local host of its datacenter. */
  readonly host: string;
  readonly resourcepart: string;
}

interface Entry extends UsedEntry {
  placements: readonly Placement[];
  untilMs: number;
}

const NOWHERE: readonly Placement[] = [];
const NO_SPREAD: readonly SessionHost[] = [];

/**
 * Places of an account's sessions and a domain's connections, besides the one that the location
 * names: on the other nodes of this datacenter, and for accounts in other datacenters too. They are
 * read from claims together with the location, and kept as long.
 */
export class Placements {
  readonly #entries: LRUCache<string, Entry>;
  /** Accounts with sessions in several datacenters. Most have none, and cost nothing here. */
  readonly #spread: LRUCache<string, readonly SessionHost[]>;
  readonly #clock: Clock;
  readonly #options: Required<CacheOptions>;
  /** True while this datacenter has other nodes. */
  isShared = false;

  constructor(clock: Clock, options: Required<CacheOptions>) {
    this.#clock = clock;
    this.#options = options;
    this.#entries = new LRUCache({ max: options.maxJids });
    this.#spread = new LRUCache({ max: options.maxJids });
  }

  /**
   * Returns the last read placements, however old: the location beside them tells whether they
   * still count.
   */
  of(jid: Jid): readonly Placement[] {
    if (!this.isShared) return NOWHERE;
    const entry = useEntry(this.#entries, keyOf(jid), this.#clock.monotonicMs());
    return entry?.placements ?? NOWHERE;
  }

  /**
   * Returns the sessions of an account in all datacenters, each resource at the place of its newest
   * login, as last read; none while they are all in one datacenter.
   */
  spread(jid: Jid): readonly SessionHost[] {
    if (this.#spread.size === 0) return NO_SPREAD;
    return this.#spread.get(keyOf(jid)) ?? NO_SPREAD;
  }

  /**
   * True when the account or domain needs a lookup before `of` can answer for it, or before
   * `spread` can answer for a bare JID. What is for one resource needs no more than its location.
   */
  isStale(jid: Jid): boolean {
    if (!this.isShared && (jid.localpart === "" || jid !== jid.bare)) return false;
    const nowMs = this.#clock.monotonicMs();
    const entry = useEntry(this.#entries, keyOf(jid), nowMs);
    return entry === undefined || nowMs >= entry.untilMs;
  }

  /**
   * Keeps what the live claims on an account say about where it is.
   * @param claims in all datacenters, with those of this node
   */
  putSpread(jid: Jid, claims: readonly Claim[]): void {
    const spread = spreadOf(claims);
    if (spread.length > 0) this.#spread.set(keyOf(jid), spread);
    else if (this.#spread.size > 0) this.#spread.delete(keyOf(jid));
  }

  /**
   * Keeps the placements in `claims`, which are live ones of this datacenter's other nodes.
   * @param options.isOld true if they serve only pending lookups, and none after them. Default:
   * false
   */
  put(jid: Jid, claims: readonly Claim[], options: { readonly isOld?: boolean } = {}): void {
    const placements = claims.length === 0
      ? NOWHERE
      : claims.map(({ node, resourcepart, priority }) => ({ node, resourcepart, priority }));
    const { domainLifetimeMs, jidLifetimeMs } = this.#options;
    const lifetimeMs = jid.localpart === "" ? domainLifetimeMs : jidLifetimeMs;
    const usedMs = this.#clock.monotonicMs();
    const untilMs = usedMs + (options.isOld === true ? 0 : lifetimeMs);
    const entry = this.#entries.get(keyOf(jid));
    if (entry === undefined) this.#entries.set(keyOf(jid), { placements, untilMs, usedMs });
    else {
      entry.placements = placements;
      entry.untilMs = untilMs;
      entry.usedMs = usedMs;
    }
  }

  /**
   * Makes the next use of the account or domain that `key` belongs to wait for a lookup. A stanza whose
   * lookup has just ended still finds what that has read.
   */
  expireKey(key: string): void {
    if (this.#entries.size === 0) return;
    const entry = this.#entries.peek(nameOf(key));
    if (entry !== undefined) entry.untilMs = -Infinity;
  }

  clear(): void {
    this.#entries.clear();
    this.#spread.clear();
  }
}

/** Returns the newest claim of each resource; none if all are in one datacenter. */
function spreadOf(claims: readonly Claim[]): readonly SessionHost[] {
  const first = claims[0]?.host;
  if (claims.every(({ host }) => host === first)) return NO_SPREAD;
  const newest = new Map<string, Claim>();
  for (const claim of claims) {
    const known = newest.get(claim.resourcepart);
    if (known === undefined || isNewer(claim, known)) newest.set(claim.resourcepart, claim);
  }
  const spread = [...newest.values()].map(({ host, resourcepart }) => ({ host, resourcepart }));
  return spread.every(({ host }) => host === spread[0]!.host) ? NO_SPREAD : spread;
}

function nameOf(key: string): string {
  const slash = key.indexOf("/");
  return slash === -1 ? key : key.slice(0, slash);
}

function keyOf(jid: Jid): string {
  return jid.localpart === "" ? jid.domainpart : jid.bare.text;
}
