import { CausewayError, integerIn } from "../../base/mod.ts";

/** Options of the session table: Redis, entries and cache. Durations in milliseconds. */
export interface TableOptions {
  /** The domain that all datacenters share. */
  readonly globalHost: string;
  /** The domain that names this datacenter, as our entries name it. */
  readonly localHost: string;
  /**
   * Every domain that this datacenter serves itself: none may name another datacenter, or be a
   * component of another. @default the two above, which are always included
   */
  readonly hosts?: readonly string[];
  /** Name of this node, unique in its datacenter. */
  readonly nodeName: string;
  /** Drawn once by the process with `randomIncarnation()`. */
  readonly incarnation: number;
  /**
   * Carrier of entries between the datacenters' Redises: the nodes themselves over their links, or
   * a program outside of Causeway. @default "builtin"
   */
  readonly replication?: "builtin" | "external";
  readonly redis?: RedisOptions;
  readonly cache?: CacheOptions;
  readonly datacenter?: DatacenterBounds;
}

/**
 * Bounds on the entries of one other datacenter, over all its nodes; entries past a bound are
 * refused.
 */
export interface DatacenterBounds {
  /** Live nodes; at least 1. @default 256 */
  readonly maxNodes?: number;
  /** Endpoints of one node, the first that it names; 1 to 64. @default 16 */
  readonly maxEndpointsPerNode?: number;
  /** Remembered endpoints of all its nodes; at least 1. @default 256 */
  readonly maxEndpoints?: number;
  /** Sessions; one whose address is longer than 256 bytes counts as 16; at least 1. @default 1_000_000 */
  readonly maxClaims?: number;
  /** Sessions of one account among them, the newest; at least 1. @default 200 */
  readonly maxClaimsPerAccount?: number;
  /** Component domains; at least 1. @default 1_000 */
  readonly maxDomains?: number;
  /** Longest life of a lease, whatever it says; at least 1_000. @default `redis.expireAfterMs` */
  readonly maxLeaseMs?: number;
}

/** Options under `modules.mod_global_distrib.redis`. */
export interface RedisOptions {
  /** Name or address, or the path of a Unix socket when it begins with `/`. @default "127.0.0.1" */
  readonly server?: string;
  /** 1 to 65535. @default 8102 */
  readonly port?: number;
  /** ACL user; empty for Redis' default user. @default "" */
  readonly username?: string;
  /** Empty for none. @default "" */
  readonly password?: string;
  /** Encrypts the connections, to Sentinels too; undefined for plain TCP. @default undefined */
  readonly tls?: RedisTlsOptions | undefined;
  /** Sentinels that name the master, instead of `server` and `port`. @default [] */
  readonly sentinels?: readonly HostPort[];
  /** Name by which they know it. @default "mymaster" */
  readonly sentinelName?: string;
  /** Empty for none. @default "" */
  readonly sentinelUsername?: string;
  /** Empty for none. @default "" */
  readonly sentinelPassword?: string;
  /** Nodes of a Redis Cluster that name all of it, instead of `server` and `port`. @default [] */
  readonly cluster?: readonly HostPort[];
  /** Connections; the commands on one key always take the same one; 1 to 64. @default 1 */
  readonly poolSize?: number;
  /** Life of an entry without renewal; whole seconds, at least 1 000. @default 120_000 */
  readonly expireAfterMs?: number;
  /** Time in which each entry of ours is renewed once; below `expireAfterMs`. @default 60_000 */
  readonly refreshAfterMs?: number;
  /**
   * Silence of Redis with pending commands after which the connection is ended; 100 to 60_000.
   * @default 5_000
   */
  readonly commandTimeoutMs?: number;
  /**
   * Longest wait between attempts to connect; 50 to 60_000. No key, as it paces only us. @default
   * 2_000
   */
  readonly reconnectMaxMs?: number;
  /** Delays after which a login or logout is read back and repaired. @default [1_000, 5_000] */
  readonly readBackMs?: readonly number[];
  /**
   * Time for `close` to withdraw our entries; the rest expires. No key: a share of a stop's.
   * @default 5_000
   */
  readonly withdrawMs?: number;
}

/** Address of a server. */
export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** Certificates for connections to Redis; files are absolute paths of PEM files. */
export interface RedisTlsOptions {
  /** Authorities that the server's certificate must come from. @default those that the runtime trusts */
  readonly cafile?: string | undefined;
  /** Our certificate, where Redis wants one. */
  readonly certfile?: string | undefined;
  /** @default `certfile` */
  readonly keyfile?: string | undefined;
  /** Name that the server's certificate must carry. @default the host that is connected to */
  readonly servername?: string | undefined;
}

/** `modules.mod_global_distrib.cache`. */
export interface CacheOptions {
  /** True to remember misses. @default true */
  readonly cacheMissed?: boolean;
  /** Lifetime of a domain's host in the cache; at least 0. @default 600_000 */
  readonly domainLifetimeMs?: number;
  /** Lifetime of a JID's host, and of any miss, in the cache; at least 0. @default 5_000 */
  readonly jidLifetimeMs?: number;
  /**
   * JIDs kept; the least recently used go first; at least 1. As many domains besides. @default
   * 10_000
   */
  readonly maxJids?: number;
}

