import type { CancelTimer } from "../../base/mod.ts";
import type { FullJid } from "../jid/jid.ts";
import type { Stanza } from "../stanza/stanza.ts";
import { toHandled } from "./counter.ts";
import type { Delivery } from "./delivery.ts";
import { OwnDelivery } from "./delivery.ts";
import { NotedCarbons } from "./noted_carbons.ts";
import type { ArrivedSession, Relay } from "./moving_session.ts";
import { REQUEST_XML } from "./sm_xml.ts";
import { StreamEnds } from "./stream_ends.ts";
import type { StreamManagement } from "./stream_management.ts";
import { UnackedQueue } from "./unacked_queue.ts";

/** Milliseconds in which a second carbon of a message may still come straight after the first one. */
const CARBONS_MS = 2_000;
/** Window size from which on the window is unbounded. */
const MAX_WINDOW = 256;

/** The stream that carries a managed session at the moment. */
export interface AckLink {
  /** Monotonic milliseconds in which the client was read. While it is not read, its answers go unseen. */
  readonly readingMs: number;
  sendNonza(xml: string): void;
  /** Writes a stanza; false when the client must read first: `drained` follows. */
  write(stanza: Stanza): boolean;
}

/** Callbacks from a session's acknowledgements to the session. */
export interface SessionAcksEvents {
  /** The session keeps more than it may. */
  overflowed(): void;
  /** The client has acknowledged nothing for too long. */
  unresponsive(): void;
  /** The session should check whether the session table has its full JID elsewhere by now. */
  lookAround(): void;
}

/** Dependencies of one session's acknowledgements. */
export interface SessionAcksDeps {
  readonly management: StreamManagement;
  readonly events: SessionAcksEvents;
  /** Full JID of the session. Its queue counts against its account's share of the budget. */
  readonly jid: FullJid;
  /** Stanzas that the client had acknowledged at another node. @default 0 */
  readonly acknowledged?: number;
}

/**
 * The stanzas that one session sends its client, until the client has acknowledged them (XEP-0198 §4),
 * over all the streams that carry the session. Writes them, keeps them and asks for acknowledgements. It
 * has at most one timer, and none while nothing is kept.
 */
export class SessionAcks {
  readonly #management: StreamManagement;
  readonly #events: SessionAcksEvents;
  readonly #jid: FullJid;
  readonly #queue: UnackedQueue;
  readonly #ends: StreamEnds;
  #link: AckLink | undefined;
  /** Stanzas written since the last `<r/>`. */
  #sinceRequest = 0;
  /** Time of the unanswered `<r/>`, as the link's `readingMs`; undefined without one. */
  #requestedMs: number | undefined;
  #lookedMs = 0;
  #isOverTold = false;
  #cancelTick: CancelTimer | undefined;
  #isOver = false;
  #isSettling = false;
  /** Receives the kept stanzas for another node; undefined while the session is this node's. */
  #relay: Relay | undefined;
  /** Acknowledged stanzas at the start of the relaying. */
  #relayBase = 0;
  /**
   * Stanzas that came directly, and must wait for those that follow from the old node; undefined when
   * none follow.
   */
  #heldBack: UnackedQueue | undefined;
  /** Carbons that have followed lately. */
  #followedCarbons: NotedCarbons | undefined;
  /** Carbons that came straight while the old node, out of reach, may still send them, too. */
  #straightCarbons: NotedCarbons | undefined;
  /** Monotonic milliseconds until when those that have followed count. */
  #carbonsUntilMs = Infinity;
  /** Limit on unacknowledged writes; small while one of them may end the stream (`StreamEnds`). */
  #window = Infinity;
  /** Time of the last write while `#window` was bounded. */
  #writtenMs = -Infinity;

  constructor(link: AckLink | undefined, deps: SessionAcksDeps) {
    this.#link = link;
    this.#management = deps.management;
    this.#events = deps.events;
    this.#jid = deps.jid;
    const { options, budget, isUserHost } = deps.management;
    const { jid, acknowledged = 0 } = deps;
    this.#queue = new UnackedQueue(options, { acknowledged, budget, jid, isUserHost });
    this.#ends = new StreamEnds(deps.management, jid, this.#queue);
    if (link !== undefined) this.#chooseWindow();
  }

  /** True once `end` has emptied the queue. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Stanzas that the client has not acknowledged. */
  get unacknowledged(): number {
    return this.#queue.items;
  }

  /** Stanzas that were written to the client and not acknowledged. */
  get unacknowledgedWrites(): number {
    return this.#queue.unacknowledgedWrites;
  }

