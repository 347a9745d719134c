import type { CancelTimer } from "../../base/mod.ts";
import type { FullJid } from "../jid.ts";
import type { Stanza } from "../stanza.ts";
import type { StanzaFate } from "../stream/stanza_sink.ts";
import { toHandled } from "./counter.ts";
import type { Delivery } from "./delivery.ts";
import { OwnDelivery } from "./delivery.ts";
import { HandledCount } from "./handled_count.ts";
import type { Relay } from "./moving_session.ts";
import { ackXml, REQUEST_XML } from "./sm_xml.ts";
import type { StreamManagement } from "./stream_management.ts";
import { UnackedQueue } from "./unacked_queue.ts";

/** From so many stanzas at once on there is no bound any more. */
const MAX_WINDOW = 256;

/** What carries a managed session at the moment. */
export interface AckLink {
  /** Monotonic milliseconds in which the client was read: what it answers meanwhile is not seen. */
  readonly readingMs: number;
  sendNonza(xml: string): void;
  /** Writes a stanza; false when the client has to read first: `drained` follows. */
  write(stanza: Stanza): boolean;
}

/** What a managed session is told by its bookkeeping. */
export interface AckOwner {
  /** It keeps more than it may. */
  overflowed(): void;
  /** The client has not acknowledged anything for too long. */
  unresponsive(): void;
  /** Time to look whether the user's session lives somewhere else by now. */
  lookAround(): void;
}

/** Terms of one managed session. */
export interface AckTerms {
  readonly management: StreamManagement;
  readonly owner: AckOwner;
  /** Whose session it is: its account's share of the budget is what the queue counts for. */
  readonly jid: FullJid;
  /** How far the session was at another node. @default nothing was exchanged */
  readonly start?: { readonly received: number; readonly acknowledged: number };
}

/**
 * The acknowledgements of one session, both ways (XEP-0198 §4), over all the streams that carry it:
 * keeps what the client has not acknowledged, asks for acknowledgements, and knows how many of the
 * client's stanzas it may forget. One timer at most in each direction, none while nothing is open.
 *
 * A stanza that its client cannot read ends the stream, and would end each one that it is written to
 * again. To find it among the others, an account that `StreamSuspects` has been warned of gets what it is
 * sent in small steps: one stanza alone, then, as they are acknowledged, two, four and so on.
 * A stream that ends by the client's doing while one stanza alone is out there counts against that
 * stanza, if the client refuses it by a stream error or goes within `suspectWithinMs`. A stanza that the
 * client then turns out to have handled was not the cause. After `maxStreamEnds` it is given up.
 */
export class SessionAcks implements StanzaFate {
  readonly #management: StreamManagement;
  readonly #owner: AckOwner;
  readonly #jid: FullJid;
  readonly #queue: UnackedQueue;
  readonly #handled: HandledCount;
  #link: AckLink | undefined;
  /** Stanzas written since an acknowledgement was asked for. */
  #sinceRequest = 0;
  /** When the one that is owed was asked for, as the link's `readingMs`; undefined when none is. */
  #requestedMs: number | undefined;
  #lookedMs = 0;
  #isOverTold = false;
  #cancelTick: CancelTimer | undefined;
  #cancelHold: CancelTimer | undefined;
  /** Stanzas that the client asked about, and those that it was told of. */
  #asked = 0;
  #told = 0;
  #isOver = false;
  #isSettling = false;
  /** Takes what is kept, for another node; undefined while the session is this one's. */
  #relay: Relay | undefined;
  /** Stanzas that were acknowledged when the relaying began. */
  #relayBase = 0;
  /** What has come by another way than that which is to follow first; undefined: nothing follows. */
  #heldBack: UnackedQueue | undefined;
  #onCovered: (() => void) | undefined;
  /** Stanzas that may be written and not acknowledged; few while one of them may end the stream. */
  #window = Infinity;
  /** When the last one was written while `#window` was bounded. */
  #writtenMs = -Infinity;
  /** Stanzas that were acknowledged when the present stream began to carry the session. */
  #acknowledgedBefore = 0;
  /** The only one that can have ended the last stream. */
  #suspect: Delivery | undefined;

