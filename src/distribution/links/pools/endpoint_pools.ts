import type { CancelTimer } from "../../../base/mod.ts";
import { describeError } from "../../../base/mod.ts";
import type { GoodbyeReason } from "../../wire/mod.ts";
import { EndpointPool } from "./endpoint_pool.ts";
import type { EndpointEvent } from "./endpoint_state.ts";
import type { Lane } from "../lanes/lane.ts";
import type { LinkDeps } from "../connection/link_deps.ts";
import type { OutgoingLink, OutgoingLinkEvents } from "../connection/outgoing_link.ts";
import type { EndpointAddress } from "../ports.ts";

/** The parts that the endpoints of a destination work with. */
export interface EndpointPoolsDeps {
  readonly shared: LinkDeps;
  /** Endpoints in place of those that the table lists. */
  readonly override: readonly EndpointAddress[] | undefined;
  /** True while some link is open. */
  isReached(): boolean;
}

/** Callbacks on the endpoints of a destination and their links. */
export interface EndpointPoolsEvents extends OutgoingLinkEvents {
  /** Called when the endpoints were listed anew; `isNewHope` is true if there were none before. */
  listed(isNewHope: boolean): void;
  /** Called when the lane's endpoint closes: its stanzas have to move to other lanes. */
  closing(lane: Lane): void;
}

/** The endpoints of one destination, with a pool of links to each. */
export class EndpointPools {
  readonly #destination: string;
  readonly #deps: EndpointPoolsDeps;
  readonly #events: EndpointPoolsEvents;
  readonly #pools = new Map<string, EndpointPool>();
  /** Pools of listed endpoints. */
  readonly #enabled = new Set<EndpointPool>();
  /** Enabled pools with a process that is not known to have ended. */
  readonly #usable = new Set<EndpointPool>();
  /** Links that are open. */
  readonly #open = new Set<OutgoingLink>();
  /** Links of closed pools, and links that were too many, until their connections have ended. */
  readonly #leaving = new Set<OutgoingLink>();
  /** Endpoints that an operator has paused. */
  readonly #paused = new Set<string>();
  /** True while an operator has paused the whole destination, endpoints yet to come included. */
  #isPaused = false;
  /** Endpoints in place of those that the table lists. */
  #override: readonly EndpointAddress[] | undefined;
  #collectedMs: number;
  #cancelRefresh: CancelTimer | undefined;
  #refreshDueMs = 0;
  #refreshing: Promise<void> | undefined;
  #isStopped = false;
  #hasFailed = false;
  #isCrowded = false;

  constructor(destination: string, deps: EndpointPoolsDeps, events: EndpointPoolsEvents) {
    this.#destination = destination;
    this.#deps = deps;
    this.#override = deps.override;
    this.#events = events;
    this.#collectedMs = deps.shared.clock.monotonicMs();
  }

  get all(): Iterable<EndpointPool> {
    return this.#pools.values();
  }

