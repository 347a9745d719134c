import type { Jid } from "../../../xmpp/mod.ts";
import { senderKey } from "../../mod.ts";
import type { Envelope, ReturnReason } from "../../mod.ts";
import type { GoodbyeReason } from "../../wire/mod.ts";
import type { EndpointPool } from "./endpoint_pool.ts";
import type { EndpointPoolsEvents } from "./endpoint_pools.ts";
import { EndpointPools } from "./endpoint_pools.ts";
import type { BoundLane, LaneEntry, StanzaId } from "../lanes/lane_entry.ts";
import type { HeldState } from "../lanes/held_marks.ts";
import { HeldMarks } from "../lanes/held_marks.ts";
import type { LaneEvents, TakenEntry } from "../lanes/lane.ts";
import { Lane } from "../lanes/lane.ts";
import { LanePressure } from "../lanes/lane_pressure.ts";
import { slowForPeer } from "../lanes/slow_for_peer.ts";
import type { LinkDeps } from "../connection/link_deps.ts";
import type { OutgoingLink } from "../connection/outgoing_link.ts";
import type { EndpointAddress } from "../ports.ts";
import { findMoved, recipientsIn, takeMoved } from "./moved_recipients.ts";
import { RoundPace } from "./round_pace.ts";
import { SenderBindings } from "../lanes/sender_bindings.ts";

/**
 * All outgoing links to one destination (another datacenter, or another node of this one). They
 * bind each sender to a lane, and move or give back the stanzas of lanes whose endpoint is gone.
 */
export class HostLinks implements EndpointPoolsEvents, LaneEvents {
  readonly destination: string;
  readonly #shared: LinkDeps;
  readonly #endpoints: EndpointPools;
  readonly #bindings: SenderBindings;
  readonly #pressure: LanePressure;
  /** Holds stanzas that wait for a first endpoint; never connected. */
  readonly #parked: Lane;
  #openLinks = 0;
  /** Monotonic milliseconds since when no link is open; only valid then. */
  #unlinkedMs: number;
  /** False while no lane can hold a stanza and no link is open. */
  #mayHold = false;
  #isGivenUp = false;
  /** Lanes that have taken stanzas of other lanes, until the peer has heard that those end. */
  readonly #heirs = new Set<BoundLane>();
  /** True when stanzas may wait in lanes that are down for good, as no lane was better. */
  #mayBeHomeless = false;
  /** Number of times that stanzas have moved from lane to lane. */
  #moves = 0;
  /**
   * Monotonic milliseconds since when stanzas have waited and no link was open; undefined
   * otherwise.
   */
  #goneSinceMs: number | undefined;
  /** Rounds in which homeless stanzas are routed anew. */
  readonly #reroutes: RoundPace;
  /** Rounds in which recipients that may have moved are looked up. */
  readonly #lookups: RoundPace;
  #isReconsidering = false;
  /** True when presence was given back, for good, since the destination was last reported. */
  #hasMissedPresence = false;
  /** Monotonic milliseconds from which the destination may be reported again. */
  #nextReportMs = -Infinity;
  /** Monotonic milliseconds of the last calls that a link from the destination caused. */
  #hurriedMs = -Infinity;
  /** Incarnation of the process that last linked to us while no link of ours was open. */
  #arrivedProcess: number | undefined;
  /** Monotonic milliseconds until which a process that has linked to us is expected to be reached. */
  #expectedUntilMs = -Infinity;

