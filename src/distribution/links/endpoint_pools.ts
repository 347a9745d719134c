import type { CancelTimer } from "../../base/mod.ts";
import { describeError } from "../../base/mod.ts";
import type { GoodbyeReason } from "../wire/mod.ts";
import { EndpointPool } from "./endpoint_pool.ts";
import type { Lane } from "./lane.ts";
import type { LinkShared } from "./link_shared.ts";
import type { OutgoingLink, OutgoingLinkEvents } from "./outgoing_link.ts";
import type { EndpointAddress } from "./ports.ts";

/** What the endpoints of a destination are kept with, and whom they tell. */
export interface EndpointPoolsDeps {
  readonly shared: LinkShared;
  /** Endpoints in place of those that the table lists. */
  readonly override: readonly EndpointAddress[] | undefined;
  readonly events: OutgoingLinkEvents;
  /** True while some link is open. */
  isReached(): boolean;
  /** The endpoints were listed anew; `isNewHope`: there were none before. */
  listed(isNewHope: boolean): void;
  /** The lane's endpoint is closed: what it holds has to go elsewhere. */
  closing(lane: Lane): void;
}

/** The endpoints of one destination as they come and go, with a pool of links to each. */
export class EndpointPools {
  readonly #destination: string;
  readonly #deps: EndpointPoolsDeps;
  readonly #pools = new Map<string, EndpointPool>();
  /** Pools that are closed and whose connections have not ended yet. */
  readonly #leaving = new Set<EndpointPool>();
  #collectedMs: number;
  #cancelRefresh: CancelTimer | undefined;
  #refreshDueMs = 0;
  #refreshing: Promise<void> | undefined;
  #isStopped = false;
  #hasFailed = false;
  #isCrowded = false;

  constructor(destination: string, deps: EndpointPoolsDeps) {
    this.#destination = destination;
    this.#deps = deps;
    this.#collectedMs = deps.shared.clock.monotonicMs();
  }

