import type { Clock } from "../../../base/mod.ts";
import { incarnationOf, isEpoch, tryParseArray } from "./claims.ts";
import { leaseKey } from "../redis/keys.ts";
import { ask } from "../redis/ask.ts";
import type { RedisCommands } from "../redis/redis_commands.ts";

/** A node's lease: the process that holds the name, and its start time. */
export interface Lease {
  readonly incarnation: number;
  /** Microseconds; the newer of two processes with one name wins. */
  readonly startedUs: number;
}

/** A lease's value in Redis. */
export function formatLease(lease: Lease): string {
  return JSON.stringify([lease.incarnation, lease.startedUs]);
}

/** Reads a lease; undefined for any value that `formatLease` does not write. */
export function tryParseLease(value: string | null): Lease | undefined {
  if (value === null || value.length > 64) return undefined;
  const fields = tryParseArray(value);
  if (fields === undefined || fields.length !== 2) return undefined;
  const [incarnation, startedUs] = fields;
  if (!isPositive(incarnation) || !isEpoch(startedUs)) return undefined;
  return { incarnation, startedUs };
}

function isPositive(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

/** A node, by the two names in its lease key. */
export interface NodeRef {
  readonly host: string;
  readonly node: string;
}

interface Known {
  readonly incarnation: number | undefined;
  readonly readMs: number;
}

/** Leases kept in memory at once; a mesh has fewer nodes, garbage may name more. */
const MAX_KNOWN = 10_000;

/** Milliseconds for which a missing lease is remembered: the node may have started since. */
const ABSENT_MS = 500;

/** Nodes that live, read from their leases and remembered for a moment. */
export class NodeLeases {
  readonly #redis: RedisCommands;
  readonly #clock: Clock;
  readonly #lifetimeMs: number;
  readonly #heard: (node: NodeRef, incarnation: number) => void;
  readonly #known = new Map<string, Known>();

  /** @param heard called with each incarnation whenever it is found to hold a lease */
  constructor(
    redis: RedisCommands,
    clock: Clock,
    lifetimeMs: number,
    heard: (node: NodeRef, incarnation: number) => void = () => {},
  ) {
    this.#redis = redis;
    this.#clock = clock;
    this.#lifetimeMs = lifetimeMs;
    this.#heard = heard;
  }

  /** Incarnation that holds the node's lease as last read; undefined when there is none. */
  incarnation(node: NodeRef): number | undefined {
    return this.#known.get(leaseKey(node.host, node.node))?.incarnation;
  }

  /** True while the process that made the claim holds its node's lease, as last read. */
  isLive(claim: NodeRef & { readonly id: string }): boolean {
    return this.incarnation(claim) === incarnationOf(claim.id);
  }

  /** The lease key of the node that holds its lease with `incarnation`, as last read. */
  holderOf(incarnation: number): string | undefined {
    for (const [key, known] of this.#known) if (known.incarnation === incarnation) return key;
    return undefined;
  }

  /** Notes a lease that was just written, or read by other means. */
  note(node: NodeRef, incarnation: number | undefined): void {
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    const readMs = this.#clock.monotonicMs();
    this.#known.set(leaseKey(node.host, node.node), { incarnation, readMs });
    if (incarnation !== undefined) this.#heard(node, incarnation);
  }

  /**
   * Reads the leases of `nodes` that are not freshly known. With `isAfresh` it reads all, for a
   * caller that acts on a missing lease. Rejects as `ask`.
   */
  async read(nodes: Iterable<NodeRef>, isAfresh = false): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    const keys = new Map<string, NodeRef>();
    for (const each of nodes) {
      const key = leaseKey(each.host, each.node);
      const known = this.#known.get(key);
      if (isAfresh || known === undefined || nowMs - known.readMs >= this.#lifetimeOf(known)) {
        keys.set(key, each);
      }
    }
    if (keys.size === 0) return;
    const asked = [...keys];
    const values = await ask(this.#redis, asked.map(([key]) => ["GET", key] as const));
    if (this.#known.size + asked.length > MAX_KNOWN) this.#known.clear();
    asked.forEach(([key, node], i) => {
      const incarnation = tryParseLease(values[i]!)?.incarnation;
      this.#known.set(key, { incarnation, readMs: nowMs });
      if (incarnation !== undefined) this.#heard(node, incarnation);
    });
  }

  #lifetimeOf({ incarnation }: Known): number {
    return incarnation === undefined ? Math.min(ABSENT_MS, this.#lifetimeMs) : this.#lifetimeMs;
  }
}
