import { CausewayError, randomHex } from "../../../base/mod.ts";
import type { EndpointAddress } from "./directory.ts";
import { formatEndpoint } from "./directory.ts";
import {
  clusterKey,
  datacenterKey,
  domainsKey,
  endpointsKey,
  HOSTS_KEY,
  LAYOUT_KEY,
  leaseKey,
  nodesKey,
  publicDomainsKey,
} from "../redis/keys.ts";
import type { HybridClock } from "../claims/hybrid_clock.ts";
import type { Lease } from "../claims/node_leases.ts";
import { formatLease, tryParseLease } from "../claims/node_leases.ts";
import type { ResolvedTable } from "../options.ts";
import { redisAddress } from "../options.ts";
import { ask } from "../redis/ask.ts";
import { REDIS_LAYOUT, tryParseLayout } from "../redis/layout.ts";
import type { RedisCommand, RedisCommands } from "../redis/redis_commands.ts";

/** Least life of the datacenter's id, and of the layout's number, without renewal: it outlasts a night of repairs. */
const LONG_SECONDS = 7 * 86_400;

/**
 * Entries that this node publishes about itself: its lease, endpoints, domains, name and host, and
 * the id of its datacenter. They are written again at every heartbeat, which also removes entries
 * of a former process with the same name.
 */
export class Publication {
  /** The id that we write if there is none, and the id as last read from Redis. */
  #datacenterId = randomHex(16);
  /** True once a newer process has taken our name: then we write no more. */
  isSuperseded = false;
  /** Epoch at which this process took its name; 0 before Redis was reached. */
  startedUs = 0;
  /** Incarnation of the process that had our name before us, if Redis still had its lease. */
  predecessor: number | undefined;
  /** True when the last beat found that Redis had lost our lease. */
  hasBeenForgotten = false;
  /**
   * True when the last beat found another id of our datacenter than the one that we had published.
   */
  hasNewId = false;
  readonly #redis: RedisCommands;
  readonly #options: ResolvedTable;
  readonly #epochs: HybridClock;
  readonly #domains = new Map<string, boolean>();
  #endpoints: readonly string[] = [];
  #clusterAddress: string | undefined;

  constructor(redis: RedisCommands, options: ResolvedTable, epochs: HybridClock) {
    this.#redis = redis;
    this.#options = options;
    this.#epochs = epochs;
  }

  setEndpoints(endpoints: readonly EndpointAddress[]): void {
    this.#endpoints = endpoints.map(formatEndpoint);
  }

  /** Sets the address where the datacenter's other nodes link to this one. */
  setClusterAddress(address: EndpointAddress): void {
    this.#clusterAddress = formatEndpoint(address);
  }

  setDomain(domain: string, isHidden: boolean): void {
    this.#domains.set(domain, isHidden);
  }

  removeDomain(domain: string): void {
    this.#domains.delete(domain);
  }

  /** Random hexadecimal that all nodes of the datacenter share; empty until Redis was reached. */
  get datacenterId(): string {
    return this.startedUs === 0 ? "" : this.#datacenterId;
  }

  /** Endpoints of this node, `<host_or_ip>#<port>`. */
  get endpoints(): readonly string[] {
    return this.#endpoints;
  }

  /** True for a component's domain that is not listed to users. */
  isHidden(domain: string): boolean {
    return this.#domains.get(domain) ?? false;
  }