  get all(): Iterable<EndpointPool> {
    return this.#pools.values();
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** True while nobody listens at any of them: their processes have ended. */
  get isGone(): boolean {
    let pools = 0;
    for (const { state, links } of this.#pools.values()) {
      if (state !== "enabled") continue;
      pools++;
      for (const { lane } of links) if (lane.isLive || !lane.isGone) return false;
    }
    return pools > 0;
  }

  /**
   * True when that process listens at none of them, as far as anybody can tell: each endpoint refuses
   * connections or is held by another process, and at least one refuses. False while one is silent.
   */
  isNowhere(process: number): boolean {
    let refusing = 0;
    for (const { links } of this.#pools.values()) {
      for (const { isOpen, lane, lastProcess } of links) {
        if (isOpen ? lastProcess === process : !lane.isGone) return false;
        if (!isOpen) refusing++;
      }
    }
    return refusing > 0;
  }

  /** True when every connection has ended. */
  get hasEnded(): boolean {
    return [...this.#pools.values(), ...this.#leaving]
      .every((pool) => pool.links.every((link) => link.isStopped));
  }

  /** Links that are open. */
  countOpen(): number {
    let open = 0;
    for (const pool of this.#pools.values()) {
      for (const { isOpen } of pool.links) open += isOpen ? 1 : 0;
    }
    return open;
  }

  *lanes(): IterableIterator<Lane> {
    for (const pool of this.#pools.values()) {
      for (const link of pool.links) yield link.lane;
    }
  }

  /**
   * The lane for a new sender: of an enabled endpoint if one is left, connected if there is one,
   * with the fewest senders; a connected one of a disabled endpoint else.
   */
  bestLane(): Lane | undefined {
    let best: Lane | undefined;
    for (const pool of this.#pools.values()) {
      for (const { lane } of pool.links) {
        if (!lane.isEnabled && !lane.isLive) continue;
        if (best === undefined || isBetter(lane, best)) best = lane;
      }
    }
    return best;
  }

  /** Learns the endpoints now, and again after the refresh interval. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#refreshOnce().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  /** Learns them as soon as when none is listed: one of them may be gone or have moved. */
  refreshSoon(): void {
    this.#refreshWithin(this.#deps.shared.options.endpointRefreshIntervalWhenEmptyMs);
  }

  /** Calls every enabled endpoint, whatever it waits for. */
  connect(): void {
    for (const pool of this.#pools.values()) {
      if (pool.state !== "enabled") continue;
      for (const link of pool.links) link.connect();
    }
  }

  /** One process listens at an endpoint: when it is gone for one link, it is for all. */
  markGone(link: OutgoingLink): void {
    for (const pool of this.#pools.values()) {
      if (!pool.links.includes(link)) continue;
      for (const { lane } of pool.links) lane.isGone ||= !lane.isLive;
    }
  }

  tick(nowMs: number): void {
    for (const pool of this.#pools.values()) pool.tick(nowMs);
    for (const pool of this.#leaving) {
      pool.tick(nowMs);
      if (pool.links.every((link) => link.isStopped)) this.#leaving.delete(pool);
    }
    if (nowMs - this.#collectedMs >= this.#deps.shared.options.disabledGcIntervalMs) {
      this.#collectedMs = nowMs;
      this.#collect();
    }
  }

  /** Says GOODBYE on all links and connects no more. */
  stop(reason: GoodbyeReason, detail: string): void {
    this.#isStopped = true;
    this.#cancelRefresh?.();
    for (const pool of this.#pools.values()) {
      for (const link of pool.links) link.stop(reason, detail);
    }
  }

  async #refreshOnce(): Promise<void> {
    this.#cancelRefresh?.();
    this.#cancelRefresh = undefined;
    const { override, shared, isReached } = this.#deps;
    try {
      const listed = override ?? await shared.endpoints.endpoints(this.#destination);
      if (this.#isStopped) return;
      this.#hasFailed = false;
      this.#applyList(listed);
    } catch (error) {
      if (!this.#hasFailed) {
        shared.log.warn("endpoints.unknown", {
          host: this.#destination,
          error: describeError(error),
        });
      }
      this.#hasFailed = true; // what was known stays: not knowing is not absence
    }
    if (this.#isStopped) return;
    // One that cannot be reached may have moved: look as often as when none is listed.
    if (isReached() && this.#hasEnabled) {
      this.#refreshWithin(shared.options.endpointRefreshIntervalMs);
    } else this.refreshSoon();
  }

  /** Sees to it that the next refresh comes at most `delayMs` from now; one timer for each host. */
  #refreshWithin(delayMs: number): void {
    if (this.#isStopped) return;
    const { clock } = this.#deps.shared;
    const dueMs = clock.monotonicMs() + delayMs;
    if (this.#cancelRefresh !== undefined) {
      if (this.#refreshDueMs <= dueMs) return;
      this.#cancelRefresh();
    }
    this.#refreshDueMs = dueMs;
    this.#cancelRefresh = clock.after(delayMs, () => {
      this.#cancelRefresh = undefined;
      this.refresh(); // never rejects
    });
  }

  #applyList(listed: readonly EndpointAddress[]): void {
    const wasEmpty = !this.#hasEnabled;
    const keys = new Set<string>();
    let hasRoom = true;
    for (const address of listed) {
      const key = `${address.host}#${address.port}`;
      keys.add(key);
      const pool = this.#pools.get(key);
      if (pool !== undefined) pool.step({ kind: "appear" });
      else {
        hasRoom &&= this.#hasRoom();
        if (hasRoom) this.#pools.set(key, this.#open(address));
      }
    }
    if (hasRoom) this.#isCrowded = false;
    for (const [key, pool] of this.#pools) {
      if (!keys.has(key)) pool.step({ kind: "vanish" });
    }
    this.#deps.listed(wasEmpty && this.#hasEnabled);
  }

  /** False when as many are kept as may be, also after those are closed that nobody lists any more. */
  #hasRoom(): boolean {
    const { options, log } = this.#deps.shared;
    const { maxDatacenterEndpoints: bound } = options;
    if (this.#pools.size >= bound) this.#collect();
    if (this.#pools.size < bound) return true;
    if (!this.#isCrowded) { // said once, until there is room again
      log.warn("datacenter.limit", { host: this.#destination, limit: "endpoints", bound });
    }
    this.#isCrowded = true;
    return false;
  }

  #open(address: EndpointAddress): EndpointPool {
    const { shared, events } = this.#deps;
    return new EndpointPool(this.#destination, address, { shared, events });
  }

  /** Closes disabled endpoints whose links are all dead. */
  #collect(): void {
    for (const [key, pool] of this.#pools) {
      if (!pool.step({ kind: "collect", isAnyLinkOpen: pool.isAnyLinkOpen })) continue;
      this.#pools.delete(key);
      this.#leaving.add(pool);
      for (const link of pool.links) {
        this.#deps.closing(link.lane);
        link.stop("endpoint-gone", "the endpoint is not listed any more");
      }
    }
  }

  get #hasEnabled(): boolean {
    for (const pool of this.#pools.values()) if (pool.state === "enabled") return true;
    return false;
  }
}

function isBetter(lane: Lane, best: Lane): boolean {
  const rank = rankOf(lane) - rankOf(best);
  return rank > 0 || (rank === 0 && lane.senders < best.senders);
}

function rankOf(lane: Lane): number {
  return (lane.isEnabled && !lane.isGone ? 4 : 0) + (lane.isLive ? 2 : 0) +
    (lane.isEnabled ? 1 : 0);
}
