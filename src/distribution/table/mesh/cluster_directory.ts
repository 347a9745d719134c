import { describeError } from "../../../base/mod.ts";
import type { EndpointAddress } from "./directory.ts";
import { tryParseEndpoint } from "./directory.ts";
import { clusterKey } from "../redis/keys.ts";
import type { NodeLeases } from "../claims/node_leases.ts";
import type { RedisCommands } from "../redis/redis_commands.ts";
import { RedisErrorReply } from "../redis/redis_commands.ts";

/** The parts that `ClusterDirectory` works with. */
export interface ClusterDirectoryDependencies {
  readonly redis: RedisCommands;
  readonly leases: NodeLeases;
  readonly localHost: string;
  readonly nodeName: string;
  /** Called when Redis could not be asked. */
  failed(reason: string): void;
  /** Called for a value that the table does not write. */
  garbage(): void;
}

/** The other nodes of this datacenter and their addresses for links, as last read. */
export class ClusterDirectory {
  readonly #deps: ClusterDirectoryDependencies;
  #known: ReadonlyMap<string, EndpointAddress> = new Map();

  constructor(deps: ClusterDirectoryDependencies) {
    this.#deps = deps;
  }

  /** Returns nodes that hold a lease; while Redis is away, the last known ones. Never rejects. */
  async nodes(): Promise<readonly string[]> {
    const { redis, leases, localHost, nodeName, failed, garbage } = this.#deps;
    try {
      const [reply] = await redis.run([["HGETALL", clusterKey(localHost)]]);
      if (reply instanceof RedisErrorReply) throw new Error(reply.message);
      const listed = new Map<string, EndpointAddress>();
      if (Array.isArray(reply)) {
        for (let i = 0; i + 1 < reply.length; i += 2) {
          const address = tryParseEndpoint(reply[i + 1]!);
          if (address === undefined) garbage();
          else if (reply[i] !== nodeName) listed.set(reply[i]!, address);
        }
      }
      await leases.read([...listed.keys()].map((node) => ({ host: localHost, node })));
      for (const node of listed.keys()) {
        if (leases.incarnation({ host: localHost, node }) === undefined) listed.delete(node);
      }
      this.#known = listed;
    } catch (thrown) {
      failed(describeError(thrown));
    }
    return [...this.#known.keys()];
  }

  /** Returns the endpoint of `node`; empty when it is not known to live. Never rejects. */
  async endpoints(node: string): Promise<readonly EndpointAddress[]> {
    await this.nodes();
    const address = this.#known.get(node);
    return address === undefined ? [] : [address];
  }
}
