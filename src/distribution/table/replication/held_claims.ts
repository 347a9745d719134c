import type { TableRecord } from "../../wire/mod.ts";
import { utf8Bytes } from "../../wire/mod.ts";
import { replicaKey } from "../redis/keys.ts";
import type { NodeRef } from "../claims/node_leases.ts";
import type { DatacenterBounds } from "../options.ts";

/** Number of sets for the claims of one node, so that each can be read in one go. */
const SPREAD = 16;
/** Claims with a longer address lie in sets of their own, and count as `LONG_WEIGHT`. */
const LONG_ADDRESS_BYTES = 256;
const LONG_WEIGHT = 16;
/** The set of a node's claims on component domains. */
export const DOMAIN_SHARD = 2 * SPREAD;

/**
 * Number of sets of one node's claims: sessions, sessions with long addresses, component domains.
 */
export const SHARDS = DOMAIN_SHARD + 1;

/** Returns the set of a claim. */
export function shardOf({ sequence, name, resourcepart }: TableRecord): number {
  if (resourcepart === "") return DOMAIN_SHARD;
  const isLong = utf8Bytes(name) + utf8Bytes(resourcepart) > LONG_ADDRESS_BYTES;
  return sequence % SPREAD + (isLong ? SPREAD : 0);
}

interface Held {
  sessions: number;
  domains: number;
  /** Monotonic milliseconds of the last measuring; −Infinity before the first. */
  measuredMs: number;
}

/**
 * Number of other datacenters' claims in our Redis, by node. Claims that this node adds and removes
 * are counted from Redis's replies; those that another of our nodes writes are measured.
 */
export class HeldClaims {
  readonly #bounds: Required<DatacenterBounds>;
  readonly #hosts = new Map<string, Map<string, Held>>();

  constructor(bounds: Required<DatacenterBounds>) {
    this.#bounds = bounds;
  }

  /** True when the datacenter may claim no further session (or domain). */
  isFull(host: string, kind: "sessions" | "domains"): boolean {
    return this.of(host)[kind] >= this.limit(kind);
  }

  /** True when an eighth of both bounds is free: refused claims may come again. */
  hasRoom(host: string): boolean {
    const { sessions, domains } = this.of(host);
    return sessions * 8 <= this.limit("sessions") * 7 && domains * 8 <= this.limit("domains") * 7;
  }

  limit(kind: "sessions" | "domains"): number {
    return kind === "sessions" ? this.#bounds.maxClaims : this.#bounds.maxDomains;
  }

  /** Number of claims that the datacenter holds; sessions weighted. */
  of(host: string): { readonly sessions: number; readonly domains: number } {
    const sum = { sessions: 0, domains: 0 };
    for (const { sessions, domains } of this.#hosts.get(host)?.values() ?? []) {
      sum.sessions += sessions;
      sum.domains += domains;
    }
    return sum;
  }

  /** When the node's claims were measured last, monotonic milliseconds; −Infinity: never. */
  measuredMs({ host, node }: NodeRef): number {
    return this.#hosts.get(host)?.get(node)?.measuredMs ?? -Infinity;
  }

  /** Notes claims added to a set of the node, or (negative) removed from it. */
  changed({ host, node }: NodeRef, shard: number, by: number): void {
    const held = this.#held({ host, node });
    if (shard === DOMAIN_SHARD) held.domains = Math.max(0, held.domains + by);
    else held.sessions = Math.max(0, held.sessions + by * weightOf(shard));
  }

  /** Returns commands whose answers `measured` takes. */
  measure({ host, node }: NodeRef): readonly (readonly ["SCARD", key: string])[] {
    return Array.from({ length: SHARDS }, (_, shard) => ["SCARD", replicaKey(host, node, shard)]);
  }

  measured(node: NodeRef, counts: readonly number[], nowMs: number): void {
    const held = this.#held(node);
    held.measuredMs = nowMs;
    held.sessions = held.domains = 0;
    counts.forEach((count, shard) => this.changed(node, shard, count));
  }

  /** Forgets a node of which no claim is left here. */
  forget({ host, node }: NodeRef): void {
    const nodes = this.#hosts.get(host);
    nodes?.delete(node);
    if (nodes?.size === 0) this.#hosts.delete(host);
  }

  #held({ host, node }: NodeRef): Held {
    let nodes = this.#hosts.get(host);
    if (nodes === undefined) this.#hosts.set(host, nodes = new Map());
    let held = nodes.get(node);
    if (held === undefined) {
      nodes.set(node, held = { sessions: 0, domains: 0, measuredMs: -Infinity });
    }
    return held;
  }
}

function weightOf(shard: number): number {
  return shard < SPREAD ? 1 : LONG_WEIGHT;
}
