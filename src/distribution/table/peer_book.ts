import { isHost, tryParseArray } from "./claims.ts";
import type { EndpointAddress } from "./directory.ts";
import { formatEndpoint, tryParseEndpoint } from "./directory.ts";
import { PEERS_KEY } from "./keys.ts";
import type { RedisCommand, RedisCommands } from "./redis_commands.ts";

/** Life of what nobody renews: a datacenter may be cut off for weeks. */
const PEER_SECONDS = String(30 * 86_400);
/** Datacenters remembered at once. */
const MAX_PEERS = 256;

/**
 * Where each other datacenter was last known to accept links, so that it is called again after a
 * split of any length: until it says that it leaves, or somebody takes it out of `causeway:peers`.
 */
export class PeerBook {
  readonly #peers = new Map<string, readonly EndpointAddress[]>();
  readonly #stored = new Map<string, string>();
  #isForgotten: string[] = [];

  hosts(): readonly string[] {
    return [...this.#peers.keys()];
  }

  endpoints(host: string): readonly EndpointAddress[] {
    return this.#peers.get(host) ?? [];
  }

  /** Every datacenter with its endpoints as text. */
  *entries(): Iterable<{ readonly host: string; readonly endpoints: readonly string[] }> {
    for (const [host, endpoints] of this.#peers) {
      yield { host, endpoints: endpoints.map(formatEndpoint) };
    }
  }

  /** Takes over what is known of `host` now; true when that is news. */
  note(host: string, endpoints: readonly EndpointAddress[]): boolean {
    const before = this.#peers.get(host);
    if (before === undefined && this.#peers.size >= MAX_PEERS) return false;
    if (before !== undefined && format(before) === format(endpoints)) return false;
    this.#peers.set(host, endpoints);
    return true;
  }

  forget(host: string): void {
    if (this.#peers.delete(host)) this.#isForgotten.push(host);
    this.#stored.delete(host);
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
    const gone = this.#isForgotten;
    this.#isForgotten = [];
    for (const host of this.#stored.keys()) {
      if (found.has(host)) continue;
      this.#peers.delete(host);
      this.#stored.delete(host);
    }
    for (const [host, value] of found) {
      if (!isHost(host) || gone.includes(host) || this.#peers.has(host)) continue;
      this.#peers.set(host, parse(value));
    }
    const writes: RedisCommand[] = [];
    if (gone.length > 0) writes.push(["HDEL", PEERS_KEY, ...gone]);
    for (const [host, endpoints] of this.#peers) {
      const value = format(endpoints);
      if (found.get(host) !== value) writes.push(["HSET", PEERS_KEY, host, value]);
      this.#stored.set(host, value);
    }
    if (this.#peers.size > 0) writes.push(["EXPIRE", PEERS_KEY, PEER_SECONDS]);
    if (writes.length > 0) await redis.run(writes);
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
