import { CausewayError, describeError } from "../../base/mod.ts";
import type { FullJid, Jid, SessionOrigin } from "../../xmpp/mod.ts";
import type { LinkTraffic } from "../mod.ts";
import { incarnationOf } from "./claims/claims.ts";
import type { OwnAccounts } from "./claims/own_accounts.ts";
import type { AccountSession } from "./lookup/account_sessions.ts";
import { inspectAddress } from "./lookup/address_inspection.ts";
import type { AddressInspection } from "./lookup/address_inspection.ts";
import type { LocationCache } from "./lookup/location_cache.ts";
import type { LocationLookup } from "./lookup/location_lookup.ts";
import type { Placement, Placements, SessionHost } from "./lookup/placements.ts";
import type { ClusterBus } from "./mesh/cluster_bus.ts";
import type { EndpointAddress, PublicDomain } from "./mesh/directory.ts";
import type { Heartbeat } from "./mesh/heartbeat.ts";
import type { TableOptions } from "./options.ts";
import { redisAddress, resolveTable } from "./options.ts";
import { isReservedDomain } from "./redis/keys.ts";
import type { Replication } from "./replication/replication.ts";
import type { TableMetrics } from "./table_metrics.ts";
import type { TableDeps, TableParts } from "./table_parts.ts";
import { assembleTable } from "./table_parts.ts";

/** Result of a request to remove a datacenter. */
export type HostRemoval = "removed" | "live" | "unknown" | "unavailable";

/** State of a session table, for the admin API. */
export interface TableSnapshot {
  readonly status: "up" | "degraded";
  /** Reason why it is degraded; undefined while it is up. */
  readonly reason: string | undefined;
  /** Address of Redis. */
  readonly redis: string;
  readonly datacenterId: string;
  /** Sessions and component domains of this node. */
  readonly entries: number;
  readonly cached: number;
  /** Progress of builtin replication; undefined with an external replicator. */
  readonly replication: Replication["snapshot"] | undefined;
}

/**
 * Places of users and components: the table in Redis that all datacenters share, its cache, and
 * this node's part of it (docs/redis.md).
 *
 * None of its promises rejects because Redis is away: lookups then answer from memory, and entries
 * that could not be written are written when Redis is back.
 */
export class SessionTable {
  readonly #parts: TableParts;
  // The parts that are asked for each stanza.
  readonly #cache: LocationCache;
  readonly #placements: Placements;
  readonly #lookup: LocationLookup;
  readonly #accounts: OwnAccounts;
  readonly #heart: Heartbeat;
  readonly #metrics: TableMetrics;
  #phase: "new" | "running" | "closed" = "new";
  #isReviewing = false;

  /** @throws RangeError or CausewayError `table/…` on impossible options */
  constructor(options: TableOptions, deps: TableDeps) {
    this.#parts = assembleTable(resolveTable(options), deps);
    const { cache, placements, lookup, accounts, heart, metrics } = this.#parts;
    this.#cache = cache;
    this.#placements = placements;
    this.#lookup = lookup;
    this.#accounts = accounts;
    this.#heart = heart;
    this.#metrics = metrics;
  }

  /** Takes replication frames from links, with builtin replication. */
  get traffic(): LinkTraffic | undefined {
    return this.#parts.replication;
  }

  /** Status: `degraded` while Redis is away or refuses; then only known addresses are found. */
  get status(): "up" | "degraded" {
    return this.#heart.status;
  }

  /** Id that the nodes of this datacenter share; empty until Redis was reached once. */
  get datacenterId(): string {
    return this.#parts.publication.datacenterId;
  }

