import type { Clock } from "../../base/mod.ts";
import { clusterKey, HOSTS_KEY, nodesKey } from "./keys.ts";
import type { NodeLeases } from "./node_leases.ts";
import type { ResolvedTable } from "./options.ts";
import type { RedisCommand, RedisCommands, RedisReply } from "./redis_commands.ts";

/**
 * Sweeps names that others left in sets which somebody renews: nodes of this datacenter without a
 * lease, and hosts that had no live node for as long as entries live.
 */
export class Housekeeping {
  readonly #redis: RedisCommands;
  readonly #leases: NodeLeases;
  readonly #clock: Clock;
  readonly #options: ResolvedTable;
  readonly #deadSinceMs = new Map<string, number>();

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

  /** Rejects as `RedisCommands.run`. */
  async prune(): Promise<void> {
    const { localHost, nodeName } = this.#options;
    const [nodeReply, hostReply] = await this.#redis.run([
      ["SMEMBERS", nodesKey(localHost)],
      ["SMEMBERS", HOSTS_KEY],
    ]);
    const removals: RedisCommand[] = [];
    const deadNodes = (await this.#deadNodes(localHost, members(nodeReply)))
      .filter((node) => node !== nodeName);
    if (deadNodes.length > 0) {
      removals.push(["SREM", nodesKey(localHost), ...deadNodes]);
      removals.push(["HDEL", clusterKey(localHost), ...deadNodes]);
    }
    const deadHosts = await this.#deadHosts(
      members(hostReply).filter((host) => host !== localHost),
    );
    if (deadHosts.length > 0) removals.push(["SREM", HOSTS_KEY, ...deadHosts]);
    await this.#redis.run(removals);
  }

  /** True when no other node of this datacenter lives. */
  async isLastNode(): Promise<boolean> {
    const { localHost, nodeName } = this.#options;
    const [reply] = await this.#redis.run([["SMEMBERS", nodesKey(localHost)]]);
    const others = members(reply).filter((node) => node !== nodeName);
    return (await this.#deadNodes(localHost, others)).length === others.length;
  }

  async #deadNodes(host: string, nodes: readonly string[]): Promise<readonly string[]> {
    await this.#leases.read(nodes.map((node) => ({ host, node })));
    return nodes.filter((node) => this.#leases.incarnation({ host, node }) === undefined);
  }

  async #deadHosts(hosts: readonly string[]): Promise<readonly string[]> {
    const replies = await this.#redis.run(hosts.map((host) => ["SMEMBERS", nodesKey(host)]));
    const nowMs = this.#clock.monotonicMs();
    const dead: string[] = [];
    for (const [i, host] of hosts.entries()) {
      const nodes = members(replies[i]);
      if ((await this.#deadNodes(host, nodes)).length < nodes.length) {
        this.#deadSinceMs.delete(host);
        continue;
      }
      const sinceMs = this.#deadSinceMs.get(host) ?? nowMs;
      this.#deadSinceMs.set(host, sinceMs);
      if (nowMs - sinceMs < this.#options.redis.expireAfterMs) continue;
      this.#deadSinceMs.delete(host);
      dead.push(host);
    }
    return dead;
  }
}

function members(reply: RedisReply | undefined): readonly string[] {
  return Array.isArray(reply) ? reply : [];
}
