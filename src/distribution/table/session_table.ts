import type { CancelTimer, Clock } from "../../base/mod.ts";
import { CausewayError, describeError, SystemClock } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import { SILENT_LOGGER } from "../../observe/mod.ts";
import type { FullJid, Jid } from "../../xmpp/mod.ts";
import type { LinkTraffic } from "../mod.ts";
import { ClearedKeys } from "./redis/cleared_keys.ts";
import { ClusterBus } from "./mesh/cluster_bus.ts";
import { ClusterDirectory } from "./mesh/cluster_directory.ts";
import type { EndpointAddress, PublicDomain } from "./mesh/directory.ts";
import { Directory } from "./mesh/directory.ts";
import { Heartbeat } from "./mesh/heartbeat.ts";
import { Housekeeping } from "./mesh/housekeeping.ts";
import { HybridClock } from "./claims/hybrid_clock.ts";
import { connectRedis } from "./redis/connect_redis.ts";
import { fullJidKey, isReservedDomain } from "./redis/keys.ts";
import type { KeyRule } from "./claims/key_rule.ts";
import { decideKey, decideReplicatedKey } from "./claims/key_rule.ts";
import { KnownMesh } from "./mesh/known_mesh.ts";
import { LocationCache } from "./lookup/location_cache.ts";
import { LocationLookup } from "./lookup/location_lookup.ts";
import { NodeLeases } from "./claims/node_leases.ts";
import { OwnProcesses } from "./mesh/own_processes.ts";
import type { ResolvedTable, TableOptions } from "./options.ts";
import { LEASES_PER_REFRESH, redisAddress, resolveTable } from "./options.ts";
import { OwnAccounts } from "./claims/own_accounts.ts";
import type { Placement } from "./lookup/placements.ts";
import { Placements } from "./lookup/placements.ts";
import { Publication } from "./mesh/publication.ts";
import { ReadBackQueue } from "./claims/read_back_queue.ts";
import { Reconciler } from "./claims/reconciler.ts";
import type { RedisCommands } from "./redis/redis_commands.ts";
import { RefreshWheel } from "./claims/refresh_wheel.ts";
import { Replication } from "./replication/replication.ts";
import { TableMetrics } from "./table_metrics.ts";

/** The parts that a session table works with. */
export interface TableDependencies {
  readonly metrics: Metrics;
  /** @default the machine's */
  readonly clock?: Clock;
  /** @default a logger that keeps nothing */
  readonly logger?: Logger;
  /**
   * Called once when a newer process with this node's name lives: this one should end, exit code 2.
   */
  readonly onSuperseded?: () => void;
  /**
   * Called when the datacenter's id differs from the one that peers were sent: links are to be made
   * anew.
   */
  readonly onRenamed?: () => void;
  /**
   * Called when a newer session on another node of this datacenter has taken this full JID from
   * ours.
   */
  readonly onDisplaced?: (fullJid: string) => void;
  /**
   * Called when keys (full and bare JIDs, domains) have changed, by another node or by us on its
   * behalf.
   */
  readonly onChanged?: (keys: readonly string[]) => void;
  /** @default a pool of real connections */
  readonly redis?: RedisCommands;
  /** Decides on the value of keys; the simulation replaces it. @default by `replication` */
  readonly keyRule?: KeyRule;
  /** Draws epochs; the simulation replaces it. */
  readonly epochs?: HybridClock;
  /**
   * Called with builtin replication when a datacenter, or one of its endpoints, was not known
   * before.
   */
  readonly meshChanged?: (host: string) => void;
  /**
   * Called when others name a datacenter: `endpoints` says where to dial it, and it must prove its
   * name.
   */
  readonly meshHinted?: (host: string) => void;
  /**
   * Called when an operator has removed a datacenter, on this node or another of ours, or when one
   * known from hearsay has not answered in a day.
   */
  readonly hostRemoved?: (host: string) => void;
}

/** Result of a request to remove a datacenter. */
export type HostRemoval = "removed" | "live" | "unknown" | "unavailable";