  constructor(link: AckLink | undefined, terms: AckTerms) {
    this.#link = link;
    this.#management = terms.management;
    this.#owner = terms.owner;
    this.#jid = terms.jid;
    const { options, budget, isUserHost } = terms.management;
    const { jid } = terms;
    const acknowledged = terms.start?.acknowledged ?? 0;
    this.#queue = new UnackedQueue(options, { acknowledged, budget, jid, isUserHost });
    this.#handled = new HandledCount(options.ackHoldMs, terms.start?.received);
    this.#asked = this.#told = this.#handled.received;
    if (link !== undefined) this.#chooseWindow();
  }

  /** True once the queue has been taken away. */
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
   * Why a stanza is not taken: `queue` when a client with a connection has first to acknowledge others
   * (without one there is nobody to wait for: then the session ends when it keeps more than it may);
   * `budget` when all that waits for somebody leaves no room for it, or none in a share of that.
   */
  refusal(stanza: Stanza, isOwed: boolean): "queue" | "budget" | undefined {
    const isForLong = this.#link === undefined;
    if (!isForLong && this.#queue.isFullFor(stanza.bytes.length, isOwed)) return "queue";
    return this.#queue.hasBudgetFor(stanza, { isOwed, isForLong }) ? undefined : "budget";
  }

  /** True when it keeps more than it may. */
  get isFull(): boolean {
    return this.#queue.isOver;
  }

  /** Bytes that they cost. */
  get unacknowledgedBytes(): number {
    return this.#queue.bytes;
  }

  /** How many of the client's stanzas this session has taken, as written in `h`. */
  get receivedH(): number {
    return toHandled(this.#handled.received);
  }

  /** Of those, how many the client may forget even if this process dies, as written in `h`. */
  get coveredH(): number {
    return this.#handled.h;
  }

  get isCovered(): boolean {
    return this.#handled.covered === this.#handled.received;
  }

  /** Stanzas that the client has acknowledged, as written in `h`. */
  get acknowledgedH(): number {
    return toHandled(this.#queue.acknowledgedCount);
  }

  /** What the client may acknowledge at most, as written in `h`. */
  get sentCount(): number {
    return this.#queue.sentCount;
  }

  /** Keeps a stanza for the client, and writes it when it can be. */
  deliver(stanza: Stanza, delivery: Delivery | undefined): void {
    const kept = delivery ?? new OwnDelivery(stanza);
    kept.retain();
    // What a domain says, ours among them, answers what the client has asked from here.
    if (this.#heldBack === undefined || stanza.from.localpart === "") this.#keep(kept);
    else {
      kept.detach();
      this.#heldBack.push(kept);
      if (this.#heldBack.isOver) this.#overflow();
    }
  }

  /** What comes is to wait for what follows from the node where the session was. */
  holdBack(): void {
    // It goes into the queue soon, and is everybody's to keep until then.
    const { options, budget, isUserHost } = this.#management;
    const limits = { ...options, maxUnsettled: Infinity };
    this.#heldBack ??= new UnackedQueue(limits, { budget, jid: this.#jid, isUserHost });
  }

  /** Keeps a stanza that has followed. */
  follow(delivery: Delivery): void {
    delivery.retain();
    this.#keep(delivery);
  }

  /** Nothing follows that would have to go before what has come since. */
  caughtUp(): void {
    const heldBack = this.#heldBack?.takeAll() ?? [];
    this.#heldBack = undefined;
    for (const kept of heldBack) this.#keep(kept);
  }

  #keep(kept: Delivery): void {
    if (this.#queue.push(kept)) this.#management.metrics.released.inc();
    if (this.#link !== undefined) this.#write(this.#link);
    else this.#queue.detach();
    if (this.#relay !== undefined) this.relayMore();
    this.#watch();
    if (this.#queue.isOver) this.#overflow();
  }

  #overflow(): void {
    if (this.#isOverTold) return;
    this.#isOverTold = true;
    this.#owner.overflowed();
  }

  /** The client has read what was written. */
  drained(): void {
    if (this.#link !== undefined) this.#write(this.#link);
  }

  /** Counts one stanza of the client; gives its number, by which its fate is reported. */
  receive(): number {
    return this.#handled.receive();
  }

  /** The stanza received last was passed on; when its fate is open, its time begins. */
  passedOn(): void {
    if (this.#handled.covered === this.#handled.received) return;
    this.#handled.hold(this.#management.clock.monotonicMs());
    this.#armHold();
  }

  settle(number: number): void {
    this.#handled.cover(number);
    if (this.#asked > this.#told) this.#tellWhenCovered();
    if (this.#onCovered !== undefined && this.isCovered) this.#onCovered();
  }

  /** The client may forget all that it has sent: what is open still is seen to, while this process lives. */
  coverAll(): void {
    this.#management.metrics.unprotected.inc(this.#handled.coverAll());
  }

  /** Calls `told` when all that the client sent is covered; undefined: nobody waits for it. */
  watchCovered(told: (() => void) | undefined): void {
    this.#onCovered = told;
  }

  held(number: number): void {
    this.settle(number);
  }

  /** Asks the client for an acknowledgement of what it was sent, now. */
  ask(): void {
    if (this.#link !== undefined && this.#queue.unacknowledgedWrites > 0) this.#request(this.#link);
  }

  /** Writes nothing more, and asks for what is owed: before the end, what waits goes another way. */
  settleUp(): void {
    this.#isSettling = true;
    this.ask();
  }

  /** The client sent `<r/>`. */
  requested(): void {
    this.#asked = this.#handled.received;
    this.#tell();
  }

  /**
   * The client sent `<a/>`.
   * @returns false when it acknowledges what it was never sent
   */
  acknowledged(h: number): boolean {
    const before = this.#queue.acknowledgedCount;
    const isPossible = this.#queue.acknowledge(h, settleOne);
    if (!isPossible) return false;
    this.#requestedMs = undefined;
    if (this.#window !== Infinity && this.#queue.acknowledgedCount > before) this.#widen();
    if (this.#queue.items === 0) this.#endTick();
    return true;
  }

  /**
   * The client has ended its stream or its connection. To be called before `unlink` or `end`.
   * @param isRefusal true when it has said that it cannot accept what it was sent
   */
  streamEnded(isRefusal: boolean): void {
    const { options, suspects, clock } = this.#management;
    const written = this.#queue.unacknowledgedWrites;
    if (options.maxStreamEnds === 0 || this.#link === undefined || written === 0) return;
    const nowMs = clock.monotonicMs();
    const account = this.#jid.bare.text;
    if (isRefusal) suspects.refused(account, nowMs);
    else if (this.#queue.acknowledgedCount === this.#acknowledgedBefore) {
      suspects.endedBarren(account, nowMs);
    }
    if (written > 1) return;
    const isSoon = nowMs - this.#writtenMs < options.suspectWithinMs;
    if (isRefusal || isSoon) this.#suspect = this.#queue.first;
  }

  /** Tells the client once more what it may forget, before its stream ends. */
  farewell(): void {
    this.#tell();
  }

  /** The connection is gone; what comes is kept. */
  unlink(): void {
    this.#link = undefined;
    this.#requestedMs = undefined;
    this.#sinceRequest = 0;
    this.#queue.detach();
    this.#watch();
  }

  /**
   * Goes on on another stream, whose client has handled `h` stanzas: nothing is sent yet.
   * @returns false, and nothing happens, when `h` cannot be
   */
  canResume(h: number): boolean {
    if (!this.#queue.acknowledge(h, settleOne)) return false;
    this.#judge();
    return true;
  }

  /** Gives up the stanza that ended the last stream, if it has ended as many as it may. */
  #judge(): void {
    const suspect = this.#suspect;
    this.#suspect = undefined;
    if (suspect === undefined || this.#queue.first !== suspect) return;
    const { options, suspects, clock } = this.#management;
    const account = this.#jid.bare.text;
    const streams = suspects.blame(account, suspect.stanza, clock.monotonicMs());
    if (streams < options.maxStreamEnds) return;
    this.#queue.dropFirst();
    this.#management.giveUp(suspect, { jid: this.#jid, streams });
  }

  #chooseWindow(): void {
    const { suspects, clock } = this.#management;
    const isWarned = suspects.isWarned(this.#jid.bare.text, clock.monotonicMs());
    this.#window = isWarned ? 1 : Infinity;
    this.#acknowledgedBefore = this.#queue.acknowledgedCount;
    this.#writtenMs = -Infinity;
  }

  /** The client has acknowledged something: more may be on its way at once. */
  #widen(): void {
    this.#window *= 2;
    if (this.#queue.items === 0 || this.#window > MAX_WINDOW) this.#window = Infinity;
    if (this.#link !== undefined) this.#write(this.#link);
  }

  /** `link` carries the session from now on: everything unacknowledged is sent again. */
  resume(link: AckLink): void {
    this.#link = link;
    // The client sends again what it is not told to be here: it is, so it must not.
    this.coverAll();
    this.#asked = this.#told = this.#handled.received;
    this.#requestedMs = undefined;
    this.#sinceRequest = 0;
    this.#chooseWindow();
    this.#queue.rewind();
    this.#endTick();
    this.#write(link);
    if (this.#sinceRequest > 0) this.#request(link);
    this.#watch();
  }

  /** Stanzas kept that the relay has not been given. */
  get unrelayed(): number {
    return this.#queue.items - this.#queue.relayed;
  }

  /** Gives what is kept, and what comes, to `relay`, behind the first `from` since this first began. */
  relay(relay: Relay, from: number): void {
    if (this.#relay === undefined) this.#relayBase = this.#queue.acknowledgedCount;
    this.#relay = relay;
    this.#endTick();
    this.#queue.detach();
    this.#queue.rewindRelay(Math.max(0, from - this.#settledByRelay));
    this.relayMore();
  }

  /** Goes on with what the relay could not take. */
  relayMore(): void {
    const relay = this.#relay;
    if (relay === undefined) return;
    const queue = this.#queue;
    for (let next = queue.nextToRelay; next !== undefined; next = queue.nextToRelay) {
      if (!relay.write(next, this.#settledByRelay + queue.relayed + 1)) return;
      queue.relayedNext();
    }
  }

  /** The first `count` stanzas that the relay was given are settled where they went. */
  relayed(count: number): void {
    this.#queue.settle(Math.max(0, count - this.#settledByRelay), settleOne);
  }

  /** The session is this node's again. */
  endRelay(): void {
    this.#relay = undefined;
    this.#watch();
  }

  get #settledByRelay(): number {
    return this.#queue.acknowledgedCount - this.#relayBase;
  }

  /** The session is over: what the client has not acknowledged, in order, is the caller's. */
  end(): Delivery[] {
    this.#judge();
    this.#isOver = true;
    this.#link = undefined;
    this.#relay = undefined;
    this.#onCovered = undefined;
    this.#endTick();
    this.#cancelHold?.();
    this.#cancelHold = undefined;
    const heldBack = this.#heldBack?.takeAll() ?? [];
    this.#heldBack = undefined;
    return [...this.#queue.takeAll(), ...heldBack];
  }

  /** Writes what waits, as far as the client reads. */
  #write(link: AckLink): void {
    if (this.#isSettling) return;
    const queue = this.#queue;
    for (let next = queue.nextToWrite; next !== undefined; next = queue.nextToWrite) {
      if (queue.unacknowledgedWrites >= this.#window) return;
      if (!link.write(next.stanza)) return;
      queue.wrote();
      if (++this.#sinceRequest >= this.#management.options.ackFreq) this.#request(link);
      if (this.#window !== Infinity) this.#wroteCarefully(link);
    }
  }

  /** One of few stanzas that may be on their way at once was written: asks as soon as they are. */
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

  #tell(): void {
    this.#told = this.#handled.covered;
    this.#link?.sendNonza(ackXml(this.#handled.h));
  }

  /** Answers the last `<r/>` once more, now that all it asked about is covered. */
  #tellWhenCovered(): void {
    if (this.#handled.covered >= this.#asked) this.#tell();
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

  /** What is unacknowledged has been so for a while. */
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
      this.#owner.lookAround();
    }
    const askedMs = this.#requestedMs;
    if (
      link !== undefined && askedMs !== undefined &&
      link.readingMs - askedMs >= options.ackTimeoutMs
    ) {
      this.#requestedMs = undefined;
      this.#owner.unresponsive();
    }
    this.#watch();
  }

  #armHold(): void {
    if (this.#cancelHold !== undefined || this.#isOver) return;
    const { clock, metrics } = this.#management;
    const dueMs = this.#handled.dueMs;
    if (dueMs === undefined) return;
    this.#cancelHold = clock.after(Math.max(0, dueMs - clock.monotonicMs()), () => {
      this.#cancelHold = undefined;
      metrics.unprotected.inc(this.#handled.expire(clock.monotonicMs()));
      if (this.#asked > this.#told) this.#tellWhenCovered();
      if (this.#onCovered !== undefined && this.isCovered) this.#onCovered();
      this.#armHold();
    });
  }
}

function settleOne(delivery: Delivery): void {
  delivery.acknowledged();
}