  /** Domains of the components on this node. */
  get domains(): ReadonlySet<string> {
    return new Set(this.#domains.keys());
  }

  /**
   * Renews all that this node publishes, unless a newer process of its name lives.
   * @returns false when it was superseded
   * @throws as `ask`
   * @throws CausewayError `table/redis-layout` before anything is written to a newer layout
   */
  async beat(): Promise<boolean> {
    if (this.isSuperseded) return false;
    const { localHost, nodeName, incarnation } = this.#options;
    const sets = this.#sets();
    const [found, layout, ...members] = await ask(this.#redis, [
      ["GET", leaseKey(localHost, nodeName)],
      ["GET", LAYOUT_KEY],
      ...sets.map(({ key }) => ["SMEMBERS", key] as const),
    ]);
    const other = tryParseLease(found);
    if (other !== undefined && other.incarnation !== incarnation && this.#isOlderThan(other)) {
      this.isSuperseded = true;
      return false;
    }
    const isFirst = this.startedUs === 0;
    // Nodes that run already go on: stopping all of them is for the operator of an upgrade.
    if (isFirst) this.#refuseNewerLayout(layout);
    if (isFirst) this.predecessor = other?.incarnation;
    this.hasBeenForgotten = other === undefined && !isFirst;
    this.startedUs ||= this.#epochs.next(other?.startedUs);
    const lease = formatLease({ incarnation, startedUs: this.startedUs });
    const expire = String(Math.ceil(this.#options.redis.expireAfterMs / 1000));
    const dcKey = datacenterKey(localHost);
    const longExpire = String(Math.max(Number(expire), LONG_SECONDS));
    const renewals: RedisCommand[] = [];
    sets.forEach(({ key, wanted }, i) => {
      const extra = members[i]!.filter((member) => !wanted.includes(member));
      if (extra.length > 0) renewals.push(["SREM", key, ...extra]);
      if (wanted.length > 0) renewals.push(["SADD", key, ...wanted], ["EXPIRE", key, expire]);
    });
    if (this.#clusterAddress !== undefined) {
      const key = clusterKey(localHost);
      renewals.push(["HSET", key, nodeName, this.#clusterAddress], ["EXPIRE", key, expire]);
    }
    const [leaseNow, , claimed, , stored] = await ask(this.#redis, [
      ["GET", leaseKey(localHost, nodeName)],
      ["SET", leaseKey(localHost, nodeName), lease, "EX", expire],
      // In a Redis that lost our lease, an id is that of a node that started since. The mesh
      // knows our datacenter by our id.
      this.hasBeenForgotten
        ? ["SET", dcKey, this.#datacenterId, "EX", longExpire]
        : ["SET", dcKey, this.#datacenterId, "EX", longExpire, "NX"],
      ["EXPIRE", dcKey, longExpire],
      ["GET", dcKey],
      ["SADD", nodesKey(localHost), nodeName],
      ["EXPIRE", nodesKey(localHost), expire],
      ["SADD", HOSTS_KEY, localHost],
      ["EXPIRE", HOSTS_KEY, expire],
      layoutRenewal(layout, longExpire),
      ...renewals,
    ]);
    // Redis may have lost its data since our read: the id lives for days, and is never missing
    // otherwise, and the lease was there.
    const isLost = claimed === "OK" || tryParseLease(leaseNow) === undefined;
    const isLostSince = isLost && !isFirst && !this.hasBeenForgotten;
    if (isLostSince) this.hasBeenForgotten = true;
    let id = tryParseDatacenterId(stored) ?? await this.#replaceId(longExpire);
    // A node that has started in between has made one up.
    if (isLostSince && id !== this.#datacenterId) id = await this.#replaceId(longExpire);
    this.hasNewId = !isFirst && id !== this.#datacenterId;
    this.#datacenterId = id;
    return true;
  }

  /**
   * Replaces a value in the id's place that is no id, and would keep nodes from agreeing on one, or
   * another id than that by which the mesh knows our datacenter.
   */
  async #replaceId(expire: string): Promise<string> {
    const key = datacenterKey(this.#options.localHost);
    const [, , stored] = await ask(this.#redis, [
      ["DEL", key],
      ["SET", key, this.#datacenterId, "EX", expire, "NX"],
      ["GET", key],
    ]);
    return tryParseDatacenterId(stored) ?? this.#datacenterId;
  }

  /** Removes all that this node published; `isLastNode` when its datacenter has no other. */
  async withdraw(isLastNode: boolean): Promise<void> {
    if (this.isSuperseded) return; // the name and its entries belong to another process now
    const { localHost, nodeName } = this.#options;
    const commands: RedisCommand[] = [
      ["SREM", nodesKey(localHost), nodeName],
      ...this.#sets().map(({ key }): RedisCommand => ["DEL", key]),
      ["HDEL", clusterKey(localHost), nodeName],
      ["DEL", leaseKey(localHost, nodeName)],
    ];
    if (isLastNode) commands.push(["SREM", HOSTS_KEY, localHost]);
    await ask(this.#redis, commands);
  }

  #refuseNewerLayout(value: string | null): void {
    const layout = tryParseLayout(value) ?? 0;
    if (layout <= REDIS_LAYOUT) return;
    throw new CausewayError(
      "table/redis-layout",
      `Cannot use the session table in Redis at ${redisAddress(this.#options)}: its layout is ` +
        `${layout}, and this version knows ${REDIS_LAYOUT} at most`,
    );
  }

  #isOlderThan(other: Lease): boolean {
    if (this.startedUs === 0) return false; // we have just started: a former process is older
    if (other.startedUs !== this.startedUs) return other.startedUs > this.startedUs;
    return other.incarnation > this.#options.incarnation;
  }

  #sets(): { readonly key: string; readonly wanted: readonly string[] }[] {
    const { localHost, nodeName } = this.#options;
    const open = [...this.#domains].filter(([, isHidden]) => !isHidden).map(([domain]) => domain);
    return [
      { key: domainsKey(localHost, nodeName), wanted: [...this.#domains.keys()] },
      { key: publicDomainsKey(localHost, nodeName), wanted: open },
      { key: endpointsKey(localHost, nodeName), wanted: this.#endpoints },
    ];
  }
}

/**
 * Returns the command that keeps the layout's number. It never lowers one, and does not overwrite one
 * that another node has written since the read.
 */
function layoutRenewal(found: string | null, expire: string): RedisCommand {
  if ((tryParseLayout(found) ?? 0) >= REDIS_LAYOUT) return ["EXPIRE", LAYOUT_KEY, expire];
  const set = ["SET", LAYOUT_KEY, String(REDIS_LAYOUT), "EX", expire] as const;
  return found === null ? [...set, "NX"] : set;
}

function tryParseDatacenterId(value: string | null): string | undefined {
  return value !== null && /^[0-9a-f]{8,64}$/.test(value) ? value : undefined;
}