/** State of a session table, for the admin API. */
export interface TableSnapshot {
  readonly status: "up" | "degraded";
  /** Reason why it is degraded; undefined while it is up. */
  readonly reason: string | undefined;
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
  readonly #options: ResolvedTable;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #redis: RedisCommands;
  readonly #epochs: HybridClock;
  readonly #metrics: TableMetrics;
  readonly #cache: LocationCache;
  readonly #placements: Placements;
  readonly #lookup: LocationLookup;
  readonly #cluster: ClusterDirectory;
  readonly #bus: ClusterBus;
  readonly #onChanged: (keys: readonly string[]) => void;
  /** The other nodes of this datacenter that are linked or hold a lease. */
  #neighbours: ReadonlySet<string> = new Set();
  /** True when a priority was not written, as no other node was there to read it. */
  #hasUnwritten = false;
  readonly #ownProcesses = new OwnProcesses();
  readonly #leases: NodeLeases;
  readonly #mesh: KnownMesh;
  readonly #publication: Publication;
  readonly #housekeeping: Housekeeping;
  readonly #reconciler: Reconciler;
  readonly #wheel: RefreshWheel;
  readonly #readBack: ReadBackQueue;
  /** Accounts that are being read back. */
  #readingBack = 0;
  readonly #accounts: OwnAccounts;
  readonly #replication: Replication | undefined;
  readonly #heart: Heartbeat;
  #phase: "new" | "running" | "closed" = "new";
  #ticksDue = 0;
  #isTurning = false;
  #cancelTick: CancelTimer = () => {};
  #isRestoring = false;
  #isReviewing = false;

