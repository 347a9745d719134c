import type { CancelTimer } from "../../base/mod.ts";
import { describeError } from "../../base/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import type { Envelope } from "../mod.ts";
import type { GoodbyeReason } from "../wire/mod.ts";
import { EndpointPool } from "./endpoint_pool.ts";
import type { LaneOwner, TakenEntry } from "./lane.ts";
import { Lane } from "./lane.ts";
import { LanePressure } from "./lane_pressure.ts";
import type { LinkShared } from "./link_shared.ts";
import type { OutgoingLink, OutgoingLinkEvents } from "./outgoing_link.ts";
import type { EndpointAddress, ReturnReason } from "./ports.ts";
import { SenderBindings } from "./sender_bindings.ts";
import { senderKey } from "./sender_rules.ts";

/**
 * Everything outgoing to one destination (another datacenter, or another node of this one): its
 * endpoints, their links, which sender uses which lane, and what becomes of stanzas whose lane is gone.
 */
export class HostLinks implements OutgoingLinkEvents, LaneOwner {
  readonly destination: string;
  readonly #shared: LinkShared;
  readonly #override: readonly EndpointAddress[] | undefined;
  readonly #pools = new Map<string, EndpointPool>();
  /** Pools that are closed and whose connections have not ended yet. */
  readonly #leaving = new Set<EndpointPool>();
  readonly #bindings: SenderBindings;
  readonly #pressure: LanePressure;
  /** Holds what waits for a first endpoint; never connected. */
  readonly #parked: Lane;
  #openLinks = 0;
  /** Since when nothing has been reachable though it was wanted; undefined while something is. */
  #goneSinceMs: number | undefined;
  #collectedMs: number;
  #cancelRefresh: CancelTimer | undefined;
  #refreshDueMs = 0;
  #refreshing: Promise<void> | undefined;
  #isStopped = false;
  #hasFailed = false;
  /** Monotonic milliseconds at which what has nowhere to go is given back; undefined while all has. */
  #rerouteAtMs: number | undefined;
  #rerouteDelayMs = 0;
  #isReconsidering = false;
  /** Monotonic milliseconds of the next look for those who have moved; undefined while all is well. */
  #lookAtMs: number | undefined;
  #lookDelayMs = 0;