  /** True while there is no endpoint, not even one that is no longer listed. */
  get isEmpty(): boolean {
    return this.#pools.size === 0;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /**
   * True while every enabled endpoint refuses connections, or every one that was listed before if none
   * is now: its processes have ended.
   */
  get isGone(): boolean {
    if (this.hasUsable) return false;
    if (this.#enabled.size > 0) return true;
    for (const { links } of this.#pools.values()) {
      for (const { lane } of links) if (lane.isLive || !lane.isGone) return false;
    }
    return this.#pools.size > 0;
  }

  /** True while there is a lane to move stanzas to: of an enabled endpoint that may be reached. */
  get hasUsable(): boolean {
    return this.#usable.size > 0;
  }

  /**
   * True when that process listens at no endpoint, as far as is known. Each endpoint refuses
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
    for (const link of this.#leaving) if (!link.isStopped) return false;
    return [...this.#pools.values()].every(({ links }) => links.every((link) => link.isStopped));
  }

  /** Links that are open. */
  get openLinks(): number {
    return this.#open.size;
  }

  /** Returns the lanes of the endpoint that `link` leads to; none once the endpoint is closed. */
  lanesBeside(link: OutgoingLink): readonly Lane[] {
    return this.#poolOf(link)?.links.map(({ lane }) => lane) ?? [];
  }

  *lanes(): IterableIterator<Lane> {
    for (const pool of this.#pools.values()) {
      for (const link of pool.links) yield link.lane;
    }
  }

  /**
   * Returns the lane for a new sender: of an enabled endpoint if one is left, connected if there is
   * one, with the fewest senders; else a connected lane of a disabled endpoint.
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

  /** Reads the endpoints now, and again after the refresh interval. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#refreshOnce().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  /** As `refresh`, but never with what a read has found that began before. */
  refreshAnew(): Promise<void> {
    return this.#refreshing?.then(() => this.refresh()) ?? this.refresh();
  }

  /**
   * Reads the endpoints soon, after the interval for an empty list: one of them may be gone or have
   * moved.
   */
  refreshSoon(): void {
    this.#refreshWithin(this.#deps.shared.options.endpointRefreshIntervalWhenEmptyMs);
  }

  /** True while an operator has paused the whole destination. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  /**
   * Stops using an endpoint until `resume`: it counts as not listed, and its links end in order.
   *
   * @param endpoint `host#port`. Default: all, those yet to come included
   * @returns the number of endpoints that were not paused before
   */
  pause(endpoint?: string): number {
    let count = 0;
    if (endpoint === undefined) this.#isPaused = true;
    for (const [key, pool] of this.#pools) {
      if ((endpoint !== undefined && key !== endpoint) || this.#paused.has(key)) continue;
      count++;
      this.#paused.add(key);
      this.#step(pool, { kind: "vanish" });
      for (const link of pool.links) link.pause();
    }
    if (count > 0) this.#events.listed(false);
    return count;
  }

  /**
   * Ends pauses, and reads the endpoints anew.
   *
   * @param endpoint `host#port`. Default: all
   * @returns the number of endpoints that were paused
   */
  resume(endpoint?: string): number {
    let count = 0;
    if (endpoint === undefined) this.#isPaused = false;
    for (const key of [...this.#paused]) {
      if (endpoint !== undefined && key !== endpoint) continue;
      count++;
      this.#paused.delete(key);
      for (const link of this.#pools.get(key)?.links ?? []) link.unpause();
    }
    this.refreshAnew(); // never rejects
    return count;
  }

  /**
   * Takes the options that are shared by now, and other endpoints in place of those that the table
   * lists, and reads the endpoints anew.
   */
  change(override: readonly EndpointAddress[] | undefined): void {
    if (this.#isStopped) return;
    this.#override = override;
    for (const pool of this.#pools.values()) {
      pool.resize();
      this.#update(pool);
    }
    this.refreshAnew(); // never rejects
  }

  /** Dials every enabled endpoint that is not connected, without waiting for its next attempt. */
  connect(): void {
    for (const pool of this.#pools.values()) {
      if (pool.state !== "enabled") continue;
      for (const link of pool.links) link.connect();
    }
  }

  /**
   * Marks the endpoint of `link` as gone on all its links: one process listens there for all of
   * them.
   */
  markGone(link: OutgoingLink): void {
    const pool = this.#poolOf(link);
    if (pool === undefined) return;
    for (const { lane } of pool.links) lane.isGone ||= !lane.isLive;
    this.#update(pool);
  }

  /** Notes that `isLive` or `isGone` of the link's lane has changed. */
  reachChanged(link: OutgoingLink): void {
    if (link.isOpen) this.#open.add(link);
    else this.#open.delete(link);
    const pool = this.#poolOf(link);
    if (pool !== undefined) this.#update(pool);
  }

  tick(nowMs: number): void {
    for (const pool of this.#pools.values()) {
      pool.tick(nowMs);
      for (const link of pool.takeDrained()) this.#close(link, "fewer connections are wanted");
    }
    for (const link of this.#leaving) {
      link.tick(nowMs);
      if (link.isStopped) this.#leaving.delete(link);
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
    const { shared, isReached } = this.#deps;
    try {
      const listed = this.#override ?? await shared.endpoints.endpoints(this.#destination);
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
      this.#hasFailed = true; // known endpoints stay: a failure does not show absence
    }
    if (this.#isStopped) return;
    // An unreachable endpoint may have moved: read the list as often as when none is listed.
    if (isReached() && this.#enabled.size > 0) {
      this.#refreshWithin(shared.options.endpointRefreshIntervalMs);
    } else this.refreshSoon();
  }

  /** Makes the next refresh come at most `delayMs` from now; one timer for each destination. */
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
    const wasEmpty = this.#enabled.size === 0;
    const keys = new Set<string>();
    let hasRoom = true;
    for (const address of listed) {
      const key = keyOf(address);
      if (this.#isPaused || this.#paused.has(key)) continue;
      keys.add(key);
      const pool = this.#pools.get(key);
      if (pool !== undefined) this.#step(pool, { kind: "appear" });
      else {
        hasRoom &&= this.#hasRoom();
        if (hasRoom) this.#add(key, address);
      }
    }
    if (hasRoom) this.#isCrowded = false;
    for (const [key, pool] of this.#pools) {
      if (!keys.has(key)) this.#step(pool, { kind: "vanish" });
    }
    this.#events.listed(wasEmpty && this.#enabled.size > 0);
  }

  /** False at the bound on endpoints, even after those that are no longer listed were closed. */
  #hasRoom(): boolean {
    const { options, log } = this.#deps.shared;
    const { maxDatacenterEndpoints: bound } = options;
    if (this.#pools.size >= bound) this.#collect();
    if (this.#pools.size < bound) return true;
    if (!this.#isCrowded) { // logged once, until there is room again
      log.warn("datacenter.limit", { host: this.#destination, limit: "endpoints", bound });
    }
    this.#isCrowded = true;
    return false;
  }

  #add(key: string, address: EndpointAddress): void {
    const pool = new EndpointPool(this.#destination, address, {
      shared: this.#deps.shared,
      events: this.#events,
    });
    this.#pools.set(key, pool);
    this.#update(pool);
  }

  #step(pool: EndpointPool, event: EndpointEvent): boolean {
    const hasChanged = pool.step(event);
    if (hasChanged) this.#update(pool);
    return hasChanged;
  }

  #update(pool: EndpointPool): void {
    const isEnabled = pool.state === "enabled";
    if (isEnabled) this.#enabled.add(pool);
    else this.#enabled.delete(pool);
    const isUsable = isEnabled && pool.links.some(({ lane }) => lane.isLive || !lane.isGone);
    if (isUsable) this.#usable.add(pool);
    else this.#usable.delete(pool);
  }

  /** Returns the pool of `link`; undefined once it is closed. */
  #poolOf(link: OutgoingLink): EndpointPool | undefined {
    const pool = this.#pools.get(keyOf(link.address));
    return pool?.links.includes(link) === true ? pool : undefined;
  }

  /** Closes disabled endpoints whose links are all dead. */
  #collect(): void {
    for (const [key, pool] of this.#pools) {
      if (this.#paused.has(key)) continue; // operators want to see it
      if (!this.#step(pool, { kind: "collect", isAnyLinkOpen: pool.isAnyLinkOpen })) continue;
      this.#pools.delete(key);
      for (const link of pool.links) this.#close(link, "the endpoint is not listed any more");
    }
  }

  /** Ends a link that belongs to no pool any more. Its stanzas move to other lanes. */
  #close(link: OutgoingLink, why: string): void {
    this.#leaving.add(link);
    this.#events.closing(link.lane);
    link.stop("endpoint-gone", why);
  }
}

function keyOf({ host, port }: EndpointAddress): string {
  return `${host}#${port}`;
}

function isBetter(lane: Lane, best: Lane): boolean {
  const rank = rankOf(lane) - rankOf(best);
  return rank > 0 || (rank === 0 && lane.senders < best.senders);
}

function rankOf(lane: Lane): number {
  return (lane.isEnabled && !lane.isGone ? 4 : 0) + (lane.isLive ? 2 : 0) +
    (lane.isEnabled ? 1 : 0);
}