  /**
   * Returns the reason why a stanza is refused. `queue`: a connected client must first acknowledge
   * others. (Without a connection nobody will acknowledge. Then the session ends when it keeps more than
   * it may.) `budget`: the node's budget for queued stanzas, or a share of it, has no room.
   */
  refusal(stanza: Stanza, isOwed: boolean): "queue" | "budget" | undefined {
    const isForLong = this.#link === undefined;
    if (!isForLong && this.#queue.isFullFor(stanza.bytes.length, isOwed)) return "queue";
    return this.#queue.hasBudgetFor(stanza, { isOwed, isForLong }) ? undefined : "budget";
  }

  /** True when the session keeps more than it may. */
  get isFull(): boolean {
    return this.#queue.isOver;
  }

  /** Cost of the unacknowledged stanzas, in bytes. */
  get unacknowledgedBytes(): number {
    return this.#queue.bytes;
  }

  /** Stanzas that the client has acknowledged, as written in `h`. */
  get acknowledgedH(): number {
    return toHandled(this.#queue.acknowledgedCount);
  }

  /** Highest `h` that the client may send. */
  get sentCount(): number {
    return this.#queue.sentCount;
  }

  /**
   * Keeps a stanza for the client, and writes it as soon as possible.
   * @param stanza as the client gets it, on this stream and on those that resume it; others may have it
   *   in other words in `delivery`
   * @returns false when it waits for those that follow from the session's old node
   */
  deliver(stanza: Stanza, delivery: Delivery | undefined): boolean {
    const kept = delivery ?? new OwnDelivery(stanza);
    this.#forgetOldCarbons();
    if (this.#heldBack === undefined && this.#followedCarbons?.take(kept) === true) return true;
    kept.retain();
    // A stanza from a domain, even ours, answers a request that the client sent from here.
    if (this.#heldBack === undefined || stanza.from.localpart === "") {
      this.#straightCarbons?.note(kept);
      this.#keep(kept, stanza);
      return true;
    }
    this.#heldBack.push(kept, stanza);
    this.#heldBack.detach();
    if (this.#heldBack.isOver) this.#overflow();
    return false;
  }

  /** Makes new stanzas wait for those that follow from the session's old node. */
  holdBack(): void {
    // The stanza enters the queue soon. Until then other nodes keep it too.
    const { options, budget, isUserHost } = this.#management;
    const limits = { ...options, maxUnsettled: Infinity };
    this.#heldBack ??= new UnackedQueue(limits, { budget, jid: this.#jid, isUserHost });
    this.#followedCarbons ??= new NotedCarbons();
  }

  /** Kept stanzas, and those that wait for others to follow. */
  get all(): readonly Delivery[] {
    return [...this.#queue.all, ...this.#heldBack?.all ?? []];
  }

  /**
   * Returns the kept stanzas that the relay has not received, and those that wait for others to follow.
   * @param hasFollowed true for one that the session has got on another way, and does not wait for
   */
  waiting(hasFollowed: (delivery: Delivery) => boolean): readonly Delivery[] {
    const kept = this.#queue.all;
    const unrelayed = this.#relay === undefined ? kept : kept.slice(this.#queue.relayed);
    const heldBack = this.#heldBack?.all ?? [];
    return [...unrelayed, ...heldBack.filter((each) => !hasFollowed(each))];
  }

  #forgetOldCarbons(): void {
    if (this.#followedCarbons === undefined) return;
    const isOld = this.#management.clock.monotonicMs() >= this.#carbonsUntilMs;
    if (isOld) this.#followedCarbons = undefined;
  }

  /** Keeps a stanza that followed from the old node. */
  follow(delivery: Delivery): void {
    delivery.retain();
    if (this.#straightCarbons?.take(delivery) === true) return delivery.acknowledged();
    this.#followedCarbons?.note(delivery);
    this.#keep(delivery, this.#management.told(delivery));
  }

  /**
   * Ends the wait for stanzas that follow from the old node.
   * @param arrived knows the stanzas that did, and have their place in the order there
   * @param isSure false when more may still follow
   */
  caughtUp(arrived: Pick<ArrivedSession, "hasFollowed" | "kept">, isSure: boolean): void {
    this.#straightCarbons = isSure ? undefined : this.#straightCarbons ?? new NotedCarbons();
    if (this.#heldBack === undefined) return;
    const heldBack = this.#heldBack.takeAllTold();
    const carbons = this.#followedCarbons;
    this.#heldBack = undefined;
    this.#carbonsUntilMs = this.#management.clock.monotonicMs() + CARBONS_MS;
    for (const [kept, told] of heldBack) {
      if (arrived.hasFollowed(kept)) this.#repeated(kept, told);
      else if (carbons!.take(kept)) kept.acknowledged(); // held back with them
      else {
        arrived.kept(kept);
        this.#straightCarbons?.note(kept);
        this.#keep(kept, told);
      }
    }
  }

  /**
   * Takes a stanza of which the session has, or has had, a copy. The one that is answered for is kept: a
   * copy of it would be dropped if the session ended now.
   * @returns false when nothing of it is kept any more: the stanza is the caller's
   */
  repeated(told: Stanza, delivery: Delivery): boolean {
    const isHeldBack = this.#heldBack?.hasCopyOf(delivery) === true;
    if (!isHeldBack && !this.#queue.hasCopyOf(delivery)) return false;
    delivery.retain();
    if (isHeldBack) replaceIn(this.#heldBack!, delivery, told);
    else this.#repeated(delivery, told);
    return true;
  }

  #repeated(kept: Delivery, told: Stanza): void {
    // The node that the session has gone to puts the stanza in the place of the copy.
    if (replaceIn(this.#queue, kept, told) === "relayed") this.#keep(kept, told);
  }

  #keep(kept: Delivery, told: Stanza): void {
    if (this.#queue.push(kept, told)) this.#management.metrics.released.inc();
    if (this.#link !== undefined) this.#write(this.#link);
    else this.#queue.detach();
    if (this.#relay !== undefined) this.relayMore();
    this.#watch();
    if (this.#queue.isOver) this.#overflow();
  }

  #overflow(): void {
    if (this.#isOverTold) return;
    this.#isOverTold = true;
    this.#events.overflowed();
  }

  /** The client has read what was written. */
  drained(): void {
    if (this.#link !== undefined) this.#write(this.#link);
  }

  /** Asks the client for an acknowledgement now. */
  ask(): void {
    if (this.#link !== undefined && this.#queue.unacknowledgedWrites > 0) this.#request(this.#link);
  }

  /**
   * Writes nothing more, and asks for outstanding acknowledgements. Before shutdown, queued stanzas are
   * routed again instead.
   */
  settleUp(): void {
    this.#isSettling = true;
    this.ask();
  }

  /**
   * Handles the client's `<a/>`.
   * @returns false when it acknowledges more than it was sent
   */
  acknowledged(h: number): boolean {
    const before = this.#queue.acknowledgedCount;
    const isPossible = this.#queue.acknowledge(h, settleOne);
    if (!isPossible) return false;
    this.#requestedMs = undefined;
    if (this.#window !== Infinity && this.#queue.acknowledgedCount > before) this.#widen();
    if (this.#queue.items === 0) {
      this.#endTick();
      this.#forgetOldCarbons();
    }
    return true;
  }

  /**
   * Handles the end of the stream or connection by the client. Called before `unlink` or `end`.
   * @param isRefusal true when the client has said that it cannot accept what it was sent
   */
  streamEnded(isRefusal: boolean): void {
    if (this.#link !== undefined) this.#ends.ended(isRefusal, this.#writtenMs);
  }

  /** Handles the loss of the connection; the session keeps later stanzas. */
  unlink(): void {
    this.#link = undefined;
    this.#requestedMs = undefined;
    this.#sinceRequest = 0;
    this.#queue.detach();
    this.#watch();
  }

  /**
   * Prepares to continue on another stream, whose client has handled `h` stanzas; sends nothing yet.
   * @returns false, and nothing happens, when `h` is impossible
   */
  canResume(h: number): boolean {
    if (!this.#queue.acknowledge(h, settleOne)) return false;
    this.#ends.judge();
    return true;
  }

  #chooseWindow(): void {
    this.#window = this.#ends.began() ? 1 : Infinity;
    this.#writtenMs = -Infinity;
  }

  /** Widens the window after an acknowledgement. */
  #widen(): void {
    this.#window *= 2;
    if (this.#queue.items === 0 || this.#window > MAX_WINDOW) this.#window = Infinity;
    if (this.#link !== undefined) this.#write(this.#link);
  }

  /** Carries the session over `link` from now on, and sends everything unacknowledged again. */
  resume(link: AckLink): void {
    this.#link = link;
    this.#requestedMs = undefined;
    this.#sinceRequest = 0;
    this.#chooseWindow();
    this.#queue.rewind();
    this.#endTick();
    this.#write(link);
    if (this.#sinceRequest > 0) this.#request(link);
    this.#watch();
  }

  /** Kept stanzas that the relay has not received yet. */
  get unrelayed(): number {
    return this.#queue.items - this.#queue.relayed;
  }

  /**
   * Gives the kept and all later stanzas to `relay`, except the first `from` since the first relay
   * began.
   */
  relay(relay: Relay, from: number): void {
    if (this.#relay === undefined) this.#relayBase = this.#queue.acknowledgedCount;
    this.#relay = relay;
    this.#endTick();
    this.#queue.detach();
    this.#queue.rewindRelay(Math.max(0, from - this.settledByRelay));
    this.relayMore();
  }

  /** Continues with the stanzas that the relay could not take. */
  relayMore(): void {
    const relay = this.#relay;
    if (relay === undefined) return;
    const queue = this.#queue;
    for (let next = queue.nextToRelay; next !== undefined; next = queue.nextToRelay) {
      if (!relay.write(next, this.settledByRelay + queue.relayed + 1)) return;
      queue.relayedNext();
    }
  }

  /** Reports that the first `count` relayed stanzas are settled at the other node. */
  relayed(count: number): void {
    this.#queue.settle(Math.max(0, count - this.settledByRelay), settleOne);
  }

  /** Ends the relaying: the session is this node's again. */
  endRelay(): void {
    this.#relay = undefined;
    this.#queue.rewindRelay(0);
    this.#watch();
  }

  /** Stanzas that were settled since the first relay began. */
  get settledByRelay(): number {
    return this.#queue.acknowledgedCount - this.#relayBase;
  }

  /** Ends the session; returns the unacknowledged stanzas, in order, to the caller. */
  end(): Delivery[] {
    this.#ends.judge();
    this.#isOver = true;
    this.#link = undefined;
    this.#relay = undefined;
    this.#endTick();
    const heldBack = this.#heldBack?.takeAll() ?? [];
    this.#heldBack = undefined;
    return [...this.#queue.takeAll(), ...heldBack];
  }

  /** Writes queued stanzas, as far as the client reads. */
  #write(link: AckLink): void {
    if (this.#isSettling) return;
    const queue = this.#queue;
    for (let next = queue.nextToWrite; next !== undefined; next = queue.nextToWrite) {
      if (queue.unacknowledgedWrites >= this.#window) return;
      if (!link.write(queue.toldOf(next))) return;
      queue.wrote();
      if (++this.#sinceRequest >= this.#management.options.ackFreq) this.#request(link);
      if (this.#window !== Infinity) this.#wroteCarefully(link);
    }
  }

  /** After a write in a bounded window: asks for an acknowledgement as soon as the window is full. */
  #wroteCarefully(link: AckLink): void {
    this.#writtenMs = this.#management.clock.monotonicMs();
    const isLast = this.#queue.unacknowledgedWrites >= this.#window || this.#queue.isWritten;
    if (isLast && this.#sinceRequest > 0) this.#request(link);
  }

  #request(link: AckLink): void {
    this.#sinceRequest = 0;
    this.#requestedMs ??= link.readingMs;
    link.sendNonza(REQUEST_XML);
  }

  #watch(): void {
    if (this.#cancelTick !== undefined || this.#isOver || this.#relay !== undefined) return;
    if (this.#queue.items === 0 && this.#link !== undefined) return;
    const { clock, options } = this.#management;
    const delayMs = this.#link === undefined ? options.movedCheckMs : options.ackDelayMs;
    this.#cancelTick = clock.after(delayMs, () => {
      this.#cancelTick = undefined;
      this.#tick();
    });
  }

  #endTick(): void {
    this.#cancelTick?.();
    this.#cancelTick = undefined;
  }

  /** Asks, or reports a client that is unresponsive, when stanzas stay unacknowledged. */
  #tick(): void {
    const { clock, options } = this.#management;
    this.#queue.detach();
    const nowMs = clock.monotonicMs();
    const link = this.#link;
    if (link !== undefined) this.#write(link);
    if (link !== undefined && this.#requestedMs === undefined) {
      if (this.#queue.unacknowledgedWrites > 0) this.#request(link);
    } else if (nowMs - this.#lookedMs >= options.movedCheckMs) {
      this.#lookedMs = nowMs;
      this.#events.lookAround();
    }
    const askedMs = this.#requestedMs;
    if (
      link !== undefined && askedMs !== undefined &&
      link.readingMs - askedMs >= options.ackTimeoutMs
    ) {
      this.#requestedMs = undefined;
      this.#events.unresponsive();
    }
    this.#watch();
  }
}

/**
 * Makes a queue keep a stanza in the place of its copy, which is done with. Without one the stanza is.
 * @returns "relayed" when another node has the copy: nothing happens
 */
function replaceIn(queue: UnackedQueue, kept: Delivery, told: Stanza): "relayed" | undefined {
  const copy = queue.replaceCopy(kept, told);
  if (copy === "relayed") return copy;
  if (copy === undefined) kept.acknowledged();
  else kept.takePlaceOf?.(copy); // only what has copies finds one
  return undefined;
}

function settleOne(delivery: Delivery): void {
  delivery.acknowledged();
}