  constructor(
    destination: string,
    shared: LinkShared,
    override: readonly EndpointAddress[] | undefined,
  ) {
    this.destination = destination;
    this.#shared = shared;
    this.#override = override;
    const { maxBindings, bindingIdleMs, tickMs } = shared.options;
    const idleTicks = Math.max(1, Math.ceil(bindingIdleMs / tickMs));
    this.#bindings = new SenderBindings({ maxBindings, idleTicks });
    this.#pressure = new LanePressure((sender, isOver) => {
      shared.handlers.pressure(sender, isOver);
    });
    this.#parked = new Lane(shared.nextLane(), shared.options, this);
    this.#parked.isEnabled = false;
    this.#collectedMs = shared.clock.monotonicMs();
    shared.metrics.bindLevels(destination, {
      items: () => this.#sum((lane) => lane.items),
      bytes: () => this.#sum((lane) => lane.allocatedBytes),
      open: () => this.#openLinks,
    });
  }

  /** Senders bound to a lane. */
  get senders(): number {
    return this.#bindings.size;
  }

  /** True once all that its lanes hold now is gone from them; what comes later does not count. */
  watchEmptying(): () => boolean {
    const marks = [...this.#lanes()].map((lane) => [lane, lane.last] as const);
    return () => marks.every(([lane, last]) => lane.lastGone >= last);
  }

  /** True when nothing is held but what peers that live have received. */
  get isWithPeers(): boolean {
    for (const lane of this.#lanes()) if (!lane.isWithPeer) return false;
    return true;
  }

  get openLinks(): number {
    return this.#openLinks;
  }

  /** Stanzas held in all lanes. */
  get items(): number {
    return this.#sum((lane) => lane.items);
  }

  get pools(): Iterable<EndpointPool> {
    return this.#pools.values();
  }

  /** Stanzas that wait for an endpoint to appear. */
  get parkedItems(): number {
    return this.#parked.items;
  }

  /** True while nobody listens at any of its endpoints: its processes have ended. */
  get isGone(): boolean {
    let pools = 0;
    for (const { state, links } of this.#pools.values()) {
      if (state !== "enabled") continue;
      pools++;
      for (const { lane } of links) if (lane.isLive || !lane.isGone) return false;
    }
    return pools > 0;
  }

  /** True when every connection has ended. */
  get hasEnded(): boolean {
    return [...this.#pools.values(), ...this.#leaving]
      .every((pool) => pool.links.every((link) => link.isStopped));
  }

  /** Takes `envelope` over. A lane that is full gives it back at once. */
  send(envelope: Envelope): void {
    const sender = senderKey(envelope.stanza.from, this.#shared.identity.globalHost);
    let binding = this.#bindings.get(sender);
    if (binding === undefined) {
      binding = this.#bindings.bind(sender, this.#chooseLane());
    } else if (binding.held === 0 && !(binding.lane.isEnabled && binding.lane.isLive)) {
      this.#bindings.rebind(binding, this.#chooseLane());
    }
    const { lane } = binding;
    if (!lane.append(envelope, binding)) {
      this.#giveBack(envelope, "full");
      return;
    }
    if (lane.isOver) this.#pressure.note(lane, binding);
    if (this.#openLinks === 0) this.#goneSinceMs ??= this.#shared.clock.monotonicMs();
  }

  /** Learns the endpoints now, and again after the refresh interval. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#refreshOnce().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  /**
   * The datacenter has just linked to us, so it lives: where none of our links is up, there is nothing
   * to wait for before looking where it is and trying again.
   */
  peerArrived(): void {
    if (this.#openLinks > 0 || this.#isStopped) return;
    for (const pool of this.#pools.values()) {
      if (pool.state !== "enabled") continue;
      for (const link of pool.links) link.connect();
    }
    this.refresh(); // never rejects
  }

  /** Somebody waits for the fate of what is held here: it is not to wait for a node that is cut off. */
  reconsider(): void {
    this.#isReconsidering = true;
  }

  tick(nowMs: number): void {
    const { disabledGcIntervalMs, expireAfterMs } = this.#shared.options;
    // First of all: what is routed anew may be on its way back here, and would escape its end.
    if (this.#goneSinceMs !== undefined && nowMs - this.#goneSinceMs >= expireAfterMs) {
      this.giveBackAll("expired");
    }
    this.#rehomeStranded(nowMs);
    this.#lookAround(nowMs);
    this.#rerouteHomeless(nowMs);
    this.#bindings.tick();
    for (const pool of this.#pools.values()) pool.tick(nowMs);
    for (const pool of this.#leaving) {
      pool.tick(nowMs);
      if (pool.links.every((link) => link.isStopped)) this.#leaving.delete(pool);
    }
    if (nowMs - this.#collectedMs >= disabledGcIntervalMs) {
      this.#collectedMs = nowMs;
      this.#collect();
    }
  }

  /** Empties all lanes: what they hold goes back, in order. */
  giveBackAll(reason: ReturnReason): void {
    for (const lane of this.#lanes()) this.#giveBackTaken(lane.takeAll(), reason);
  }

  /** Says GOODBYE on all links and connects no more. */
  stop(reason: GoodbyeReason, detail: string): void {
    this.#isStopped = true;
    this.#cancelRefresh?.();
    for (const pool of this.#pools.values()) {
      for (const link of pool.links) link.stop(reason, detail);
    }
  }

  opened(link: OutgoingLink): void {
    this.#openLinks++;
    this.#goneSinceMs = undefined;
    this.#rerouteAtMs = undefined;
    this.#lookAtMs = undefined;
    this.#pressure.update(link.lane);
    this.#rehomeHomeless();
  }

  closed(link: OutgoingLink): void {
    this.#openLinks = 0;
    for (const pool of this.#pools.values()) {
      for (const { isOpen } of pool.links) this.#openLinks += isOpen ? 1 : 0;
    }
    if (this.#openLinks === 0) this.#goneSinceMs ??= this.#shared.clock.monotonicMs();
    if (link.lane.isGone) this.#markGone(link);
    // Processes that have ended settle nothing any more: what they had is routed anew at once.
    if (this.isGone) this.giveBackAll(this.#gone);
    this.#pressure.update(link.lane);
    this.#rehomeHomeless();
    // Its node may be gone or have moved: the table may know by now.
    this.#refreshWithin(this.#shared.options.endpointRefreshIntervalWhenEmptyMs);
  }

  restarted(_link: OutgoingLink, taken: readonly TakenEntry[]): void {
    this.#giveBackTaken(taken, "peer-restarted");
  }

  levelChanged(lane: Lane): void {
    this.#pressure.update(lane);
  }

  /** The parked lane has nowhere to send to. */
  laneHasWork(): void {}

  laneLevelChanged(lane: Lane): void {
    this.#pressure.update(lane);
  }

  async #refreshOnce(): Promise<void> {
    this.#cancelRefresh?.();
    this.#cancelRefresh = undefined;
    try {
      const listed = this.#override ?? await this.#shared.endpoints.endpoints(this.destination);
      if (this.#isStopped) return;
      this.#hasFailed = false;
      this.#applyList(listed);
    } catch (error) {
      if (!this.#hasFailed) {
        this.#shared.log.warn("endpoints.unknown", {
          host: this.destination,
          error: describeError(error),
        });
      }
      this.#hasFailed = true; // what was known stays: not knowing is not absence
    }
    if (this.#isStopped) return;
    const { options } = this.#shared;
    // One that cannot be reached may have moved: look as often as when none is listed.
    this.#refreshWithin(
      this.#openLinks > 0 && this.#hasEnabled
        ? options.endpointRefreshIntervalMs
        : options.endpointRefreshIntervalWhenEmptyMs,
    );
  }

  /** Sees to it that the next refresh comes at most `delayMs` from now; one timer for each host. */
  #refreshWithin(delayMs: number): void {
    if (this.#isStopped) return;
    const { clock } = this.#shared;
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
    for (const address of listed) {
      const key = `${address.host}#${address.port}`;
      keys.add(key);
      const pool = this.#pools.get(key);
      if (pool !== undefined) {
        pool.step({ kind: "appear" });
        continue;
      }
      const options = { shared: this.#shared, events: this };
      this.#pools.set(key, new EndpointPool(this.destination, address, options));
    }
    for (const [key, pool] of this.#pools) {
      if (!keys.has(key)) pool.step({ kind: "vanish" });
    }
    // New hope: what waits gets its full time again.
    if (wasEmpty && this.#hasEnabled && this.#goneSinceMs !== undefined) {
      this.#goneSinceMs = this.#shared.clock.monotonicMs();
    }
    this.#rehomeHomeless();
  }

  /** Closes disabled endpoints whose links are all dead. */
  #collect(): void {
    for (const [key, pool] of this.#pools) {
      if (!pool.step({ kind: "collect", isAnyLinkOpen: pool.isAnyLinkOpen })) continue;
      this.#pools.delete(key);
      this.#leaving.add(pool);
      for (const link of pool.links) {
        this.#rehome(link.lane);
        link.stop("endpoint-gone", "the endpoint is not listed any more");
      }
    }
  }

  /** One process listens at an endpoint: when it is gone for one link, it is for all. */
  #markGone(link: OutgoingLink): void {
    for (const pool of this.#pools.values()) {
      if (!pool.links.includes(link)) continue;
      for (const { lane } of pool.links) lane.isGone ||= !lane.isLive;
    }
  }

  get #hasEnabled(): boolean {
    for (const pool of this.#pools.values()) if (pool.state === "enabled") return true;
    return false;
  }

  /** Moves what lies in lanes that are down and not coming back, if there is a better place. */
  #rehomeHomeless(): void {
    const best = this.#chooseLane();
    if (!best.isEnabled || best.isGone) return;
    for (const lane of this.#lanes()) if (isHomeless(lane)) this.#rehome(lane);
  }

  /**
   * Moves what waits for a node that has been out of reach for a while to one that is reached. Should
   * the first deliver it after all, where it is delivered tells that it comes twice.
   */
  #rehomeStranded(nowMs: number): void {
    if (this.#openLinks === 0 || !this.#chooseLane().isLive) return;
    const { rehomeAfterMs } = this.#shared.options;
    for (const lane of this.#lanes()) {
      if (lane.isLive || lane.items === 0 || nowMs - lane.downSinceMs < rehomeAfterMs) continue;
      this.#rehome(lane);
    }
  }

  /**
   * Gives back what waits where nobody listens: whom it is for may have gone to another datacenter or
   * node. What has nowhere else to go comes back here, until it expires.
   */
  #rerouteHomeless(nowMs: number): void {
    const { rerouteFirstMs, expireAfterMs } = this.#shared.options;
    if (this.#rerouteAtMs === undefined) {
      if (this.items === 0) this.#isReconsidering = false;
      if (this.#homeless().length === 0) return;
      this.#rerouteDelayMs = rerouteFirstMs;
    } else {
      if (nowMs < this.#rerouteAtMs) return;
      // Taken before any is given back, which may come here again at once.
      const taken = this.#homeless().map((lane) => lane.takeAll());
      for (const entries of taken) this.#giveBackTaken(entries, this.#gone);
      // Several times before what is left expires.
      const mostMs = Math.max(rerouteFirstMs, expireAfterMs / 4);
      this.#rerouteDelayMs = Math.min(2 * this.#rerouteDelayMs, mostMs);
    }
    this.#rerouteAtMs = nowMs + this.#rerouteDelayMs;
  }

  /**
   * While nothing here is reached, and yet may be there: has what waits for those who are elsewhere by
   * now routed anew. Asks as often as `#rerouteHomeless`.
   */
  #lookAround(nowMs: number): void {
    const { whereabouts } = this.#shared.handlers;
    if (whereabouts === undefined || this.#openLinks > 0 || this.items === 0) return;
    const { rerouteFirstMs, expireAfterMs } = this.#shared.options;
    if (this.#lookAtMs === undefined) this.#lookDelayMs = rerouteFirstMs;
    else if (nowMs < this.#lookAtMs) return;
    else {
      this.#lookFor(this.#recipients()).catch(() => {}); // `whereabouts` never rejects
      const mostMs = Math.max(rerouteFirstMs, expireAfterMs / 4);
      this.#lookDelayMs = Math.min(2 * this.#lookDelayMs, mostMs);
    }
    this.#lookAtMs = nowMs + this.#lookDelayMs;
  }

  /** Recipients of what the peer has not said to have received; at most `MAX_LOOKED_FOR`. */
  #recipients(): ReadonlyMap<string, Jid> {
    const recipients = new Map<string, Jid>();
    for (const lane of this.#lanes()) {
      for (const entry of lane.unreceived()) {
        const { to } = entry;
        recipients.set(to.text, to);
        if (recipients.size === MAX_LOOKED_FOR) return recipients;
      }
    }
    return recipients;
  }

  async #lookFor(recipients: ReadonlyMap<string, Jid>): Promise<void> {
    const { whereabouts } = this.#shared.handlers;
    const moved = new Set<string>();
    await Promise.all([...recipients].map(async ([text, to]) => {
      const host = await whereabouts!(to); // asked for before
      if (host !== undefined && host !== this.destination) moved.add(text);
    }));
    if (moved.size === 0 || this.#openLinks > 0 || this.#isStopped) return;
    const lanes = [...this.#lanes()];
    for (const { entry, wasSent, wasReceived } of lanes.flatMap((lane) => lane.takeAll())) {
      const envelope = entry.toEnvelope(wasSent);
      if (!wasReceived && moved.has(envelope.stanza.to.text)) this.#giveBack(envelope, this.#gone);
      else this.send(envelope);
    }
  }

  /** Lanes with what can go nowhere, or is not to wait until it can. */
  #homeless(): readonly Lane[] {
    const isCutOff = this.#isReconsidering && this.#openLinks === 0;
    return [...this.#lanes()].filter((lane) => isHomeless(lane) || (isCutOff && lane.items > 0));
  }

  /** Why what was for a process that cannot be reached any more comes back. */
  get #gone(): ReturnReason {
    return this.#shared.scope === "datacenter" ? "peer-restarted" : "peer-gone";
  }

  /** Moves all that `lane` holds to other lanes, keeping each sender's order. */
  #rehome(lane: Lane): void {
    const taken = lane.takeAll();
    this.#pressure.release(lane);
    const told = new Set<Lane>();
    for (const { entry, wasSent } of taken) {
      const { binding } = entry;
      if (binding.lane === lane) this.#bindings.rebind(binding, this.#chooseLane());
      const target = binding.lane;
      if (wasSent && !told.has(target)) {
        // What the peer has not read from the old connection must not come behind what follows.
        target.noteRetired(lane.id);
        told.add(target);
      }
      target.adopt(entry, wasSent);
    }
  }

  /**
   * The lane for a new sender: of an enabled endpoint if one is left, connected if there is one,
   * with the fewest senders; a connected one of a disabled endpoint else; else the parked one.
   */
  #chooseLane(): Lane {
    let best: Lane | undefined;
    for (const pool of this.#pools.values()) {
      for (const { lane } of pool.links) {
        if (!lane.isEnabled && !lane.isLive) continue;
        if (best === undefined || isBetter(lane, best)) best = lane;
      }
    }
    return best ?? this.#parked;
  }

  #giveBackTaken(taken: readonly TakenEntry[], reason: ReturnReason): void {
    for (const { entry, wasSent, wasReceived } of taken) {
      // What the peer has received and keeps, for a client that is to acknowledge it, is the peer's to
      // see to when we leave: an error from here would be answered by the stanza's arrival.
      if (reason === "leaving" && wasReceived) entry.settle();
      else this.#giveBack(entry.toEnvelope(wasSent), reason);
    }
  }

  #giveBack(envelope: Envelope, reason: ReturnReason): void {
    this.#shared.metrics.host(this.destination).outgoingReturned.inc();
    this.#shared.handlers.returned(envelope, reason);
  }

  *#lanes(): IterableIterator<Lane> {
    yield this.#parked;
    for (const pool of this.#pools.values()) {
      for (const link of pool.links) yield link.lane;
    }
  }

  #sum(read: (lane: Lane) => number): number {
    let sum = 0;
    for (const lane of this.#lanes()) sum += read(lane);
    return sum;
  }
}

/** Recipients that the table is asked about at once. */
const MAX_LOOKED_FOR = 1000;

/** True when what it holds can go nowhere: it is down and not coming back. */
function isHomeless(lane: Lane): boolean {
  return !lane.isLive && (!lane.isEnabled || lane.isGone) && lane.items > 0;
}

function isBetter(lane: Lane, best: Lane): boolean {
  const rank = rankOf(lane) - rankOf(best);
  return rank > 0 || (rank === 0 && lane.senders < best.senders);
}

function rankOf(lane: Lane): number {
  return (lane.isEnabled && !lane.isGone ? 4 : 0) + (lane.isLive ? 2 : 0) +
    (lane.isEnabled ? 1 : 0);
}
