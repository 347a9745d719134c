import type { Clock } from "../../base/mod.ts";
import { describeError } from "../../base/mod.ts";
import { isHost } from "./claims/claims.ts";
import type { EndpointAddress } from "./mesh/directory.ts";
import { tryParseEndpoint } from "./mesh/directory.ts";
import type { HostPort, RedisOptions, TableOptions } from "./options.ts";
import { redisAddress, resolveTable } from "./options.ts";
import { ask } from "./redis/ask.ts";
import { connectRedis } from "./redis/connect_redis.ts";
import type { RedisSettings } from "./redis/inspect_redis.ts";
import { inspectRedis } from "./redis/inspect_redis.ts";
import {
  clusterKey,
  datacenterKey,
  endpointsKey,
  HOSTS_KEY,
  LAYOUT_KEY,
  leaseKey,
  nodesKey,
} from "./redis/keys.ts";
import { tryParseLayout } from "./redis/layout.ts";
import type { RedisCommand, RedisCommands } from "./redis/redis_commands.ts";

/** A node as its datacenter announces it in Redis. */
export interface AnnouncedNode {
  readonly name: string;
  /** True while its lease lives. */
  readonly isLive: boolean;
  readonly endpoints: readonly EndpointAddress[];
}

/** A datacenter as Redis knows it. */
export interface AnnouncedHost {
  readonly host: string;
  /** Empty while Redis has none. */
  readonly datacenterId: string;
  readonly nodes: readonly AnnouncedNode[];
  /** Names of its nodes that write to this Redis themselves, and not through a replication. */
  readonly writers: readonly string[];
}

/** Redis of a datacenter, read by somebody who is no node and writes nothing. */
export interface TableInspection {
  /** Address for messages. */
  readonly address: string;
  /** Reason why Redis could not be read; undefined when it could. */
  readonly problem: string | undefined;
  /** Number of the layout in which the table is written; undefined where Redis has none. */
  readonly layout: number | undefined;
  /** Empty when Redis could not be read. */
  readonly hosts: readonly AnnouncedHost[];
  /** One for each server that was asked; a cluster has several. */
  readonly servers: readonly RedisSettings[];
}

/** Most datacenters, and most nodes of each, that are looked at. */
const MAX_NAMES = 1_000;

/** Reads what an operator has to know of a datacenter's Redis. Never rejects. */
export async function inspectTable(options: TableOptions, clock: Clock): Promise<TableInspection> {
  const resolved = resolveTable({ ...options, redis: { ...options.redis, poolSize: 1 } });
  const address = redisAddress(resolved);
  let redis: RedisCommands | undefined;
  try {
    redis = connectRedis(resolved.redis);
    await connected(redis);
    // The table first: a proxy may hang up at the commands about the server.
    const hosts = await announcedHosts(redis);
    const [layout] = await ask(redis, [["GET", LAYOUT_KEY]]);
    const servers = await inspectServers(resolved.redis, clock);
    return { address, problem: undefined, layout: tryParseLayout(layout), hosts, servers };
  } catch (thrown) {
    const problem = describeError(thrown);
    return { address, problem, layout: undefined, hosts: [], servers: [] };
  } finally {
    await redis?.close();
  }
}

function connected(redis: RedisCommands): Promise<void> {
  return new Promise((resolve, reject) => {
    redis.connect({
      connected: () => resolve(),
      disconnected: (reason) => reject(new Error(reason)),
    });
  });
}

async function announcedHosts(redis: RedisCommands): Promise<readonly AnnouncedHost[]> {
  const [listed] = await ask(redis, [["SMEMBERS", HOSTS_KEY]]);
  const hosts = listed.filter(isHost).toSorted().slice(0, MAX_NAMES);
  return await Promise.all(hosts.map(async (host) => {
    const [names, id, neighbours] = await ask(redis, [
      ["SMEMBERS", nodesKey(host)],
      ["GET", datacenterKey(host)],
      ["HGETALL", clusterKey(host)],
    ]);
    const nodes = names.toSorted().slice(0, MAX_NAMES);
    return {
      host,
      datacenterId: id ?? "",
      // Addresses for nodes of the same datacenter: the builtin replication leaves them at home.
      writers: neighbours.filter((_, i) => i % 2 === 0).toSorted().slice(0, MAX_NAMES),
      nodes: await Promise.all(nodes.map((name) => announcedNode(redis, host, name))),
    };
  }));
}

async function announcedNode(
  redis: RedisCommands,
  host: string,
  name: string,
): Promise<AnnouncedNode> {
  const commands = [
    ["GET", leaseKey(host, name)],
    ["SMEMBERS", endpointsKey(host, name)],
  ] as const satisfies readonly RedisCommand[];
  const [lease, members] = await ask(redis, commands);
  const endpoints = members.toSorted().map(tryParseEndpoint).filter((found) => found !== undefined);
  return { name, isLive: lease !== null && lease !== "", endpoints };
}

function inspectServers(
  options: Required<RedisOptions>,
  clock: Clock,
): Promise<readonly RedisSettings[]> {
  const places: readonly (HostPort | undefined)[] = options.cluster.length > 0
    ? options.cluster
    : [undefined];
  return Promise.all(places.map((at) => inspectRedis(options, { at, clock })));
}
