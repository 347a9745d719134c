import type { Clock } from "../../../base/mod.ts";
import { clusterKey, HOSTS_KEY, nodesKey } from "../redis/keys.ts";
import type { NodeLeases } from "../claims/node_leases.ts";
import type { ResolvedTable } from "../options.ts";
import { ask } from "../redis/ask.ts";
import type { RedisCommand, RedisCommands } from "../redis/redis_commands.ts";

/**
 * Removes dead names from sets that other nodes renew: nodes of this datacenter without a lease,
 * and hosts without a live node for as long as entries live. With builtin replication it also
 * removes other datacenters' dead nodes, as those datacenters only clean their own Redis.
 */
export class Housekeeping {
  readonly #redis: RedisCommands;
  readonly #leases: NodeLeases;
  readonly #clock: Clock;
  readonly #options: ResolvedTable;
  /** Time since when a host, or `host#node`, has been found dead at every check. */
  #deadSinceMs = new Map<string, number>();

  constructor(
    redis: RedisCommands,
    leases: NodeLeases,
    clock: Clock,
    options: ResolvedTable,
  ) {
    this.#redis = redis;
    this.#leases = leases;
    this.#clock = clock;
    this.#options = options;
  }

  /** Removes the dead names. Rejects as `ask`. */
  async prune(): Promise<void> {
    const { localHost, nodeName } = this.#options;
    const [nodes, hosts] = await ask(this.#redis, [
      ["SMEMBERS", nodesKey(localHost)],
      ["SMEMBERS", HOSTS_KEY],
    ]);
    const removals: RedisCommand[] = [];
    const deadNodes = (await this.#deadNodes(localHost, nodes))
      .filter((node) => node !== nodeName);
    if (deadNodes.length > 0) {
      removals.push(["SREM", nodesKey(localHost), ...deadNodes]);
      removals.push(["HDEL", clusterKey(localHost), ...deadNodes]);
    }
    const others = hosts.filter((host) => host !== localHost);
    removals.push(...await this.#sweepOthers(others));
    await ask(this.#redis, removals);
  }

  /** True when no other node of this datacenter lives. Rejects as `ask`. */
  async isLastNode(): Promise<boolean> {
    const { localHost, nodeName } = this.#options;
    const [nodes] = await ask(this.#redis, [["SMEMBERS", nodesKey(localHost)]]);
    const others = nodes.filter((node) => node !== nodeName);
    return (await this.#deadNodes(localHost, others)).length === others.length;
  }

  async #deadNodes(host: string, nodes: readonly string[]): Promise<readonly string[]> {
    // Leases are read after the names. A node writes its lease first, so a living node has both.
    await this.#leases.read(nodes.map((node) => ({ host, node })), true);
    return nodes.filter((node) => this.#leases.incarnation({ host, node }) === undefined);
  }

  async #sweepOthers(hosts: readonly string[]): Promise<readonly RedisCommand[]> {
    const commands = hosts.map((host) => ["SMEMBERS", nodesKey(host)] as const);
    const nodesOf = await ask(this.#redis, commands);
    const nowMs = this.#clock.monotonicMs();
    const before = this.#deadSinceMs;
    this.#deadSinceMs = new Map();
    const isLongDead = (name: string) => {
      const sinceMs = before.get(name) ?? nowMs;
      if (nowMs - sinceMs >= this.#options.redis.expireAfterMs) return true;
      this.#deadSinceMs.set(name, sinceMs);
      return false;
    };
    const removals: RedisCommand[] = [];
    const longDeadHosts: string[] = [];
    for (const [i, host] of hosts.entries()) {
      const nodes = nodesOf[i]!;
      const dead = await this.#deadNodes(host, nodes);
      if (dead.length === nodes.length && isLongDead(host)) longDeadHosts.push(host);
      // An external replicator would carry the removal to where the node may live.
      if (this.#options.replication === "external") continue;
      const longDead = dead.filter((node) => isLongDead(`${host}#${node}`));
      if (longDead.length > 0) removals.push(["SREM", nodesKey(host), ...longDead]);
    }
    if (longDeadHosts.length > 0) removals.push(["SREM", HOSTS_KEY, ...longDeadHosts]);
    return removals;
  }
}
