import { describeError } from "../../../base/mod.ts";
import type { EndpointAddress } from "./directory.ts";
import { tryParseEndpoint } from "./directory.ts";
import { clusterKey } from "../redis/keys.ts";
import type { NodeLeases } from "../claims/node_leases.ts";
import { ask } from "../redis/ask.ts";
import type { RedisCommands } from "../redis/redis_commands.ts";

/** The parts that `ClusterDirectory` works with. */
export interface ClusterDirectoryDeps {
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
  readonly #deps: ClusterDirectoryDeps;
  #known: ReadonlyMap<string, EndpointAddress> = new Map();

  constructor(deps: ClusterDirectoryDeps) {
    this.#deps = deps;
  }

  /** Returns nodes that hold a lease; while Redis is away, the last known ones. Never rejects. */
  async nodes(): Promise<readonly string[]> {
    const { redis, leases, localHost, nodeName, failed, garbage } = this.#deps;
    try {
      const [fields] = await ask(redis, [["HGETALL", clusterKey(localHost)]]);
      const listed = new Map<string, EndpointAddress>();
      for (let i = 0; i + 1 < fields.length; i += 2) {
        const address = tryParseEndpoint(fields[i + 1]!);
        if (address === undefined) garbage();
        else if (fields[i] !== nodeName) listed.set(fields[i]!, address);
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
