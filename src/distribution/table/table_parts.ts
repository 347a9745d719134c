import type { Clock } from "../../base/mod.ts";
import { SystemClock } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import { SILENT_LOGGER } from "../../observe/mod.ts";
import { HybridClock } from "./claims/hybrid_clock.ts";
import type { KeyRule } from "./claims/key_rule.ts";
import { decideKey, decideReplicatedKey } from "./claims/key_rule.ts";
import { NodeLeases } from "./claims/node_leases.ts";
import { OwnAccounts } from "./claims/own_accounts.ts";
import { Reconciler } from "./claims/reconciler.ts";
import { RefreshWheel } from "./claims/refresh_wheel.ts";
import { LocationMemory } from "./location_memory.ts";
import { LocationCache } from "./lookup/location_cache.ts";
import { AccountSessions } from "./lookup/account_sessions.ts";
import { LocationLookup } from "./lookup/location_lookup.ts";
import { Placements } from "./lookup/placements.ts";
import { ClusterBus } from "./mesh/cluster_bus.ts";
import { ClusterDirectory } from "./mesh/cluster_directory.ts";
import { Directory } from "./mesh/directory.ts";
import { Heartbeat } from "./mesh/heartbeat.ts";
import { Housekeeping } from "./mesh/housekeeping.ts";
import { KnownMesh } from "./mesh/known_mesh.ts";
import { OwnProcesses } from "./mesh/own_processes.ts";
import { Publication } from "./mesh/publication.ts";
import { Neighbours } from "./neighbours.ts";
import type { ResolvedTable } from "./options.ts";
import { LEASES_PER_REFRESH, redisAddress } from "./options.ts";
import { OwnEntries } from "./own_entries.ts";
import { ClearedKeys } from "./redis/cleared_keys.ts";
import { connectRedis } from "./redis/connect_redis.ts";
import { fullJidKey } from "./redis/keys.ts";
import type { RedisCommands } from "./redis/redis_commands.ts";
import { Renewal } from "./renewal.ts";
import { Replication } from "./replication/replication.ts";
import { TableMetrics } from "./table_metrics.ts";