  constructor(
    destination: string,
    shared: LinkDeps,
    override: readonly EndpointAddress[] | undefined,
  ) {
    this.destination = destination;
    this.#shared = shared;
    this.#unlinkedMs = shared.clock.monotonicMs();
    this.#endpoints = new EndpointPools(destination, {
      shared,
      override,
      isReached: () => this.#openLinks > 0,
    }, this);
    const { maxBindings, bindingIdleMs, tickMs } = shared.options;
    const idleTicks = Math.max(1, Math.ceil(bindingIdleMs / tickMs));
    this.#bindings = new SenderBindings({ maxBindings, idleTicks, budget: shared.budget });
    this.#pressure = new LanePressure((sender, isOver) => {
      shared.events.pressure(sender, isOver);
    });
    this.#reroutes = new RoundPace(shared.options);
    this.#lookups = new RoundPace(shared.options);
    const { budget, carbonOf } = shared;
    this.#parked = new Lane(shared.nextLane(), shared.options, { events: this, budget, carbonOf });
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
   * Watches the stanzas that the lanes hold now, and no later ones. When stanzas have changed
   * lanes, it begins anew with all that is held then.
   *
   * @param anew called when it begins anew for that
   */
  watchHeld(anew: () => void = () => {}): () => HeldState {
    let moves = this.#moves;
    let marks = new HeldMarks(this.#lanes());
    return () => {
      if (moves !== this.#moves) {
        moves = this.#moves;
        marks = new HeldMarks(this.#lanes());
        anew();
      }
      return marks.look();
    };
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

  /** True while no endpoint of the destination is known and no stanza is held for it. */
  get isEmpty(): boolean {
    return this.items === 0 && this.#endpoints.isEmpty;
  }

  /** Stanzas that wait for an endpoint to appear. */
  get parkedItems(): number {
    return this.#parked.items;
  }

  /** True when stanzas for this destination no longer wait: they come back at once. */
  get isGivenUp(): boolean {
    return this.#isGivenUp;
  }

  /**
   * True while every endpoint refuses connections: its processes have ended. False while a new
   * process has linked to us and is about to be reached: it may have sessions already.
   */
  get isGone(): boolean {
    return this.#endpoints.isGone && !this.#isExpected;
  }

  get #isExpected(): boolean {
    return this.#shared.clock.monotonicMs() < this.#expectedUntilMs;
  }

  /** True when that process listens at none of its endpoints, as far as is known. */
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
    const sender = envelope.boundAs ?? senderKey(envelope.stanza.from, this.#shared.identity);
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
    envelope.trace?.note("queued", { place: this.destination, lane: lane.id, number: lane.last });
    if (lane.isOver) this.#pressure.note(lane, binding);
    if (this.#openLinks === 0) {
      this.#mayHold = true;
      this.#goneSinceMs ??= this.#shared.clock.monotonicMs();
    }
  }

  /**
   * Makes a message that was just given to `send` bring its carbon, as `Outbound` says.
   * @param sender of the message
   */
  bringCarbon(sender: Jid, id: StanzaId): boolean {
    const binding = this.#bindings.get(senderKey(sender, this.#shared.identity));
    return binding !== undefined && binding.lane.bringCarbon(id);
  }

  /** Reads the endpoints now, and again after the refresh interval. */
  refresh(): Promise<void> {
    return this.#endpoints.refresh();
  }

  /**
   * Reacts to a link from the destination, which shows that it lives. If none of our links is open,
   * reads its endpoints and connects at once, but only once within `reconnectMaxMs`. A datacenter that
   * links again and again would otherwise set the pace of our calls. Nodes of our own datacenter are
   * trusted: each new process of theirs is called at once.
   *
   * @param process its incarnation
   */
  peerArrived(process: number): void {
    if (this.#endpoints.isStopped) return;
    const { clock, options, scope } = this.#shared;
    // A link to its dead predecessor may still count as open: it stays a successor until that falls.
    if (this.#openLinks > 0) return;
    const isSuccessor = scope === "datacenter" && process !== this.#arrivedProcess;
    this.#arrivedProcess = process;
    const nowMs = clock.monotonicMs();
    if (isSuccessor) this.#expectedUntilMs = nowMs + options.helloTimeoutMs;
    else if (nowMs - this.#hurriedMs < options.reconnectMaxMs) return;
    this.#hurriedMs = nowMs;
    this.#endpoints.connect();
    this.#endpoints.refreshAnew(); // never rejects
  }

  /**
   * Waits no longer for a node that is cut off: other stanzas wait for the fate of those held here.
   */
  reconsider(): void {
    this.#isReconsidering = true;
  }

  /** True while an operator has paused the whole destination. */
  get isPaused(): boolean {
    return this.#endpoints.isPaused;
  }

  /** As `EndpointPools.pause`. Stanzas held here move to other endpoints, or wait. */
  pause(endpoint?: string): number {
    return this.#endpoints.pause(endpoint);
  }

  /** As `EndpointPools.resume`. */
  resume(endpoint?: string): number {
    return this.#endpoints.resume(endpoint);
  }

  /** As `EndpointPools.change`. */
  change(override: readonly EndpointAddress[] | undefined): void {
    this.#endpoints.change(override);
  }

  /** Dials all endpoints that are not connected now, and reads which there are. */
  retry(): void {
    this.#endpoints.connect();
    this.#endpoints.refreshAnew(); // never rejects
  }

  /**
   * Binds senders of crowded lanes to lanes with fewer senders. A sender whose stanzas are held
   * stays, as a later stanza must not overtake them.
   * @returns the number of senders that have moved
   */
  rebalance(): number {
    let moved = 0;
    for (const binding of this.#bindings.idle()) {
      const lane = this.#chooseLane();
      if (lane === binding.lane || lane.senders + 1 >= binding.lane.senders) continue;
      this.#bindings.rebind(binding, lane);
      moved++;
    }
    return moved;
  }

  tick(nowMs: number): void {
    const { expireAfterMs } = this.#shared.options;
    // This comes first: a stanza that the steps below have rerouted may come back here, and would
    // never expire.
    if (this.#goneSinceMs !== undefined && nowMs - this.#goneSinceMs >= expireAfterMs) {
      this.giveBackAll("expired");
    }
    this.#rehomeStranded(nowMs);
    this.#lookAround(nowMs);
    this.#rerouteHomeless(nowMs);
    this.#bindings.tick();
    this.#endpoints.tick(nowMs);
    this.#reportMissed();
  }

  /** Empties all lanes and gives their stanzas back, in order. */
  giveBackAll(reason: ReturnReason): void {
    this.#mayHold = this.#openLinks > 0; // before all else: a stanza may be sent here again at once
    for (const lane of this.#lanes()) this.#giveBackTaken(lane.takeAll(), reason);
  }

  /** Gives the destination up: gives back the stanzas that are held, and all later ones at once. */
  giveUp(): void {
    if (this.#isGivenUp) return;
    this.#isGivenUp = true;
    // Not `leaving`: the sessions here must stay reachable until they have ended.
    this.stop("superseded", "this node waits no longer");
    this.giveBackAll("leaving");
  }

  /** Says GOODBYE on all links and connects no more. */
  stop(reason: GoodbyeReason, detail: string): void {
    this.#endpoints.stop(reason, detail);
  }

  reachChanged(link: OutgoingLink): void {
    if (link.lane.isGone) this.#mayBeHomeless = true;
    this.#endpoints.reachChanged(link);
  }

  opened(link: OutgoingLink): void {
    const { clock, events } = this.#shared;
    const isFirst = this.#openLinks++ === 0;
    if (isFirst) events.linkedAgain?.(this.destination, clock.monotonicMs() - this.#unlinkedMs);
    this.#mayHold = true;
    this.#goneSinceMs = undefined;
    this.#expectedUntilMs = -Infinity;
    this.#reroutes.reset();
    this.#lookups.reset();
    this.#pressure.update(link.lane);
    // Few lanes have taken stanzas of others. Looking at all of them for each link of a datacenter
    // that comes back would take quadratic time.
    for (const lane of this.#heirs) {
      lane.retired.forget(link.lane.id);
      if (lane.retired.isEmpty) this.#heirs.delete(lane);
    }
    if (this.#mayBeHomeless || this.#parked.items > 0) this.#rehomeHomeless();
    this.#reportMissed();
  }

  /**
   * Rehomes stanzas of the endpoint of `link` only: no other lane has become worse. So a datacenter
   * that ends, and closes the links of all its endpoints, costs linear time.
   */
  closed(link: OutgoingLink): void {
    const nowMs = this.#shared.clock.monotonicMs();
    const wasLinked = this.#openLinks > 0;
    this.#openLinks = this.#endpoints.openLinks;
    if (this.#openLinks === 0) this.#goneSinceMs ??= nowMs;
    if (this.#openLinks === 0 && wasLinked) this.#unlinkedMs = nowMs;
    if (link.lane.isGone) this.#endpoints.markGone(link);
    // Processes that have ended settle nothing any more: their stanzas are routed anew at once.
    if (this.isGone && this.#mayHold) this.giveBackAll(this.#gone);
    this.#pressure.update(link.lane);
    this.#rehomeHomeless(this.#endpoints.lanesBeside(link));
    // The endpoint's node may be gone or have moved, and the table may know by now.
    this.#endpoints.refreshSoon();
  }

  restarted(_link: OutgoingLink, taken: readonly TakenEntry[]): void {
    this.#giveBackTaken(taken, "peer-restarted");
  }

  levelChanged(lane: Lane): void {
    this.#pressure.update(lane);
  }

  /** Does nothing, as the parked lane has no link. */
  laneHasWork(): void {}

  laneLevelChanged(lane: Lane): void {
    this.#pressure.update(lane);
  }

  laneSlows(entry: LaneEntry): () => void {
    return this.slows(entry);
  }

  slows(entry: LaneEntry): () => void {
    const { clock, events } = this.#shared;
    return slowForPeer(entry, clock, (sender, isOver) => events.pressure(sender, isOver));
  }

  closing(lane: Lane): void {
    this.#rehome(lane);
  }

  listed(isNewHope: boolean): void {
    // Waiting stanzas get their full time again.
    if (isNewHope && this.#goneSinceMs !== undefined) {
      this.#goneSinceMs = this.#shared.clock.monotonicMs();
    }
    this.#rehomeHomeless();
  }

  /**
   * Moves stanzas from those of `lanes` that are down for good to a better lane, if there is one.
   * @param lanes default: all
   */
  #rehomeHomeless(lanes?: Iterable<Lane>): void {
    if (!this.#endpoints.hasUsable) {
      this.#mayBeHomeless = true;
      return;
    }
    if (lanes === undefined) this.#mayBeHomeless = false;
    for (const lane of lanes ?? this.#lanes()) if (isHomeless(lane)) this.#rehome(lane);
  }

  /**
   * Moves stanzas from a node that has been out of reach for a while to a node that is linked. If
   * the first node still delivers one, the recipient's node recognises the repeat.
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
   * Gives back stanzas from lanes whose endpoints refuse connections: their recipients may have
   * moved to another datacenter or node. A stanza without another place comes back here, until it
   * expires.
   */
  #rerouteHomeless(nowMs: number): void {
    if (nowMs < this.#expectedUntilMs) return;
    if (!this.#reroutes.isRunning) {
      if (this.items === 0) this.#isReconsidering = false;
      if (this.#homeless().length === 0) return;
    }
    if (!this.#reroutes.take(nowMs)) return;
    // All lanes are emptied before any stanza is given back, as that one may be sent here again
    // at once.
    const taken = this.#homeless().map((lane) => lane.takeAll());
    for (const entries of taken) this.#giveBackTaken(entries, this.#gone);
  }

  /**
   * Looks up the recipients of stanzas held here while no node of the destination is linked, though
   * one may live. Stanzas whose recipients have moved are routed anew.
   */
  #lookAround(nowMs: number): void {
    const { whereabouts } = this.#shared.events;
    if (whereabouts === undefined || this.#openLinks > 0 || this.items === 0) return;
    if (!this.#lookups.take(nowMs)) return;
    findMoved(recipientsIn(this.#lanes()), this.destination, whereabouts)
      .then((moved) => this.#rerouteMoved(moved))
      .catch(() => {}); // `whereabouts` never rejects
  }

  #rerouteMoved(moved: ReadonlySet<string>): void {
    if (moved.size === 0 || this.#openLinks > 0 || this.#endpoints.isStopped) return;
    this.#moves++;
    // All are taken first, as a stanza may be routed back here at once.
    for (const envelope of takeMoved(this.#lanes(), moved)) this.#giveBack(envelope, this.#gone);
  }

  /** Returns lanes whose stanzas can go nowhere, or must not wait any longer. */
  #homeless(): readonly Lane[] {
    const isCutOff = this.#isReconsidering && this.#openLinks === 0;
    return [...this.#lanes()].filter((lane) => isHomeless(lane) || (isCutOff && lane.items > 0));
  }

  /** The reason with which stanzas of a process that has ended come back. */
  get #gone(): ReturnReason {
    return this.#shared.scope === "datacenter" ? "peer-restarted" : "peer-gone";
  }

  /** Moves all stanzas of `lane` to other lanes, keeping each sender's order. */
  #rehome(lane: Lane): void {
    this.#moves++;
    const taken = lane.takeAll();
    const retired = lane.retired.takeAll();
    this.#pressure.release(lane);
    const told = new Map<number, Set<BoundLane>>();
    // Stanzas that the peer has not read from an old connection must not come behind later ones.
    const tell = (target: BoundLane, id: number) => {
      const targets = told.get(id) ?? new Set();
      if (id === target.id || targets.has(target)) return;
      told.set(id, targets.add(target));
      target.noteRetired(id);
      this.#heirs.add(target);
    };
    for (const { entry, wasSent } of taken) {
      const { binding } = entry;
      if (binding.lane === lane) this.#bindings.rebind(binding, this.#chooseLane());
      const target = binding.lane;
      for (const id of retired) tell(target, id); // lanes whose stanzas had moved to this one
      if (wasSent) tell(target, lane.id);
      target.adopt(entry, wasSent);
    }
  }

  /** Returns the lane for a new sender; the parked one while there is no usable endpoint. */
  #chooseLane(): Lane {
    return this.#endpoints.bestLane() ?? this.#parked;
  }

  #giveBackTaken(taken: readonly TakenEntry[], reason: ReturnReason): void {
    for (const { entry, wasSent, wasReceived } of taken) {
      // The peer owns a stanza that it has received and keeps for its client's acknowledgement. If
      // this node leaves, an error from here would contradict the delivery. A node that held the
      // stanza before goes on holding it, in case the peer leaves as well.
      if (reason !== "leaving" || !wasReceived) this.#giveBack(entry.toEnvelope(wasSent), reason);
      else if (entry.isHeldBefore) entry.leaveOpen();
      else entry.settle();
    }
  }

  #giveBack(envelope: Envelope, reason: ReturnReason): void {
    this.#shared.metrics.host(this.destination).outgoingReturned.inc();
    const isForGood = reason === "full" || reason === "expired";
    if (isForGood && envelope.stanza.kind === "presence") {
      this.#hasMissedPresence = true;
      this.#shared.events.lostPresence?.(this.destination, envelope);
    }
    this.#shared.events.returned(envelope, reason);
  }

  /**
   * Reports that the destination has missed presence, once it is linked and its lanes have room for
   * what it is told then. Not again within `expireAfterMs`: a destination that reads slowly would
   * otherwise be told all the time.
   */
  #reportMissed(): void {
    const { clock, options, events } = this.#shared;
    const nowMs = clock.monotonicMs();
    if (!this.#hasMissedPresence || this.#openLinks === 0 || nowMs < this.#nextReportMs) return;
    for (const lane of this.#lanes()) if (lane.isOver) return;
    this.#hasMissedPresence = false;
    this.#nextReportMs = nowMs + options.expireAfterMs;
    events.missedPresence?.(this.destination);
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

/** True for a lane with stanzas that can go nowhere: it is down and not coming back. */
function isHomeless(lane: Lane): boolean {
  return !lane.isLive && (!lane.isEnabled || lane.isGone) && lane.items > 0;
}
