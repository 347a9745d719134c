import { isHost } from "../claims/claims.ts";
import { domainsKey, endpointsKey, HOSTS_KEY, nodesKey, publicDomainsKey } from "../redis/keys.ts";
import type { NodeLeases } from "../claims/node_leases.ts";
import { ask } from "../redis/ask.ts";
import type { RedisCommand, RedisCommands } from "../redis/redis_commands.ts";

/** Address where a node accepts links. */
export interface EndpointAddress {
  readonly host: string;
  readonly port: number;
}

/** A component's domain and the datacenter where it is connected. */
export interface PublicDomain {
  readonly domain: string;
  readonly host: string;
}

/** Selection of components' domains. */
export interface DomainsOptions {
  /** True to include domains that are not listed to users. */
  readonly includesHidden: boolean;
}

/** Returns an endpoint as it stands in a set: `<host_or_ip>#<port>`. */
export function formatEndpoint(endpoint: EndpointAddress): string {
  return `${endpoint.host}#${endpoint.port}`;
}

/** Reads an endpoint; undefined for other text. */
export function tryParseEndpoint(text: string): EndpointAddress | undefined {
  const hash = text.lastIndexOf("#");
  const host = text.slice(0, Math.max(0, hash));
  const port = text.slice(hash + 1);
  if (!/^[0-9A-Za-z._:%-]{1,255}$/.test(host) || !/^[1-9][0-9]{0,4}$/.test(port)) return undefined;
  return Number(port) <= 65_535 ? { host, port: Number(port) } : undefined;
}

/**
 * Reads the entries that the nodes of all datacenters publish. Entries of dead nodes do not count.
 */
export class Directory {
  readonly #redis: RedisCommands;
  readonly #leases: NodeLeases;
  readonly #noteGarbage: (count: number) => void;

  constructor(redis: RedisCommands, leases: NodeLeases, noteGarbage: (count: number) => void) {
    this.#redis = redis;
    this.#leases = leases;
    this.#noteGarbage = noteGarbage;
  }

  /** Returns local hosts that have a live node. Rejects as `ask`. */
  async hosts(): Promise<readonly string[]> {
    return [...(await this.liveNodes()).keys()];
  }

  /** Returns live nodes by local host. */
  async liveNodes(): Promise<ReadonlyMap<string, readonly string[]>> {
    const [listed] = await this.#ask([["SMEMBERS", HOSTS_KEY]]);
    const hosts = listed.filter((host) => isHost(host) || this.#isGarbage());
    return await this.#nodesOf(hosts);
  }

  /** Returns the endpoints of the live nodes of `host`. */
  async endpoints(host: string): Promise<readonly EndpointAddress[]> {
    const nodes = (await this.#nodesOf([host])).get(host);
    if (nodes === undefined) return []; // SUNION of no keys is an error
    const keys = nodes.map((node) => endpointsKey(host, node));
    const [members] = await this.#ask([["SUNION", keys[0]!, ...keys.slice(1)]]);
    const endpoints: EndpointAddress[] = [];
    for (const member of members.toSorted()) {
      const endpoint = tryParseEndpoint(member);
      if (endpoint === undefined) this.#isGarbage();
      else endpoints.push(endpoint);
    }
    return endpoints;
  }

  /**
   * Returns domains of components with their hosts, in all datacenters; hidden ones if asked for.
   */
  async domains(options: DomainsOptions): Promise<readonly PublicDomain[]> {
    const live = [...await this.liveNodes()];
    const keyOf = options.includesHidden ? domainsKey : publicDomainsKey;
    const commands = live.map(([host, nodes]) => {
      const keys = nodes.map((node) => keyOf(host, node));
      return ["SUNION", keys[0]!, ...keys.slice(1)] as const;
    });
    const found = await this.#ask(commands);
    return live.flatMap(([host], i) =>
      found[i]!
        .filter((domain) => isHost(domain) || this.#isGarbage())
        .toSorted()
        .map((domain) => ({ domain, host }))
    );
  }

  async #nodesOf(hosts: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
    const live = new Map<string, readonly string[]>();
    if (hosts.length === 0) return live;
    const names = await this.#ask(hosts.map((host) => ["SMEMBERS", nodesKey(host)] as const));
    const named = hosts.map((host, i) => ({ host, nodes: names[i]!.toSorted() }));
    await this.#leases.read(
      named.flatMap(({ host, nodes }) => nodes.map((node) => ({ host, node }))),
    );
    for (const { host, nodes } of named) {
      const alive = nodes.filter((node) => this.#leases.incarnation({ host, node }) !== undefined);
      if (alive.length > 0) live.set(host, alive);
    }
    return live;
  }

  #ask<const Commands extends readonly RedisCommand[]>(commands: Commands) {
    return ask(this.#redis, commands, () => this.#noteGarbage(1));
  }

  /** Counts one value that the table does not write. */
  #isGarbage(): false {
    this.#noteGarbage(1);
    return false;
  }
}
