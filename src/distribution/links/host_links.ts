import type { FairShares } from "../../base/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import { senderKey } from "../mod.ts";
import type { Envelope } from "../mod.ts";
import type { GoodbyeReason } from "../wire/mod.ts";
import type { EndpointPool } from "./endpoint_pool.ts";
import { EndpointPools } from "./endpoint_pools.ts";
import type { LaneOwner, TakenEntry } from "./lane.ts";
import { Lane } from "./lane.ts";
import { LanePressure } from "./lane_pressure.ts";
import type { LinkShared } from "./link_shared.ts";
import type { OutgoingLink, OutgoingLinkEvents } from "./outgoing_link.ts";
import type { EndpointAddress, ReturnReason } from "./ports.ts";
import { SenderBindings } from "./sender_bindings.ts";

/**
 * Everything outgoing to one destination (another datacenter, or another node of this one): which
 * sender uses which lane of its endpoints, and what becomes of stanzas whose lane is gone.
 */
export class HostLinks implements OutgoingLinkEvents, LaneOwner {
  readonly destination: string;
  readonly laneBudget: FairShares | undefined;
  readonly #shared: LinkShared;
  readonly #endpoints: EndpointPools;
  readonly #bindings: SenderBindings;
  readonly #pressure: LanePressure;
  /** Holds what waits for a first endpoint; never connected. */
  readonly #parked: Lane;
  #openLinks = 0;
  #isGivenUp = false;
  /** How often stanzas have been moved from lane to lane. */
  #moves = 0;
  /** Since when nothing has been reachable though it was wanted; undefined while something is. */
  #goneSinceMs: number | undefined;
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
    this.#endpoints = new EndpointPools(destination, {
      shared,
      override,
      events: this,
      isReached: () => this.#openLinks > 0,
      listed: (isNewHope) => this.#listed(isNewHope),
      closing: (lane) => this.#rehome(lane),
    });
    const { maxBindings, bindingIdleMs, tickMs } = shared.options;
    const idleTicks = Math.max(1, Math.ceil(bindingIdleMs / tickMs));
    this.laneBudget = shared.budget;
    this.#bindings = new SenderBindings({ maxBindings, idleTicks, budget: shared.budget });
    this.#pressure = new LanePressure((sender, isOver) => {
      shared.handlers.pressure(sender, isOver);
    });
    this.#parked = new Lane(shared.nextLane(), shared.options, this);
    this.#parked.isEnabled = false;
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

  /**
   * Watches what the lanes hold now; what comes later does not count, except where stanzas have changed
   * lanes since: then all that is held then.
   *
   * @param anew called when it begins anew for that
   */
  watchHeld(anew: () => void = () => {}): () => HeldState {
    let moves = this.#moves;
    let marks = this.#marks();
    return () => {
      if (moves !== this.#moves) {
        moves = this.#moves;
        marks = this.#marks();
        anew();
      }
      // A lane whose numbers go back has given back all that it held.
      marks = marks.filter(({ lane, last }) => lane.lastGone < last && last <= lane.last);
      if (marks.length === 0) return "gone";
      const isReceived = marks.every(({ lane, last }) => lane.isLive && lane.received >= last);
      return isReceived ? "received" : "open";
    };
  }

  #marks(): { readonly lane: Lane; readonly last: number }[] {
    return Array.from(this.#lanes(), (lane) => ({ lane, last: lane.last }));
  }

  get openLinks(): number {
    return this.#openLinks;
  }

  /** Stanzas held in all lanes. */
  get items(): number {
    return this.#sum((lane) => lane.items);
  }

  get pools(): Iterable<EndpointPool> {
    return this.#endpoints.all;
  }

  /** Stanzas that wait for an endpoint to appear. */
  get parkedItems(): number {
    return this.#parked.items;
  }

  /** True when it is waited for no longer: what is sent comes back at once. */
  get isGivenUp(): boolean {
    return this.#isGivenUp;
  }

  /** True while nobody listens at any of its endpoints: its processes have ended. */
  get isGone(): boolean {
    return this.#endpoints.isGone;
  }

  /** True when that process listens at none of its endpoints, as far as anybody can tell. */
  isNowhere(process: number): boolean {
    return this.#endpoints.isNowhere(process);
  }

  /** True when every connection has ended. */
  get hasEnded(): boolean {
    return this.#endpoints.hasEnded;
  }

  /** Takes `envelope` over. A lane that is full gives it back at once. */
  send(envelope: Envelope): void {
    if (this.#isGivenUp) return this.#giveBack(envelope, "leaving");
    const sender = senderKey(envelope.stanza.from, this.#shared.identity);
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
    return this.#endpoints.refresh();
  }

  /**
   * The datacenter has just linked to us, so it lives: where none of our links is up, there is nothing
   * to wait for before looking where it is and trying again.
   */
  peerArrived(): void {
    if (this.#openLinks > 0 || this.#endpoints.isStopped) return;
    this.#endpoints.connect();
    this.refresh(); // never rejects
  }

  /** Somebody waits for the fate of what is held here: it is not to wait for a node that is cut off. */
  reconsider(): void {
    this.#isReconsidering = true;
  }

  tick(nowMs: number): void {
    const { expireAfterMs } = this.#shared.options;
    // First of all: what is routed anew may be on its way back here, and would escape its end.
    if (this.#goneSinceMs !== undefined && nowMs - this.#goneSinceMs >= expireAfterMs) {
      this.giveBackAll("expired");
    }
    this.#rehomeStranded(nowMs);
    this.#lookAround(nowMs);
    this.#rerouteHomeless(nowMs);
    this.#bindings.tick();
    this.#endpoints.tick(nowMs);
  }

  /** Empties all lanes: what they hold goes back, in order. */
  giveBackAll(reason: ReturnReason): void {
    for (const lane of this.#lanes()) this.#giveBackTaken(lane.takeAll(), reason);
  }

  /** Waits for it no longer: what is held goes back, and so does what comes. */
  giveUp(): void {
    if (this.#isGivenUp) return;
    this.#isGivenUp = true;
    // Not `leaving`: the sessions that are here still are to be reached until they have ended.
    this.stop("superseded", "this node waits no longer");
    this.giveBackAll("leaving");
  }

  /** Says GOODBYE on all links and connects no more. */
  stop(reason: GoodbyeReason, detail: string): void {
    this.#endpoints.stop(reason, detail);
  }

  opened(link: OutgoingLink): void {
    this.#openLinks++;
    this.#goneSinceMs = undefined;
    this.#rerouteAtMs = undefined;
    this.#lookAtMs = undefined;
    this.#pressure.update(link.lane);
    for (const lane of this.#lanes()) lane.forgetRetired(link.lane.id);
    this.#rehomeHomeless();
  }

  closed(link: OutgoingLink): void {
    this.#openLinks = this.#endpoints.countOpen();
    if (this.#openLinks === 0) this.#goneSinceMs ??= this.#shared.clock.monotonicMs();
    if (link.lane.isGone) this.#endpoints.markGone(link);
    // Processes that have ended settle nothing any more: what they had is routed anew at once.
    if (this.isGone) this.giveBackAll(this.#gone);
    this.#pressure.update(link.lane);
    this.#rehomeHomeless();
    // Its node may be gone or have moved: the table may know by now.
    this.#endpoints.refreshSoon();
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

  #listed(isNewHope: boolean): void {
    // What waits gets its full time again.
    if (isNewHope && this.#goneSinceMs !== undefined) {
      this.#goneSinceMs = this.#shared.clock.monotonicMs();
    }
    this.#rehomeHomeless();
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
    if (moved.size === 0 || this.#openLinks > 0 || this.#endpoints.isStopped) return;
    const gone: Envelope[] = [];
    this.#moves++;
    for (const lane of this.#lanes()) {
      for (const { entry, wasSent, wasReceived } of lane.takeAll()) {
        if (wasReceived || !moved.has(entry.to.text)) lane.adopt(entry, wasSent);
        else gone.push(entry.toEnvelope(wasSent));
      }
    }
    // At last, for it may be routed back here at once.
    for (const envelope of gone) this.#giveBack(envelope, this.#gone);
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
    this.#moves++;
    const taken = lane.takeAll();
    const retired = lane.takeRetired();
    this.#pressure.release(lane);
    const told = new Map<number, Set<Lane>>();
    // What the peer has not read from an old connection must not come behind what follows.
    const tell = (target: Lane, id: number) => {
      const targets = told.get(id) ?? new Set();
      if (id === target.id || targets.has(target)) return;
      told.set(id, targets.add(target));
      target.noteRetired(id);
    };
    for (const { entry, wasSent } of taken) {
      const { binding } = entry;
      if (binding.lane === lane) this.#bindings.rebind(binding, this.#chooseLane());
      const target = binding.lane;
      for (const id of retired) tell(target, id); // of what had come to this lane in the same way
      if (wasSent) tell(target, lane.id);
      target.adopt(entry, wasSent);
    }
  }

  /** The lane for a new sender; the parked one while there is none that leads anywhere. */
  #chooseLane(): Lane {
    return this.#endpoints.bestLane() ?? this.#parked;
  }

  #giveBackTaken(taken: readonly TakenEntry[], reason: ReturnReason): void {
    for (const { entry, wasSent, wasReceived } of taken) {
      // What the peer has received and keeps, for a client that is to acknowledge it, is the peer's to
      // see to when we leave: an error from here would be answered by the stanza's arrival. Whoever held
      // it before us goes on doing so, should the peer leave as well.
      if (reason !== "leaving" || !wasReceived) this.#giveBack(entry.toEnvelope(wasSent), reason);
      else if (entry.isHeldBefore) entry.leaveOpen();
      else entry.settle();
    }
  }

  #giveBack(envelope: Envelope, reason: ReturnReason): void {
    this.#shared.metrics.host(this.destination).outgoingReturned.inc();
    this.#shared.handlers.returned(envelope, reason);
  }

  *#lanes(): IterableIterator<Lane> {
    yield this.#parked;
    yield* this.#endpoints.lanes();
  }

  #sum(read: (lane: Lane) => number): number {
    let sum = 0;
    for (const lane of this.#lanes()) sum += read(lane);
    return sum;
  }
}

/** Of what lanes held: nobody has said to have received some of it; peers that live have; it is theirs no more. */
export type HeldState = "open" | "received" | "gone";

/** Recipients that the table is asked about at once; the others with the next look. */
const MAX_LOOKED_FOR = 1000;

/** True when what it holds can go nowhere: it is down and not coming back. */
function isHomeless(lane: Lane): boolean {
  return !lane.isLive && (!lane.isEnabled || lane.isGone) && lane.items > 0;
}