  /** @throws RangeError or CausewayError `table/…` on impossible options */
  constructor(options: TableOptions, deps: TableDependencies) {
    this.#options = resolveTable(options);
    const { redis: redisOptions, cache: cacheOptions, localHost } = this.#options;
    this.#clock = deps.clock ?? new SystemClock();
    this.#logger = deps.logger ?? SILENT_LOGGER;
    this.#onChanged = deps.onChanged ?? (() => {});
    this.#redis = new ClearedKeys(deps.redis ?? connectRedis(redisOptions), (key) => {
      this.#metrics.garbage.inc();
      this.#logger.warn("redis.garbage", { key });
      this.#heart.keyLost();
      this.#replication?.peers.redisLost();
    });
    this.#epochs = deps.epochs ?? new HybridClock(this.#clock);
    this.#cache = new LocationCache(this.#clock, cacheOptions);
    this.#placements = new Placements(this.#clock, cacheOptions);
    this.#bus = new ClusterBus({
      invalidated: (keys) => this.#invalidated(keys),
      arrived: (node, process) => {
        // It lives, even if its lease was missing a moment ago.
        this.#leases.note({ host: localHost, node }, process);
        this.#noteNeighbours(this.#neighbours);
        this.#forgetAll(); // earlier changes are not sent again
      },
    });
    this.#metrics = new TableMetrics(deps.metrics, {
      isUp: () => this.status === "up",
      entries: () => this.#accounts.entries,
      cached: () => this.#cache.size,
      readBacks: () => this.#readBack.size + this.#readingBack,
    });
    const leaseLifetimeMs = Math.min(5_000, redisOptions.refreshAfterMs / LEASES_PER_REFRESH);
    this.#leases = new NodeLeases(
      this.#redis,
      this.#clock,
      leaseLifetimeMs,
      (node, incarnation) => {
        if (node.host === localHost) this.#ownProcesses.note(incarnation);
      },
    );
    const isBuiltin = this.#options.replication === "builtin";
    const common = {
      redis: this.#redis,
      clock: this.#clock,
      leases: this.#leases,
      metrics: this.#metrics,
      failed: (reason: string) => this.#heart.degrade(reason),
    };
    this.#lookup = new LocationLookup({
      ...common,
      cache: this.#cache,
      placements: this.#placements,
      localHost,
      incarnation: this.#options.incarnation,
      isOwn: (jid) => this.#accounts.isOwn(jid),
      ...(isBuiltin ? { replicas: this } : {}),
    });
    const directory = new Directory(
      this.#redis,
      this.#leases,
      (count) => this.#metrics.garbage.inc(count),
    );
    this.#cluster = new ClusterDirectory({
      redis: this.#redis,
      leases: this.#leases,
      localHost,
      nodeName: this.#options.nodeName,
      failed: common.failed,
      garbage: () => this.#metrics.garbage.inc(),
    });
    this.#publication = new Publication(this.#redis, this.#options, this.#epochs);
    this.#housekeeping = new Housekeeping(this.#redis, this.#leases, this.#clock, this.#options);
    this.#wheel = new RefreshWheel(redisOptions.refreshAfterMs);
    this.#readBack = new ReadBackQueue(redisOptions.readBackMs);
    this.#accounts = new OwnAccounts(this.#wheel, this.#epochs, {
      clock: this.#clock,
      incarnation: this.#options.incarnation,
      closed: (name, session) => this.#replication?.withdrawn(name, session),
    });
    this.#reconciler = new Reconciler({
      ...common,
      epochs: this.#epochs,
      options: this.#options,
      rule: deps.keyRule ?? (isBuiltin ? decideReplicatedKey : decideKey),
      lookAgain: (account) => this.#readBack.add(account, this.#clock.monotonicMs()),
      emptied: (account) => this.#accounts.drop(account),
      changed: (key) => this.#changed([key]),
      settled: (account, sessions) => this.#replication?.claimed(account, sessions),
      overfull: (host, count) => this.#replication?.overfull(host, count),
      displaced: (account, { resourcepart }) =>
        deps.onDisplaced?.(fullJidKey(account.name, resourcepart)),
    });
    this.#replication = isBuiltin
      ? new Replication({
        ...common,
        logger: this.#logger,
        metrics: deps.metrics,
        options: this.#options,
        accounts: this.#accounts,
        reconciler: this.#reconciler,
        publication: this.#publication,
        epochs: this.#epochs,
        isRedisUp: () => this.status === "up",
        redisLost: () => this.#spawn(this.#heart.beat()),
        meshChanged: deps.meshChanged ?? (() => {}),
        meshHinted: deps.meshHinted ?? (() => {}),
        hostRemoved: deps.hostRemoved ?? (() => {}),
      })
      : undefined;
    this.#mesh = new KnownMesh(directory, localHost, common.failed, this.#replication?.peers);
    this.#heart = new Heartbeat({
      clock: this.#clock,
      logger: this.#logger,
      options: this.#options,
      publication: this.#publication,
      entries: () => this.#accounts.entries,
      failed: () => this.#metrics.errors.inc(),
      changed: (isUp) => this.#cache.isDegraded = !isUp,
      restored: (hasLost) => {
        this.#spawn(this.#refreshAll());
        if (this.#replication !== undefined) this.#spawn(this.#replication.redisRestored(hasLost));
      },
      lostData: () => this.#lostData(),
      renamed: () => {
        this.#logger.warn("table.datacenter-renamed", { host: localHost, id: this.datacenterId });
        deps.onRenamed?.();
      },
      beaten: async () => {
        await this.#replication?.redisReached();
        await this.#housekeeping.prune();
      },
      superseded: () => {
        const { nodeName, localHost } = this.#options;
        this.#logger.error("table.superseded", { node: nodeName, host: localHost });
        deps.onSuperseded?.();
      },
    });
  }

  /** Takes replication frames from links, with builtin replication. */
  get traffic(): LinkTraffic | undefined {
    return this.#replication;
  }

  /** Status: `degraded` while Redis is away or refuses; then only known addresses are found. */
  get status(): "up" | "degraded" {
    return this.#heart.status;
  }

  /** Id that the nodes of this datacenter share; empty until Redis was reached once. */
  get datacenterId(): string {
    return this.#publication.datacenterId;
  }

  /** Looks this datacenter's id up and corrects it, as a peer takes us for another datacenter. */
  reviewIdentity(): void {
    if (this.#isReviewing || this.#phase !== "running") return;
    this.#isReviewing = true;
    this.#spawn(this.#heart.beat().finally(() => this.#isReviewing = false));
  }

  snapshot(): TableSnapshot {
    return {
      status: this.#heart.status,
      reason: this.#heart.reason,
      datacenterId: this.datacenterId,
      entries: this.#accounts.entries,
      cached: this.#cache.size,
      replication: this.#replication?.snapshot,
    };
  }

  /** True while a node of `host` lives. */
  isLiveHost(host: string): boolean {
    return this.#replication?.isLiveHost(host) ?? true;
  }

  /** Corrects keys that contradict the claims which a lookup found. */
  found(name: string, resourcepart: string): void {
    const account = this.#accounts.borrow(name);
    account.touch(resourcepart);
    this.#spawn(this.#reconciler.request(account));
  }

  /**
   * Connects, publishes this node, and begins to renew our entries. Resolves when the first attempt
   * has succeeded or failed: Redis may come later.
   * @throws CausewayError `table/redis-auth` when Redis is there and refuses the password
   */
  async start(): Promise<void> {
    if (this.#phase !== "new") throw new TypeError("A session table can be started once");
    this.#phase = "running";
    this.#heart.start();
    this.#replication?.start();
    this.#redis.connect({
      connected: (mayHaveLost = false) => {
        if (mayHaveLost) this.#heart.keyLost();
        this.#spawn(this.#heart.beat());
      },
      disconnected: (reason) => this.#heart.disconnected(reason),
    });
    await this.#heart.firstAttempt();
    const refusal = this.#redis.refusal ?? this.#heart.refusal;
    if (refusal !== undefined) {
      await this.close();
      throw new CausewayError(
        "table/redis-auth",
        `Cannot log in to Redis at ${redisAddress(this.#options)}: ${refusal}`,
      );
    }
    if (this.#phase === "running") this.#scheduleTick();
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

  /** The other nodes of this datacenter that are linked or hold a lease. */
  get neighbours(): ReadonlySet<string> {
    return this.#neighbours;
  }

  /** False while this is the datacenter's only node. */
  get hasNeighbours(): boolean {
    return this.#placements.isShared;
  }

  /** True when `jid` has to be located before `placements` can answer for it. */
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

  /** Drops what memory holds on `jid` and its bare JID, so that the next lookup asks Redis. */
  forget(jid: Jid): void {
    this.#cache.forget(jid);
    this.#placements.forgetKey(jid.localpart === "" ? jid.domainpart : jid.text);
  }

  /** Has the next lookup of `jid` ask Redis; memory still answers while Redis is away. */
  expire(jid: Jid): void {
    this.#cache.expire(jid);
  }

  // ---- own sessions and components ---------------------------------------------------------

  /**
   * Claims `jid` for this datacenter. Resolves when the claim is written, or could not be because
   * Redis is away. A session that takes over another's full JID is opened before or after that one
   * closes.
   */
  sessionOpened(jid: FullJid): Promise<void> {
    const { localHost } = this.#options;
    this.#cache.putJid(jid.text, localHost);
    this.#cache.putJid(jid.bare.text, localHost);
    const account = this.#accounts.open(jid.bare.text, jid.resourcepart);
    return this.#announce(this.#reconciler.request(account), [jid.text, jid.bare.text], localHost);
  }

  /** Sets the priority of an available session; undefined when it is no longer available. */
  async sessionPriority(jid: FullJid, priority: number | undefined): Promise<void> {
    const account = this.#accounts.prioritise(jid.bare.text, jid.resourcepart, priority);
    if (account === undefined) return;
    if (!this.#placements.isShared) this.#hasUnwritten = true;
    else await this.#announce(this.#reconciler.request(account), [jid.bare.text]);
  }

  /**
   * Withdraws the claim of the oldest session of this node with that full JID, and nothing else.
   */
  sessionClosed(jid: FullJid): Promise<void> {
    this.#cache.forget(jid);
    const withdrawn = this.#withdrawn(jid.bare.text, jid.resourcepart);
    return this.#announce(withdrawn, [jid.text, jid.bare.text]);
  }

  /** Claims a component's domain for this datacenter; a hidden one is not listed to users. */
  async domainAdded(domain: string, options: { readonly hidden: boolean }): Promise<void> {
    if (isReservedDomain(domain)) {
      this.#logger.error("table.domain-reserved", { domain }); // its key is the table's own
      return;
    }
    this.#publication.setDomain(domain, options.hidden);
    const { localHost } = this.#options;
    this.#cache.putDomain(domain, localHost);
    const claimed = this.#accounts.has(domain)
      ? Promise.resolve()
      : this.#reconciler.request(this.#accounts.open(domain, ""));
    await this.#announce(Promise.all([claimed, this.#heart.beat()]), [domain], localHost);
  }

  /** Withdraws a component's domain. */
  async domainRemoved(domain: string): Promise<void> {
    this.#publication.removeDomain(domain);
    this.#cache.forgetKey(domain);
    await this.#announce(Promise.all([this.#withdrawn(domain, ""), this.#heart.beat()]), [domain]);
  }

  /** Publishes the endpoints of this node, in place of earlier ones. */
  async publishEndpoints(endpoints: readonly EndpointAddress[]): Promise<void> {
    this.#publication.setEndpoints(endpoints);
    this.#replication?.leaseChanged();
    await this.#heart.beat();
  }

  // ---- the other nodes of this datacenter --------------------------------------------------

  /** Publishes the address where this node accepts links from the other nodes of its datacenter. */
  async publishClusterAddress(address: EndpointAddress): Promise<void> {
    this.#publication.setClusterAddress(address);
    await this.#heart.beat();
  }

  /** Returns other live nodes of this datacenter; while Redis is away, the last known ones. */
  async clusterNodes(): Promise<readonly string[]> {
    const nodes = await this.#cluster.nodes();
    this.#noteNeighbours(nodes);
    return nodes;
  }

  /** Returns the endpoint of another node of this datacenter. */
  clusterEndpoints(nodeName: string): Promise<readonly EndpointAddress[]> {
    return this.#cluster.endpoints(nodeName);
  }

  /** True for this process, and for known processes of our datacenter, including ended ones. */
  isOwnProcess(process: number): boolean {
    return process === this.#options.incarnation || process === this.#publication.predecessor ||
      this.#ownProcesses.has(process);
  }

  /** The bus over the links between the nodes of this datacenter. */
  get clusterBus(): ClusterBus {
    return this.#bus;
  }

  // ---- the mesh ----------------------------------------------------------------------------

  /**
   * Returns the endpoints of the live nodes of `host`; while Redis is away, the last known ones.
   */
  endpoints(host: string): Promise<readonly EndpointAddress[]> {
    return this.#mesh.endpoints(host);
  }

  /**
   * Returns local hosts with a live node, always with ours; while Redis is away, the last known
   * ones.
   */
  hosts(): Promise<readonly string[]> {
    return this.#mesh.hosts();
  }

  /**
   * Removes a datacenter that will not come back from the table, for all nodes of this one.
   * `unavailable`: Redis is away. `unknown`: also with an external replicator, which keeps nothing
   * of a datacenter without a live node.
   */
  async removeHost(host: string): Promise<HostRemoval> {
    if (host === this.#options.localHost) return "live";
    if (this.status !== "up") return "unavailable";
    if (this.#replication !== undefined) return await this.#replication.removeHost(host);
    return (await this.hosts()).includes(host) ? "live" : "unknown";
  }

  /**
   * Returns components of all datacenters that are not hidden; while Redis is away, the last known
   * ones.
   */
  publicDomains(): Promise<readonly PublicDomain[]> {
    return this.#mesh.domains({ includesHidden: false });
  }

  /** Like `publicDomains`, with hidden ones. */
  allDomains(): Promise<readonly PublicDomain[]> {
    return this.#mesh.domains({ includesHidden: true });
  }

  /** Withdraws our entries, as far as `withdrawMs` allows, and disconnects. */
  async close(): Promise<void> {
    if (this.#phase === "closed") return;
    this.#phase = "closed";
    this.#cancelTick();
    this.#replication?.close();
    this.#heart.close();
    if (this.status === "up") {
      const late = Promise.withResolvers<void>();
      const cancel = this.#clock.after(this.#options.redis.withdrawMs, () => late.resolve());
      await Promise.race([this.#withdraw(), late.promise]);
      cancel();
    }
    await this.#redis.close();
    await this.#heart.idle();
  }

  // ---- inside ------------------------------------------------------------------------------

  /**
   * Tells the other nodes of this datacenter of `keys` once `written` is over.
   * @param host the value that may stay in the cache
   */
  async #announce(
    written: Promise<unknown>,
    keys: readonly string[],
    host?: string,
  ): Promise<void> {
    await written;
    for (const key of keys) {
      // A lookup may have read the former value meanwhile, and cached it.
      this.#lookup.changed(key);
      this.#placements.forgetKey(key);
      if (host === undefined || this.#cache.hostOf(key) !== host) this.#cache.forgetKey(key);
    }
    this.#bus.invalidate(keys);
  }

  /** Drops `key` from memory, and from the results of pending lookups. */
  #outdated(key: string): void {
    this.#lookup.changed(key);
    this.#cache.forgetKey(key);
    this.#placements.forgetKey(key);
  }

  /** Drops keys that this node has written from its own cache and the other nodes'. */
  #changed(keys: readonly string[]): void {
    for (const key of keys) this.#outdated(key);
    this.#bus.invalidate(keys);
    this.#onChanged(keys);
  }

  /** Drops keys that another node of this datacenter has changed. */
  #invalidated(keys: readonly string[]): void {
    for (const key of keys) {
      this.#outdated(key);
      const slash = key.indexOf("/");
      if (slash === -1) continue;
      // our full JID may have been taken: a pass reads the claims
      const account = this.#accounts.find(key.slice(0, slash));
      if (account !== undefined) this.#spawn(this.#reconciler.request(account));
    }
    this.#onChanged(keys);
  }

  /** @param listed nodes that hold a lease; those that are linked live too */
  #noteNeighbours(listed: Iterable<string>): void {
    const nodes = new Set([...listed, ...this.#bus.nodes]);
    const hasLost = [...this.#neighbours].some((node) => !nodes.has(node));
    this.#neighbours = nodes;
    this.#placements.isShared = nodes.size > 0;
    if (hasLost) this.#forgetAll();
    if (nodes.size > 0 && this.#hasUnwritten) {
      this.#hasUnwritten = false;
      this.#spawn(this.#refreshAll());
    }
  }

  #forgetAll(): void {
    if (this.status !== "up") return; // only old entries can answer now
    this.#lookup.allChanged();
    this.#cache.clear();
    this.#placements.clear();
  }

  #withdrawn(name: string, resourcepart: string): Promise<void> {
    const account = this.#accounts.close(name, resourcepart);
    return account === undefined ? Promise.resolve() : this.#reconciler.request(account);
  }

  #scheduleTick(): void {
    this.#cancelTick = this.#clock.after(this.#wheel.tickMs, () => {
      this.#scheduleTick();
      this.#ticksDue++;
      this.#spawn(this.#turn());
    });
  }

  /** Runs one step of all recurring work. A slow Redis makes steps late, never many at once. */
  async #turn(): Promise<void> {
    if (this.#isTurning) return;
    this.#isTurning = true;
    try {
      if (this.#heart.isDue) await this.#heart.beat();
      while (this.#ticksDue > 0 && this.#phase === "running") {
        this.#ticksDue--;
        const accounts = this.#wheel.tick();
        if (this.status === "up") await this.#reconciler.refresh(accounts);
        else this.#reconciler.dropExpired(accounts);
      }
      const due = this.#readBack.take(this.#clock.monotonicMs());
      this.#readingBack = due.size;
      if (due.size > 0 && this.status === "up") await this.#reconciler.refresh(due);
    } finally {
      this.#readingBack = 0;
      this.#isTurning = false;
    }
  }

  #lostData(): void {
    if (this.#replication === undefined) return;
    this.#logger.warn("redis.lost-data", { address: redisAddress(this.#options) });
    this.#spawn(this.#replication.redisRestored(true));
    this.#spawn(this.#refreshAll());
  }

  async #refreshAll(): Promise<void> {
    if (this.#isRestoring) return;
    this.#isRestoring = true;
    for (const account of this.#accounts.all()) account.restartRenewals();
    await this.#reconciler.refresh(this.#accounts.all());
    this.#isRestoring = false;
  }

  /** Runs a promise that never rejects: a failure in it is a bug, and must be seen. */
  #spawn(task: Promise<void>): void {
    task.catch((thrown) => this.#logger.error("table.bug", { error: String(thrown) }));
  }

  async #withdraw(): Promise<void> {
    this.#accounts.closeAll();
    await this.#reconciler.refresh(this.#accounts.all());
    const left = [...this.#accounts.all()].filter((account) =>
      account.closed.some((session) => !session.isWithdrawn)
    );
    await Promise.all(left.map((account) => this.#reconciler.request(account)));
    await this.#heart.idle();
    try {
      await this.#publication.withdraw(await this.#housekeeping.isLastNode());
    } catch (thrown) {
      this.#logger.warn("table.withdraw-failed", { reason: describeError(thrown) });
    }
  }
}

/** True for a domain whose key is one of the table's own: no component can have it. */
function isReserved(jid: Jid): boolean {
  return jid.localpart === "" && isReservedDomain(jid.domainpart);
}
