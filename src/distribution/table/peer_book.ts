import { isHost, tryParseArray } from "./claims.ts";
import type { EndpointAddress } from "./directory.ts";
import { formatEndpoint, tryParseEndpoint } from "./directory.ts";
import { PEERS_KEY } from "./keys.ts";
import type { RedisCommand, RedisCommands } from "./redis_commands.ts";

/** Life of what nobody renews: a datacenter may be cut off for weeks. */
const PEER_SECONDS = String(30 * 86_400);
/** Stands in for a node's name where Redis told. */
const STORED = "";
/** Datacenters remembered at once: more than a mesh has (a MESH frame names 64), garbage may name more. */
const MAX_PEERS = 256;
/**
 * Datacenters of which one other may tell while this process lives, as many as a MESH frame names: each
 * is called, logged and measured under its name.
 */
const MAX_HEARSAY = 64;
/** Endpoints of a datacenter that others may tell of: as many as a MESH frame of ours has. */
const MAX_HEARSAY_ENDPOINTS = 8;
/** Life of hearsay: who has not answered in this time is called again when it is told of anew. */
const HEARSAY_MS = 86_400_000;

/** What somebody else has told. */
interface Hearsay {
  /** Empty when it is too old. */
  readonly endpoints: readonly EndpointAddress[];
  /** Monotonic milliseconds. */
  readonly heardMs: number;
}

/**
 * Where each other datacenter was last known to accept links, so that it is called again after a
 * split of any length: until it says that it leaves, or somebody takes it out of `causeway:peers`.
 * What others tell of a datacenter is kept apart, in memory and for a day: it only says where to call.
 */
export class PeerBook {
  /** By host, and by the node that told; under `STORED` what Redis told. */
  readonly #peers = new Map<string, Map<string, readonly EndpointAddress[]>>();
  /** By the datacenter that told, and by host: nobody can crowd out what others tell. */
  readonly #hearsay = new Map<string, Map<string, Hearsay>>();
  readonly #stored = new Map<string, string>();
  #isForgotten: string[] = [];
  /** Datacenters that an operator has removed: others may not have heard, and go on telling of them. */
  readonly #dismissed = new Set<string>();

  readonly #maxEndpoints: number;

  /** @param maxEndpoints of one datacenter, all its nodes together */
  constructor(maxEndpoints: number) {
    this.#maxEndpoints = maxEndpoints;
  }

  /** Those that have told of themselves. */
  hosts(): readonly string[] {
    return [...this.#peers.keys()];
  }

  /** True for a datacenter that has told of itself. */
  has(host: string): boolean {
    return this.#peers.has(host);
  }

  /** True for one of which others told, and it not. */
  isHearsay(host: string): boolean {
    return !this.has(host) && this.endpoints(host).length > 0;
  }

  /**
   * Those of all its nodes, or while none has told those that others tell, each once, in an order that
   * does not depend on who told when.
   */
  endpoints(host: string): readonly EndpointAddress[] {
    const byText = new Map<string, EndpointAddress>();
    for (const told of this.#peers.get(host)?.values() ?? this.#heard(host)) {
      for (const endpoint of told) byText.set(formatEndpoint(endpoint), endpoint);
    }
    return [...byText].sort(([one], [other]) => one < other ? -1 : 1).map(([, each]) => each);
  }

  /** Every datacenter that has told of itself, with its endpoints as text. */
  *entries(): Iterable<{ readonly host: string; readonly endpoints: readonly string[] }> {
    for (const host of this.#peers.keys()) {
      yield { host, endpoints: this.endpoints(host).map(formatEndpoint) };
    }
  }

  /** Takes over where a node of `host` says that it is; true when that is news. */
  note(host: string, node: string, endpoints: readonly EndpointAddress[]): boolean {
    this.#dismissed.delete(host);
    this.#unhear(host);
    let nodes = this.#peers.get(host);
    const known = nodes?.get(node);
    // most leases say what the one before has said
    if (known !== undefined && isSame(known, endpoints) && !nodes?.has(STORED)) return false;
    const before = nodes && format(this.endpoints(host));
    if (nodes === undefined) {
      if (this.#peers.size >= MAX_PEERS) return false;
      this.#peers.set(host, nodes = new Map());
    }
    nodes.delete(STORED); // each node tells for itself
    nodes.delete(node);
    let room = this.#maxEndpoints;
    for (const told of nodes.values()) room -= told.length;
    nodes.set(node, endpoints.slice(0, Math.max(0, room)));
    return format(this.endpoints(host)) !== before;
  }

  /** Takes over what the datacenter `teller` first says of `host`, another one; true when that is news. */
  noteHearsay(
    host: string,
    endpoints: readonly EndpointAddress[],
    { teller, nowMs }: { readonly teller: string; readonly nowMs: number },
  ): boolean {
    if (this.#peers.has(host) || this.#dismissed.has(host)) return false;
    let told = this.#hearsay.get(teller);
    if (told === undefined) {
      if (this.#hearsay.size >= MAX_PEERS) return false;
      this.#hearsay.set(teller, told = new Map());
    }
    const known = told.get(host);
    if (known === undefined ? told.size >= MAX_HEARSAY : known.endpoints.length > 0) return false;
    told.set(host, { endpoints: endpoints.slice(0, MAX_HEARSAY_ENDPOINTS), heardMs: nowMs });
    return true;
  }

  /** Forgets hearsay that is a day old. @returns hosts of which nothing is known any more */
  forgetHearsay(nowMs: number): readonly string[] {
    const gone = new Set<string>();
    for (const told of this.#hearsay.values()) {
      for (const [host, { endpoints, heardMs }] of told) {
        if (endpoints.length === 0 || nowMs - heardMs < HEARSAY_MS) continue;
        told.set(host, { endpoints: [], heardMs }); // it keeps its place: no other name takes that
        gone.add(host);
      }
    }
    return [...gone].filter((host) => !this.isHearsay(host));
  }

  /** A node of `host` has left, and others of it are there. */
  noteLeft(host: string, node: string): void {
    const nodes = this.#peers.get(host);
    if (nodes !== undefined && nodes.size > 1) nodes.delete(node);
  }

  forget(host: string): void {
    this.#unhear(host);
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
      this.#unhear(host); // another node of ours has heard it from itself
      this.#peers.set(host, new Map([[STORED, parse(value).slice(0, this.#maxEndpoints)]]));
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

  *#heard(host: string): Iterable<readonly EndpointAddress[]> {
    for (const told of this.#hearsay.values()) {
      const hearsay = told.get(host);
      if (hearsay !== undefined) yield hearsay.endpoints;
    }
  }

  #unhear(host: string): void {
    for (const told of this.#hearsay.values()) told.delete(host);
  }
}

function format(endpoints: readonly EndpointAddress[]): string {
  return JSON.stringify(endpoints.map(formatEndpoint));
}

function isSame(one: readonly EndpointAddress[], other: readonly EndpointAddress[]): boolean {
  return one.length === other.length &&
    one.every(({ host, port }, i) => host === other[i]!.host && port === other[i]!.port);
}

function parse(value: string): readonly EndpointAddress[] {
  return (tryParseArray(value) ?? []).flatMap((text) => {
    const endpoint = typeof text === "string" ? tryParseEndpoint(text) : undefined;
    return endpoint === undefined ? [] : [endpoint];
  });
}