/** The parts that a session table works with. */
export interface TableDeps {
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

/** The parts of a session table, connected with one another. */
export interface TableParts {
  readonly options: ResolvedTable;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly redis: RedisCommands;
  readonly metrics: TableMetrics;
  readonly leases: NodeLeases;
  readonly cache: LocationCache;
  readonly placements: Placements;
  /** Finds the sessions of accounts over all datacenters. */
  readonly sessions: AccountSessions;
  readonly lookup: LocationLookup;
  readonly memory: LocationMemory;
  readonly accounts: OwnAccounts;
  readonly entries: OwnEntries;
  readonly renewal: Renewal;
  readonly bus: ClusterBus;
  readonly neighbours: Neighbours;
  readonly ownProcesses: OwnProcesses;
  readonly publication: Publication;
  readonly housekeeping: Housekeeping;
  readonly mesh: KnownMesh;
  readonly heart: Heartbeat;
  /** Undefined with an external replicator. */
  readonly replication: Replication | undefined;
  /** Runs a promise that never rejects: a failure in it is a bug, and must be seen. */
  spawn(task: Promise<void>): void;
}

/** Makes the parts of a table. Nothing runs yet. */
export function assembleTable(options: ResolvedTable, deps: TableDeps): TableParts {
  const { redis: redisOptions, cache: cacheOptions, localHost, nodeName, incarnation } = options;
  const clock = deps.clock ?? new SystemClock();
  const logger = deps.logger ?? SILENT_LOGGER;
  const isBuiltin = options.replication === "builtin";
  const isRedisUp = () => heart.status === "up";
  const spawn = (task: Promise<void>) =>
    void task.catch((thrown) => logger.error("table.bug", { error: String(thrown) }));
  const redis: RedisCommands = new ClearedKeys(
    deps.redis ?? connectRedis(redisOptions),
    (key) => {
      metrics.garbage.inc();
      logger.warn("redis.garbage", { key });
      heart.keyLost();
      replication?.peers.redisLost();
    },
  );
  const metrics: TableMetrics = new TableMetrics(deps.metrics, {
    isUp: isRedisUp,
    entries: () => accounts.entries,
    cached: () => cache.size,
    readBacks: () => renewal.readBacks,
  });
  const epochs = deps.epochs ?? new HybridClock(clock);
  const ownProcesses = new OwnProcesses();
  const leaseLifetimeMs = Math.min(5_000, redisOptions.refreshAfterMs / LEASES_PER_REFRESH);
  const leases = new NodeLeases(redis, clock, leaseLifetimeMs, (node, process) => {
    if (node.host === localHost) ownProcesses.note(process);
  });
  const common = {
    redis,
    clock,
    leases,
    metrics,
    failed: (reason: string) => heart.degrade(reason),
  };

  const cache = new LocationCache(clock, cacheOptions);
  const placements = new Placements(clock, cacheOptions);
  const replicas = {
    isLiveHost: (host: string) => replication?.isLiveHost(host) ?? true,
    found: (name: string, resourcepart: string) => entries.correct(name, resourcepart),
  };
  const lookup = new LocationLookup({
    ...common,
    cache,
    placements,
    localHost,
    incarnation,
    isOwn: (jid) => accounts.isOwn(jid),
    ...(isBuiltin ? { replicas } : {}),
  });

  const sessions = new AccountSessions({
    ...common,
    own: { host: localHost, process: incarnation },
  });

  const bus: ClusterBus = new ClusterBus({
    invalidated: (keys) => {
      memory.invalidated(keys);
      entries.checkTaken(keys);
    },
    arrived: (node, process) => {
      neighbours.arrived(node, process);
      memory.forgetAll(); // earlier changes are not sent again
    },
  });
  const memory: LocationMemory = new LocationMemory({
    cache,
    placements,
    lookup,
    bus,
    isRedisUp,
    onChanged: deps.onChanged ?? (() => {}),
  });
  const cluster = new ClusterDirectory({
    redis,
    leases,
    localHost,
    nodeName,
    failed: common.failed,
    garbage: () => metrics.garbage.inc(),
  });
  const neighbours: Neighbours = new Neighbours({
    localHost,
    bus,
    cluster,
    leases,
    placements,
    lost: () => memory.forgetAll(),
    present: () => entries.writePriorities(),
  });

  const publication = new Publication(redis, options, epochs);
  const housekeeping = new Housekeeping(redis, leases, clock, options);
  const wheel = new RefreshWheel(redisOptions.refreshAfterMs);
  const accounts: OwnAccounts = new OwnAccounts(wheel, epochs, {
    clock,
    incarnation,
    closed: (name, session) => replication?.withdrawn(name, session),
  });
  const reconciler = new Reconciler({
    ...common,
    epochs,
    options,
    rule: deps.keyRule ?? (isBuiltin ? decideReplicatedKey : decideKey),
    lookAgain: (account) => renewal.readBack(account),
    emptied: (account) => accounts.drop(account),
    changed: (key) => memory.changed([key]),
    settled: (account, sessions) => replication?.claimed(account, sessions),
    overfull: (host, count) => replication?.overfull(host, count),
    displaced: (account, { resourcepart }) =>
      deps.onDisplaced?.(fullJidKey(account.name, resourcepart)),
  });
  const replication: Replication | undefined = isBuiltin
    ? new Replication({
      ...common,
      logger,
      metrics: deps.metrics,
      options,
      accounts,
      reconciler,
      publication,
      epochs,
      isRedisUp,
      redisLost: () => spawn(heart.beat()),
      meshChanged: deps.meshChanged ?? (() => {}),
      meshHinted: deps.meshHinted ?? (() => {}),
      hostRemoved: deps.hostRemoved ?? (() => {}),
    })
    : undefined;
  const directory = new Directory(redis, leases, (count) => metrics.garbage.inc(count));
  const mesh = new KnownMesh(directory, localHost, common.failed, replication?.peers);
  const heart: Heartbeat = new Heartbeat({
    clock,
    logger,
    options,
    publication,
    entries: () => accounts.entries,
    failed: () => metrics.errors.inc(),
    changed: (isUp) => cache.isDegraded = !isUp,
    restored: (hasLost) => {
      spawn(renewal.refreshAll());
      if (replication !== undefined) spawn(replication.redisRestored(hasLost));
    },
    lostData: () => {
      if (replication === undefined) return;
      logger.warn("redis.lost-data", { address: redisAddress(options) });
      spawn(replication.redisRestored(true));
      spawn(renewal.refreshAll());
    },
    renamed: () => {
      logger.warn("table.datacenter-renamed", { host: localHost, id: publication.datacenterId });
      deps.onRenamed?.();
    },
    beaten: async () => {
      await replication?.redisReached();
      await housekeeping.prune();
    },
    superseded: () => {
      logger.error("table.superseded", { node: nodeName, host: localHost });
      deps.onSuperseded?.();
    },
  });
  const renewal: Renewal = new Renewal({
    clock,
    wheel,
    accounts,
    reconciler,
    heart,
    readBackMs: redisOptions.readBackMs,
    spawn,
  });
  const entries: OwnEntries = new OwnEntries({
    localHost,
    logger,
    accounts,
    reconciler,
    publication,
    cache,
    placements,
    memory,
    beat: () => heart.beat(),
    refreshAll: () => renewal.refreshAll(),
    spawn,
  });
  return {
    options,
    clock,
    logger,
    redis,
    metrics,
    leases,
    cache,
    placements,
    lookup,
    memory,
    sessions,
    accounts,
    entries,
    renewal,
    bus,
    neighbours,
    ownProcesses,
    publication,
    housekeeping,
    mesh,
    heart,
    replication,
    spawn,
  };
}
