import type { NodeLeases } from "../claims/node_leases.ts";
import { tryParseLease } from "../claims/node_leases.ts";
import { claimsIn, incarnationOf } from "../claims/claims.ts";
import { ask, RedisRefusal } from "../redis/ask.ts";
import { leaseKey, nodesKey } from "../redis/keys.ts";
import type { RedisCommands } from "../redis/redis_commands.ts";
import { RedisErrorReply } from "../redis/redis_commands.ts";
import { LocationReads } from "./location_reads.ts";

/** A session of an account, at any node of any datacenter. */
export interface AccountSession {
  readonly host: string;
  readonly node: string;
  /** Incarnation of the process that has the session. */
  readonly process: number;
  readonly resourcepart: string;
}

/** Accounts that one pipeline asks for. */
const BATCH_ACCOUNTS = 1000;

/** The parts that `AccountSessions` works with. */
export interface AccountSessionsDeps {
  readonly redis: RedisCommands;
  readonly leases: NodeLeases;
  readonly own: { readonly host: string; readonly process: number };
  /** Called when Redis refused, or could not be asked. */
  failed(reason: string): void;
}

/** Finds all sessions of accounts over all datacenters, from their claims. */
export class AccountSessions {
  readonly #deps: AccountSessionsDeps;

  constructor(deps: AccountSessionsDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the live sessions of each account that has any, by bare JID. All accounts of a batch
   * share one round trip, and one more reads the leases that are not known. Undefined when Redis
   * cannot tell. Never rejects.
   */
  async find(
    accounts: readonly string[],
  ): Promise<Map<string, readonly AccountSession[]> | undefined> {
    const found = new Map<string, readonly AccountSession[]>();
    try {
      for (let from = 0; from < accounts.length; from += BATCH_ACCOUNTS) {
        await this.#findBatch(accounts.slice(from, from + BATCH_ACCOUNTS), found);
      }
      return found;
    } catch (thrown) {
      this.#deps.failed(String(thrown));
      return undefined;
    }
  }

  /**
   * Returns the processes of each of `hosts` that hold a lease. Undefined when Redis cannot tell,
   * or has lost what this node wrote. Never rejects.
   */
  async liveProcesses(
    hosts: readonly string[],
  ): Promise<ReadonlyMap<string, ReadonlySet<number>> | undefined> {
    const { redis, own, failed } = this.#deps;
    const all = [...new Set([own.host, ...hosts])];
    try {
      const names = await ask(redis, all.map((host) => ["SMEMBERS", nodesKey(host)] as const));
      const nodes = all.flatMap((host, i) => names[i]!.map((node) => ({ host, node })));
      if (nodes.length === 0) return undefined;
      const leases = await ask(
        redis,
        nodes.map(({ host, node }) => ["GET", leaseKey(host, node)] as const),
      );
      const live = new Map<string, Set<number>>(all.map((host) => [host, new Set()]));
      for (const [i, { host }] of nodes.entries()) {
        const process = tryParseLease(leases[i]!)?.incarnation;
        if (process !== undefined) live.get(host)!.add(process);
      }
      return live.get(own.host)!.has(own.process) ? live : undefined;
    } catch (thrown) {
      failed(String(thrown));
      return undefined;
    }
  }

  async #findBatch(
    accounts: readonly string[],
    found: Map<string, readonly AccountSession[]>,
  ): Promise<void> {
    const { redis, leases } = this.#deps;
    const reads = new LocationReads();
    const places = accounts.map((account) => reads.addClaims(account));
    await reads.run(redis);
    const claimed = places.map((at) => {
      const hash = reads.claims(at);
      if (hash instanceof RedisErrorReply) throw new RedisRefusal(hash);
      return claimsIn(hash);
    });
    await leases.read(claimed.flat());
    for (const [i, claims] of claimed.entries()) {
      const live = claims.filter((claim) => leases.isLive(claim));
      if (live.length === 0) continue;
      found.set(
        accounts[i]!,
        live.map(({ id, host, node, resourcepart }) => ({
          host,
          node,
          process: incarnationOf(id),
          resourcepart,
        })),
      );
    }
  }
}
