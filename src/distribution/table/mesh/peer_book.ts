import { isHost, tryParseArray } from "../claims/claims.ts";
import type { EndpointAddress } from "./directory.ts";
import { formatEndpoint, tryParseEndpoint } from "./directory.ts";
import { PEERS_KEY } from "../redis/keys.ts";
import { ask } from "../redis/ask.ts";
import type { RedisCommand, RedisCommands } from "../redis/redis_commands.ts";

/** Life of a peer without renewal: a datacenter may be cut off for weeks. */
const PEER_SECONDS = String(30 * 86_400);
/** Stands in for a node's name where the endpoints come from Redis. */
const STORED = "";
/**
 * Datacenters remembered at once: more than a mesh has (a MESH frame names 64); garbage may name
 * more.
 */
const MAX_PEERS = 256;
/**
 * Datacenters that one other datacenter may name while this process lives, as many as in a MESH
 * frame. Each is dialled, logged and measured under its name.
 */
const MAX_HEARSAY = 64;
/** Endpoints that hearsay may name for one datacenter: as many as a MESH frame of ours has. */
const MAX_HEARSAY_ENDPOINTS = 8;
/**
 * Life of hearsay. A datacenter that has not answered by then is dialled again at the next hearsay.
 */
const HEARSAY_MS = 86_400_000;

/** Endpoints of a datacenter according to another one. */
interface Hearsay {
  /** Empty when it has expired. */
  readonly endpoints: readonly EndpointAddress[];
  /** Monotonic milliseconds. */
  readonly heardMs: number;
}

/**
 * Last known endpoints of each other datacenter, by which it is dialled again after a split of any
 * length, until it says that it leaves or is taken out of `causeway:peers`. Hearsay, which one
 * datacenter says of another, is kept apart, in memory and for a day: it only names addresses to
 * dial.
 */
export class PeerBook {
  /** Endpoints by host, and by the node that sent them; under `STORED` those from Redis. */
  readonly #peers = new Map<string, Map<string, readonly EndpointAddress[]>>();
  /** Hearsay by the datacenter that sent it, and by host, so that none can crowd out another's. */
  readonly #hearsay = new Map<string, Map<string, Hearsay>>();
  readonly #stored = new Map<string, string>();
  #isForgotten: string[] = [];
  /** Datacenters that an operator has removed: others may not have heard, and still name them. */
  readonly #dismissed = new Set<string>();

  readonly #maxEndpoints: number;

  /** @param maxEndpoints of one datacenter, over all its nodes */
  constructor(maxEndpoints: number) {
    this.#maxEndpoints = maxEndpoints;
  }

  /** Datacenters that have sent their own endpoints. */
  hosts(): readonly string[] {
    return [...this.#peers.keys()];
  }

  /** True for a datacenter that has sent its own endpoints. */
  has(host: string): boolean {
    return this.#peers.has(host);
  }

  /** True for a datacenter that is known from hearsay only. */
  isHearsay(host: string): boolean {
    return !this.has(host) && this.endpoints(host).length > 0;
  }

  /** True for a datacenter that an operator has removed, until it sends its own endpoints again. */
  isDismissed(host: string): boolean {
    return this.#dismissed.has(host);
  }

  /**
   * Endpoints of all its nodes, or from hearsay until one has sent its own. Each comes once, in an
   * order that does not depend on who sent which when.
   */
  endpoints(host: string): readonly EndpointAddress[] {
    const byText = new Map<string, EndpointAddress>();
    for (const told of this.#peers.get(host)?.values() ?? this.#heard(host)) {
      for (const endpoint of told) byText.set(formatEndpoint(endpoint), endpoint);
    }
    return [...byText].sort(([one], [other]) => one < other ? -1 : 1).map(([, each]) => each);
  }

  /** Yields every datacenter that has sent its own endpoints, with these as text. */
  *entries(): Iterable<{ readonly host: string; readonly endpoints: readonly string[] }> {
    for (const host of this.#peers.keys()) {
      yield { host, endpoints: this.endpoints(host).map(formatEndpoint) };
    }
  }

  /** Notes the endpoints that a node of `host` has sent; true when they are news. */
  note(host: string, node: string, endpoints: readonly EndpointAddress[]): boolean {
    this.#dismissed.delete(host);
    this.#unhear(host);
    let nodes = this.#peers.get(host);
    const known = nodes?.get(node);
    // Most leases repeat the endpoints of the one before.
    if (known !== undefined && isSame(known, endpoints) && !nodes?.has(STORED)) return false;
    const before = nodes && format(this.endpoints(host));
    if (nodes === undefined) {
      if (this.#peers.size >= MAX_PEERS) return false;
      this.#peers.set(host, nodes = new Map());
    }
    nodes.delete(STORED); // each node sends its own
    nodes.delete(node);
    let room = this.#maxEndpoints;
    for (const told of nodes.values()) room -= told.length;
    nodes.set(node, endpoints.slice(0, Math.max(0, room)));
    return format(this.endpoints(host)) !== before;
  }

  /**
   * Notes the first endpoints that the datacenter `teller` names for another one, `host`; true when
   * they are news.
   */
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

  /** Forgets hearsay that is a day old. @returns hosts that are no longer known */
  forgetHearsay(nowMs: number): readonly string[] {
    const gone = new Set<string>();
    for (const told of this.#hearsay.values()) {
      for (const [host, { endpoints, heardMs }] of told) {
        if (endpoints.length === 0 || nowMs - heardMs < HEARSAY_MS) continue;
        told.set(host, { endpoints: [], heardMs }); // it keeps its place: no other name takes it
        gone.add(host);
      }
    }
    return [...gone].filter((host) => !this.isHearsay(host));
  }

  /** Notes that a node of `host` has left while others of it live. */
  noteLeft(host: string, node: string): void {
    const nodes = this.#peers.get(host);
    if (nodes !== undefined && nodes.size > 1) nodes.delete(node);
  }

  forget(host: string): void {
    this.#unhear(host);
    if (this.#peers.delete(host)) this.#isForgotten.push(host);
    this.#stored.delete(host);
  }

  /** Forgets a datacenter that an operator has removed, until it sends its own endpoints again. */
  dismiss(host: string): void {
    this.forget(host);
    if (this.#dismissed.size >= MAX_PEERS) this.#dismissed.clear();
    this.#dismissed.add(host);
  }

  /** Notes that Redis has lost its data: hosts missing there were not removed by an operator. */
  redisLost(): void {
    this.#stored.clear();
  }

  /** Makes Redis and memory agree. Rejects as `ask`. */
  async sync(redis: RedisCommands): Promise<void> {
    const [fields] = await ask(redis, [["HGETALL", PEERS_KEY]]);
    const found = new Map<string, string>();
    for (let i = 0; i + 1 < fields.length; i += 2) found.set(fields[i]!, fields[i + 1]!);
    for (const host of [...this.#stored.keys()]) {
      if (found.has(host)) continue;
      this.dismiss(host);
    }
    const gone = this.#isForgotten;
    this.#isForgotten = [];
    for (const [host, value] of found) {
      if (!isHost(host) || gone.includes(host) || this.#peers.has(host)) continue;
      this.#unhear(host); // it has sent its endpoints to another node of ours
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
    try {
      await ask(redis, writes);
    } catch (thrown) {
      // A stored peer that is missing in Redis would count as removed by an operator.
      for (const host of [...this.#stored.keys()]) if (!found.has(host)) this.#stored.delete(host);
      this.#isForgotten.push(...gone);
      throw thrown;
    }
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