/** Options with all defaults filled in. */
export interface ResolvedTable extends Required<TableOptions> {
  readonly redis: Required<RedisOptions>;
  readonly cache: Required<CacheOptions>;
  readonly datacenter: Required<DatacenterBounds>;
}

const REDIS: Required<RedisOptions> = {
  server: "127.0.0.1",
  port: 8102,
  username: "",
  password: "",
  tls: undefined,
  sentinels: [],
  sentinelName: "mymaster",
  sentinelUsername: "",
  sentinelPassword: "",
  cluster: [],
  poolSize: 1,
  expireAfterMs: 120_000,
  refreshAfterMs: 60_000,
  commandTimeoutMs: 5_000,
  reconnectMaxMs: 2_000,
  readBackMs: [1_000, 5_000],
  withdrawMs: 5_000,
};

const CACHE: Required<CacheOptions> = {
  cacheMissed: true,
  domainLifetimeMs: 600_000,
  jidLifetimeMs: 5_000,
  maxJids: 10_000,
};

const DATACENTER: Required<Omit<DatacenterBounds, "maxLeaseMs">> = {
  maxNodes: 256,
  maxEndpointsPerNode: 16,
  maxEndpoints: 256,
  maxClaims: 1_000_000,
  maxClaimsPerAccount: 200,
  maxDomains: 1_000,
};

/**
 * Fills in the defaults.
 * @throws RangeError on a value out of its range; CausewayError `table/refresh-not-below-expire`
 */
export function resolveTable(options: TableOptions): ResolvedTable {
  const redis = { ...REDIS, ...options.redis };
  const cache = { ...CACHE, ...options.cache };
  const datacenter = { ...DATACENTER, maxLeaseMs: redis.expireAfterMs, ...options.datacenter };
  checkRange("redis.port", redis.port, 1, 65_535);
  checkRange("redis.poolSize", redis.poolSize, 1, 64);
  checkRange("redis.expireAfterMs", redis.expireAfterMs, 1_000, 2 ** 40);
  checkRange("redis.refreshAfterMs", redis.refreshAfterMs, 100, 2 ** 31 - 1);
  checkRange("redis.commandTimeoutMs", redis.commandTimeoutMs, 100, 60_000);
  checkRange("redis.reconnectMaxMs", redis.reconnectMaxMs, 50, 60_000);
  checkRange("cache.domainLifetimeMs", cache.domainLifetimeMs, 0, 2 ** 40);
  checkRange("cache.jidLifetimeMs", cache.jidLifetimeMs, 0, 2 ** 40);
  checkRange("cache.maxJids", cache.maxJids, 1, 100_000_000);
  checkRange("datacenter.maxNodes", datacenter.maxNodes, 1, 10_000);
  checkRange("datacenter.maxEndpointsPerNode", datacenter.maxEndpointsPerNode, 1, 64);
  checkRange("datacenter.maxEndpoints", datacenter.maxEndpoints, 1, 100_000);
  checkRange("datacenter.maxClaims", datacenter.maxClaims, 1, 1_000_000_000);
  checkRange("datacenter.maxClaimsPerAccount", datacenter.maxClaimsPerAccount, 1, 100_000);
  checkRange("datacenter.maxDomains", datacenter.maxDomains, 1, 1_000_000);
  checkRange("datacenter.maxLeaseMs", datacenter.maxLeaseMs, 1_000, 2 ** 40);
  if (redis.sentinels.length > 0 && redis.cluster.length > 0) {
    throw new RangeError("Cannot use redis.sentinels together with redis.cluster");
  }
  if (redis.refreshAfterMs >= redis.expireAfterMs) {
    throw new CausewayError(
      "table/refresh-not-below-expire",
      `Cannot refresh entries every ${redis.refreshAfterMs} ms: they expire after ${redis.expireAfterMs} ms`,
    );
  }
  return Object.freeze({
    ...options,
    hosts: [...new Set([options.globalHost, options.localHost, ...options.hosts ?? []])],
    replication: options.replication ?? "builtin",
    redis: Object.freeze(redis),
    cache: Object.freeze(cache),
    datacenter: Object.freeze(datacenter),
  });
}

/**
 * Least life of other datacenters' entries, in seconds: they renew one lease, and not every entry.
 */
const REPLICA_SECONDS = 86_400;

/** Renewals of a lease within `refreshAfterMs`: eight in an entry's life, by default. */
export const LEASES_PER_REFRESH = 4;

/** Returns the seconds that an entry of another datacenter lives without a check. */
export function replicaSeconds({ redis }: ResolvedTable): string {
  return String(Math.max(REPLICA_SECONDS, 2 * Math.ceil(redis.expireAfterMs / 1000)));
}

/**
 * Returns the address of Redis for messages: a socket's path, server and port, Sentinels or a
 * cluster.
 */
export function redisAddress({ redis }: ResolvedTable): string {
  const { server, port, sentinels, sentinelName, cluster } = redis;
  const list = (addresses: readonly HostPort[]) =>
    addresses.map((address) => `${address.host}:${address.port}`).join(", ");
  if (cluster.length > 0) return `the cluster of ${list(cluster)}`;
  if (sentinels.length > 0) return `${sentinelName} of the Sentinels ${list(sentinels)}`;
  return server.startsWith("/") ? server : `${server}:${port}`;
}

function checkRange(name: string, value: number, min: number, max: number): void {
  integerIn(name, value, { min, max });
}