  /** Looks this datacenter's id up and corrects it, as a peer takes us for another datacenter. */
  reviewIdentity(): void {
    if (this.#isReviewing || this.#phase !== "running") return;
    this.#isReviewing = true;
    this.#parts.spawn(this.#heart.beat().finally(() => this.#isReviewing = false));
  }

  snapshot(): TableSnapshot {
    return {
      status: this.#heart.status,
      reason: this.#heart.reason,
      redis: redisAddress(this.#parts.options),
      datacenterId: this.datacenterId,
      entries: this.#accounts.entries,
      cached: this.#cache.size,
      replication: this.#parts.replication?.snapshot,
    };
  }

  /**
   * Connects, publishes this node, and begins to renew our entries. Resolves when the first attempt
   * has succeeded or failed: Redis may come later.
   * @throws CausewayError `table/redis-auth` when Redis is there and refuses the password,
   *   `table/redis-layout` when the table is written in a layout that this version does not know
   */
  async start(): Promise<void> {
    if (this.#phase !== "new") throw new TypeError("A session table can be started once");
    this.#phase = "running";
    const { options, redis, heart, replication, renewal, spawn } = this.#parts;
    heart.start();
    replication?.start();
    redis.connect({
      connected: (mayHaveLost = false) => {
        if (mayHaveLost) heart.keyLost();
        spawn(heart.beat());
      },
      disconnected: (reason) => heart.disconnected(reason),
    });
    await heart.firstAttempt();
    const refusal = redis.refusal ?? heart.refusal;
    if (refusal !== undefined) {
      await this.close();
      throw new CausewayError(
        "table/redis-auth",
        `Cannot log in to Redis at ${redisAddress(options)}: ${refusal}`,
      );
    }
    if (heart.newerLayout !== undefined) {
      await this.close();
      throw heart.newerLayout;
    }
    if (this.#phase === "running") renewal.start();
  }

  // ---- lookups -----------------------------------------------------------------------------

  /**
   * Local host from memory alone; null for a remembered miss, undefined when only Redis can tell.
   */
  cached(jid: Jid): string | null | undefined {
    const host = this.#cache.cached(jid);
    if (host === undefined) return undefined;
    if (this.isUnplaced(jid)) return undefined;
    this.#metrics.fetchedFromCache();
    return host;
  }

  /** Local host of `jid` from memory, of any age; undefined when there is none. */
  lastKnown(jid: Jid): string | undefined {
    return this.#cache.stale(jid);
  }

  /**
   * Local host of `jid`, from the cache or Redis; undefined when it is not known. Never rejects.
   */
  locate(jid: Jid): Promise<string | undefined> {
    const host = this.cached(jid);
    if (host !== undefined) return Promise.resolve(host ?? undefined);
    return isReserved(jid) ? Promise.resolve(undefined) : this.#lookup.locate(jid);
  }

  /**
   * Returns local hosts of `jids`, in order, from Redis, after dropping them from memory. For
   * addresses whose lookup has just found nothing; those of one account share a request. Never
   * rejects.
   */
  locateAgain(jids: readonly Jid[]): Promise<readonly (string | undefined)[]> {
    for (const jid of jids) this.forget(jid);
    return this.#lookup.locateAgain(jids);
  }

  /**
   * True when another datacenter has a newer login with a full JID than this one. The key is only
   * asked first: with an external replicator it may hold an older write that came in last. Never
   * rejects.
   */
  async hasMoved(jid: FullJid): Promise<boolean> {
    const { localHost } = this.#parts.options;
    this.forget(jid); // so that the lookup asks Redis, not the cache
    const host = await this.locate(jid);
    if (host === undefined || host === localHost) return false;
    const newest = await this.#lookup.newestClaim(jid);
    return newest !== undefined && newest.host !== localHost &&
      newest.epoch > (this.#accounts.epochOf(jid) ?? 0);
  }

  /** Returns the epoch of the newest live claim on `jid`, if that is of `process`. Never rejects. */
  async claimedEpoch(jid: FullJid, process: number): Promise<number | undefined> {
    const newest = await this.#lookup.newestClaim(jid);
    if (newest === undefined || incarnationOf(newest.id) !== process) return undefined;
    return newest.epoch;
  }

  /** The other nodes of this datacenter that are linked or hold a lease. */
  get neighbours(): ReadonlySet<string> {
    return this.#parts.neighbours.nodes;
  }

  /** False while this is the datacenter's only node. */
  get hasNeighbours(): boolean {
    return this.#placements.isShared;
  }

  /** True when `jid` has to be located before `placements`, or `spread`, can answer for it. */
  isUnplaced(jid: Jid): boolean {
    return this.#placements.isStale(jid) && this.status === "up";
  }

  /**
   * Sessions of the account, or connections of the domain, on the other nodes of this datacenter,
   * as `cached` or `locate` have just found them. Empty while there are none.
   */
  placements(jid: Jid): readonly Placement[] {
    return this.#placements.of(jid);
  }

  /**
   * Sessions in all datacenters of an account that has some in several, as `cached` or `locate`
   * have just found them; none for other accounts.
   */
  spread(jid: Jid): readonly SessionHost[] {
    return this.#placements.spread(jid);
  }

  /**
   * Remembers that `jid` was seen writing from `host`, if cache and table know nothing of it.
   * @returns false when the cache had a host for it, so that this is no news
   */
  learn(jid: Jid, host: string): boolean {
    const known = this.#cache.cached(jid);
    if (typeof known === "string" || isReserved(jid)) return false;
    if (known === undefined) this.#lookup.learn(jid, host);
    else if (!this.#accounts.isOwn(jid)) this.#cache.putLearned(jid, host);
    return true;
  }

  /**
   * Drops what memory holds on `jid` and its bare JID, so that the next lookup asks Redis. Stanzas
   * whose lookup has just ended still find where the account's other sessions are.
   */
  forget(jid: Jid): void {
    this.#cache.forget(jid);
    this.#placements.expireKey(jid.localpart === "" ? jid.domainpart : jid.text);
  }

  /** Makes the next lookup of `jid` ask Redis; memory still answers while Redis is away. */
  expire(jid: Jid): void {
    this.#cache.expire(jid);
  }

  /**
   * Returns the live sessions of each of `accounts`, bare JIDs, that has any, in all datacenters.
   * It asks Redis once for all of them. Never rejects: while Redis is away, nobody is found.
   */
  async sessionsOf(accounts: readonly string[]): Promise<Map<string, readonly AccountSession[]>> {
    return await this.trySessionsOf(accounts) ?? new Map();
  }

  /** As `sessionsOf`, for callers that ask again: undefined while Redis cannot tell. */
  trySessionsOf(
    accounts: readonly string[],
  ): Promise<Map<string, readonly AccountSession[]> | undefined> {
    return this.#parts.sessions.find(accounts);
  }

  /**
   * Returns the processes of each of `hosts` that hold a lease; undefined while Redis cannot tell.
   * Never rejects.
   */
  liveProcesses(
    hosts: readonly string[],
  ): Promise<ReadonlyMap<string, ReadonlySet<number>> | undefined> {
    return this.#parts.sessions.liveProcesses(hosts);
  }

  /** Reads what the cache and Redis say of `jid`, for an operator. Never rejects. */
  inspect(jid: Jid): Promise<AddressInspection> {
    return inspectAddress(jid, this.#parts);
  }

  // ---- own sessions and components ---------------------------------------------------------

  /**
   * Claims `jid` for this datacenter. Resolves when the claim is written, or could not be because
   * Redis is away. A session that takes over another's full JID is opened before or after that one
   * closes.
   * @param origin set for a session that has come from another node: it is older than logins since
   *   it was asked for
   */
  sessionOpened(jid: FullJid, origin?: SessionOrigin): Promise<void> {
    return this.#parts.entries.sessionOpened(jid, origin);
  }

  /**
   * Returns the number of resources of an account that only other nodes and datacenters have, as the
   * last login or renewal here has found it. 0 for an account without a session here, and for one that
   * logged in while Redis was away.
   */
  sessionsElsewhere(bareJid: string): number {
    return this.#accounts.find(bareJid)?.elsewhere ?? 0;
  }

  /** Sets the priority of an available session; undefined when it is no longer available. */
  sessionPriority(jid: FullJid, priority: number | undefined): Promise<void> {
    return this.#parts.entries.sessionPriority(jid, priority);
  }

  /**
   * Withdraws the claim of the oldest session of this node with that full JID, and nothing else.
   */
  sessionClosed(jid: FullJid): Promise<void> {
    return this.#parts.entries.sessionClosed(jid);
  }

  /** Claims a component's domain for this datacenter; a hidden one is not listed to users. */
  domainAdded(domain: string, options: { readonly hidden: boolean }): Promise<void> {
    return this.#parts.entries.domainAdded(domain, options);
  }

  /** Withdraws a component's domain. */
  domainRemoved(domain: string): Promise<void> {
    return this.#parts.entries.domainRemoved(domain);
  }

  /** Publishes the endpoints of this node, in place of earlier ones. */
  async publishEndpoints(endpoints: readonly EndpointAddress[]): Promise<void> {
    this.#parts.publication.setEndpoints(endpoints);
    this.#parts.replication?.leaseChanged();
    await this.#heart.beat();
  }

  // ---- the other nodes of this datacenter --------------------------------------------------

  /** Publishes the address where this node accepts links from the other nodes of its datacenter. */
  async publishClusterAddress(address: EndpointAddress): Promise<void> {
    this.#parts.publication.setClusterAddress(address);
    await this.#heart.beat();
  }

  /** Returns other live nodes of this datacenter; while Redis is away, the last known ones. */
  clusterNodes(): Promise<readonly string[]> {
    return this.#parts.neighbours.look();
  }

  /** Returns the endpoint of another node of this datacenter. */
  clusterEndpoints(nodeName: string): Promise<readonly EndpointAddress[]> {
    return this.#parts.neighbours.endpoints(nodeName);
  }

  /** True for this process, and for known processes of our datacenter, including ended ones. */
  isOwnProcess(process: number): boolean {
    return process === this.#parts.options.incarnation ||
      process === this.#parts.publication.predecessor ||
      this.#parts.ownProcesses.has(process);
  }

  /** The bus over the links between the nodes of this datacenter. */
  get clusterBus(): ClusterBus {
    return this.#parts.bus;
  }

  // ---- the mesh ----------------------------------------------------------------------------

  /**
   * Returns the endpoints of the live nodes of `host`; while Redis is away, the last known ones.
   */
  endpoints(host: string): Promise<readonly EndpointAddress[]> {
    return this.#parts.mesh.endpoints(host);
  }

  /**
   * Returns local hosts with a live node, always with ours; while Redis is away, the last known
   * ones. With builtin replication they include datacenters that are cut off.
   */
  hosts(): Promise<readonly string[]> {
    return this.#parts.mesh.hosts();
  }

  /** True where `hosts` keeps datacenters that are cut off, and drops those that have left. */
  get keepsSilentHosts(): boolean {
    return this.#parts.mesh.keepsSilentHosts;
  }

  /** Returns the live nodes by local host; while Redis is away, the last known ones. */
  liveNodes(): Promise<ReadonlyMap<string, readonly string[]>> {
    return this.#parts.mesh.nodes();
  }

  /**
   * Removes a datacenter that will not come back from the table, for all nodes of this one.
   * `unavailable`: Redis is away. `unknown`: also with an external replicator, which keeps nothing
   * of a datacenter without a live node.
   */
  async removeHost(host: string): Promise<HostRemoval> {
    if (host === this.#parts.options.localHost) return "live";
    if (this.status !== "up") return "unavailable";
    if (this.#parts.replication !== undefined) {
      return await this.#parts.replication.removeHost(host);
    }
    return (await this.hosts()).includes(host) ? "live" : "unknown";
  }

  /**
   * Returns components of all datacenters that are not hidden; while Redis is away, the last known
   * ones.
   */
  publicDomains(): Promise<readonly PublicDomain[]> {
    return this.#parts.mesh.domains({ includesHidden: false });
  }

  /** Like `publicDomains`, with hidden ones. */
  allDomains(): Promise<readonly PublicDomain[]> {
    return this.#parts.mesh.domains({ includesHidden: true });
  }

  /**
   * Writes all that this node has in the table anew, and what it publishes.
   * @returns the number of entries; undefined while Redis is away
   */
  async refreshOwn(): Promise<number | undefined> {
    await this.#heart.beat();
    if (this.status !== "up") return undefined;
    await this.#parts.renewal.refreshAll();
    return this.status === "up" ? this.#accounts.entries : undefined;
  }

  /** Drops all that memory holds of places; false while Redis is away, when only memory answers. */
  forgetAll(): boolean {
    if (this.status !== "up") return false;
    this.#parts.memory.forgetAll();
    return true;
  }

  /** Withdraws our entries, as far as `withdrawMs` allows, and disconnects. */
  async close(): Promise<void> {
    if (this.#phase === "closed") return;
    this.#phase = "closed";
    const { options, clock, redis, renewal, heart, replication } = this.#parts;
    renewal.close();
    replication?.close();
    heart.close();
    if (this.status === "up") {
      const late = Promise.withResolvers<void>();
      const cancel = clock.after(options.redis.withdrawMs, () => late.resolve());
      await Promise.race([this.#withdraw(), late.promise]);
      cancel();
    }
    await redis.close();
    await heart.idle();
  }

  async #withdraw(): Promise<void> {
    const { entries, heart, publication, housekeeping, logger } = this.#parts;
    await entries.withdrawAll();
    await heart.idle();
    try {
      await publication.withdraw(await housekeeping.isLastNode());
    } catch (thrown) {
      logger.warn("table.withdraw-failed", { reason: describeError(thrown) });
    }
  }
}

/** True for a domain whose key is one of the table's own: no component can have it. */
function isReserved(jid: Jid): boolean {
  return jid.localpart === "" && isReservedDomain(jid.domainpart);
}
