import { isHost, tryParseArray } from "./claims.ts";
import type { EndpointAddress } from "./directory.ts";
import { formatEndpoint, tryParseEndpoint } from "./directory.ts";
import { PEERS_KEY } from "./keys.ts";
import type { RedisCommand, RedisCommands } from "./redis_commands.ts";

/** Life of what nobody renews: a datacenter may be cut off for weeks. */
const PEER_SECONDS = String(30 * 86_400);
/** Stands in for a node's name where it is not the node that told. */
const HEARSAY = "";
/** Datacenters remembered at once: more than a mesh has (a MESH frame names 64), garbage may name more. */
const MAX_PEERS = 256;

/**
 * Where each other datacenter was last known to accept links, so that it is called again after a
 * split of any length: until it says that it leaves, or somebody takes it out of `causeway:peers`.
 */
export class PeerBook {
  /** By host, and by the node that told; under `HEARSAY` what others told, or Redis. */
  readonly #peers = new Map<string, Map<string, readonly EndpointAddress[]>>();
  readonly #stored = new Map<string, string>();
  #isForgotten: string[] = [];
  /** Datacenters that an operator has removed: others may not have heard, and go on telling of them. */
  readonly #dismissed = new Set<string>();

  hosts(): readonly string[] {
    return [...this.#peers.keys()];
  }

  /** Those of all its nodes, each once, in an order that does not depend on who told when. */
  endpoints(host: string): readonly EndpointAddress[] {
    const byText = new Map<string, EndpointAddress>();
    for (const told of this.#peers.get(host)?.values() ?? []) {
      for (const endpoint of told) byText.set(formatEndpoint(endpoint), endpoint);
    }
    return [...byText].sort(([one], [other]) => one < other ? -1 : 1).map(([, each]) => each);
  }

  /** Every datacenter with its endpoints as text. */
  *entries(): Iterable<{ readonly host: string; readonly endpoints: readonly string[] }> {
    for (const host of this.#peers.keys()) {
      yield { host, endpoints: this.endpoints(host).map(formatEndpoint) };
    }
  }

  /** Takes over where a node of `host` says that it is; true when that is news. */
  note(host: string, node: string, endpoints: readonly EndpointAddress[]): boolean {
    this.#dismissed.delete(host);
    return this.#change(host, (nodes) => {
      nodes.delete(HEARSAY); // each node tells for itself
      nodes.set(node, endpoints);
    });
  }

  /** Takes over what others say of `host`; true when that is news. */
  noteHearsay(host: string, endpoints: readonly EndpointAddress[]): boolean {
    if (this.#dismissed.has(host)) return false;
    return this.#change(host, (nodes) => nodes.set(HEARSAY, endpoints));
  }

  /** A node of `host` has left, and others of it are there. */
  noteLeft(host: string, node: string): void {
    const nodes = this.#peers.get(host);
    if (nodes !== undefined && nodes.size > 1) nodes.delete(node);
  }

  forget(host: string): void {
    if (this.#peers.delete(host)) this.#isForgotten.push(host);
    this.#stored.delete(host);
  }

  /** An operator has removed it: it comes back when it tells of itself, and not before. */
  dismiss(host: string): void {
    this.forget(host);
    if (this.#dismissed.size >= MAX_PEERS) this.#dismissed.clear();
    this.#dismissed.add(host);
  }

  /** Redis has lost its data: what is missing there was not taken out by anybody. */
  redisLost(): void {
    this.#stored.clear();
  }

  /** Makes Redis and memory say the same. Rejects as `RedisCommands.run`. */
  async sync(redis: RedisCommands): Promise<void> {
    const [reply] = await redis.run([["HGETALL", PEERS_KEY]]);
    const found = new Map<string, string>();
    if (Array.isArray(reply)) {
      for (let i = 0; i + 1 < reply.length; i += 2) found.set(reply[i], reply[i + 1]);
    }
    for (const host of [...this.#stored.keys()]) {
      if (found.has(host)) continue;
      this.dismiss(host);
    }
    const gone = this.#isForgotten;
    this.#isForgotten = [];
    for (const [host, value] of found) {
      if (!isHost(host) || gone.includes(host) || this.#peers.has(host)) continue;
      this.#peers.set(host, new Map([[HEARSAY, parse(value)]]));
    }
    const writes: RedisCommand[] = [];
    if (gone.length > 0) writes.push(["HDEL", PEERS_KEY, ...gone]);
    for (const host of this.#peers.keys()) {
      const value = format(this.endpoints(host));
      if (found.get(host) !== value) writes.push(["HSET", PEERS_KEY, host, value]);
      this.#stored.set(host, value);
    }
    if (this.#peers.size > 0) writes.push(["EXPIRE", PEERS_KEY, PEER_SECONDS]);
    if (writes.length > 0) await redis.run(writes);
  }

  #change(host: string, change: (nodes: Map<string, readonly EndpointAddress[]>) => void): boolean {
    let nodes = this.#peers.get(host);
    const before = nodes === undefined ? undefined : format(this.endpoints(host));
    if (nodes === undefined) {
      if (this.#peers.size >= MAX_PEERS) return false;
      this.#peers.set(host, nodes = new Map());
    }
    change(nodes);
    return format(this.endpoints(host)) !== before;
  }
}

function format(endpoints: readonly EndpointAddress[]): string {
  return JSON.stringify(endpoints.map(formatEndpoint));
}

function parse(value: string): readonly EndpointAddress[] {
  return (tryParseArray(value) ?? []).flatMap((text) => {
    const endpoint = typeof text === "string" ? tryParseEndpoint(text) : undefined;
    return endpoint === undefined ? [] : [endpoint];
  });
}
