import { FairShares } from "../../../base/mod.ts";
import type { CarbonOf, Envelope, StanzaTrace } from "../../mod.ts";
import type { Ack, Slow } from "../../wire/mod.ts";
import {
  encodeStanzaFrame,
  maxStanzaFrameBytes,
  patchCarbon,
  patchMayBeRepeat,
  patchNumber,
  takeCarbon,
} from "../../wire/mod.ts";
import { FRAME_SLAB_BYTES, FrameSlabs } from "./frame_slabs.ts";
import { LaneEntries } from "./lane_entries.ts";
import type { BoundLane, SenderBinding, StanzaId } from "./lane_entry.ts";
import { LaneEntry } from "./lane_entry.ts";
import { RetiredLanes } from "./retired_lanes.ts";

/** Bounds of one lane, and its water marks as fractions of them. */
export interface LaneOptions {
  readonly laneMaxBytes: number;
  readonly laneMaxItems: number;
  readonly laneHighWater: number;
  readonly laneLowWater: number;
  /** Bytes of the longest frame that the peer takes. */
  readonly maxFrameBytes: number;
}

/** The parts that a lane works with. */
export interface LaneDeps {
  readonly events: LaneEvents;
  /** The bound that stanzas of all lanes count for. @default none */
  readonly budget?: FairShares | undefined;
  /** Returns the carbon of a message that brings one; undefined for what has none. @default none */
  readonly carbonOf?: CarbonOf | undefined;
}

/** Callbacks on the contents of a lane. */
export interface LaneEvents {
  /** Called when a stanza was appended. */
  laneHasWork(lane: Lane): void;
  /** Called when `isOver` has changed. */
  laneLevelChanged(lane: Lane): void;
  /**
   * Slows the sender of a stanza for which the peer has no room.
   * @returns a function that ends it
   */
  laneSlows(entry: LaneEntry): () => void;
}

/** A stanza that was taken out of a lane. */
export interface TakenEntry {
  readonly entry: LaneEntry;
  /** True when the peer may have received it. */
  readonly wasSent: boolean;
  /** True when the peer has reported it as received. */
  readonly wasReceived: boolean;
}

/** Bytes that an entry and its place in the ring cost besides the frame. */
const ENTRY_BYTES = 256;

/** Steps in bytes in which the budget learns a lane's size, to spare a call for each stanza. */
const BUDGET_STEP_BYTES = 65_536;

/**
 * Divisor of each bound: one part in this many is reserved for errors that answer a stanza, as the
 * stanza's sender hears nothing else. An empty lane takes anything that fits.
 */
export const RESERVED_PART = 8;

/**
 * The outgoing stanzas of one link, in order and numbered from 1, kept as encoded frames until the
 * other side has settled them. Pure: it knows no connection, clock or log.
 *
 *     append → [next) … waiting … [sent] … on the way … [received] … there … settled → gone
 *
 * `resume` sets `sent` back to what the peer has received, so that stanzas on the way are sent
 * again.
 */
export class Lane implements BoundLane {
  readonly id: number;
  /** Senders bound to it. */
  senders = 0;
  /** True while its link is up. */
  isLive = false;
  /** Monotonic milliseconds since when its link has been down; only valid while it is down. */
  downSinceMs = 0;
  /** False when its endpoint is no longer listed. */
  isEnabled = true;
  /** True when the process at its end is known to have ended, until the link is up again. */
  isGone = false;
  /** True when the peer's version takes CONTEXT frames. */
  takesContexts = false;
  /** Lanes whose stanzas moved here. The peer must hear that they end before it gets those. */
  readonly retired = new RetiredLanes();
  readonly #options: LaneOptions;
  readonly #ordinaryItems: number;
  readonly #ordinaryBytes: number;
  readonly #events: LaneEvents;
  readonly #budget: FairShares;
  readonly #carbonOf: CarbonOf | undefined;
  /** True when the peer makes the carbon of a message that brings one. */
  #takesCarbons = false;
  /** Bytes that are counted in the budget. */
  #toldBytes = 0;
  #slabs: FrameSlabs;
  readonly #entries = new LaneEntries();
  #next = 1;
  #sent = 0;
  #everSent = 0;
  #received = 0;
  #settled = 0;
  #peer: number | undefined;
  #isOver = false;
  /** Functions that end the slowing of senders, by the numbers of their stanzas. */
  readonly #slowed = new Map<number, () => void>();
  /** The last number whose duty wants to know that the peer has received it. */
  #lastWantingHeld = 0;
  /** Numbers whose stanzas somebody follows, and that the peer has not received; ascending. */
  #followed: number[] = [];

  constructor(id: number, options: LaneOptions, { events, budget, carbonOf }: LaneDeps) {
    this.id = id;
    this.#options = options;
    const { laneMaxItems, laneMaxBytes } = options;
    this.#ordinaryItems = laneMaxItems - Math.floor(laneMaxItems / RESERVED_PART);
    this.#ordinaryBytes = laneMaxBytes - Math.floor(laneMaxBytes / RESERVED_PART);
    this.#events = events;
    this.#budget = budget ?? new FairShares();
    this.#carbonOf = carbonOf;
    this.#slabs = new FrameSlabs();
  }

  /** Stanzas held. */
  get items(): number {
    return this.#entries.size;
  }

  /** Bytes allocated for the held stanzas. */
  get allocatedBytes(): number {
    return this.#slabs.allocatedBytes + this.#entries.size * ENTRY_BYTES;
  }

  /** Stanzas that wait to be written. */
  get waiting(): number {
    return this.#next - 1 - this.#sent;
  }

  /** The last number written since the link came up. */
  get sent(): number {
    return this.#sent;
  }

  /** The last number that the peer has reported as received. */
  get received(): number {
    return this.#received;
  }

  /** Stanzas that the peer has not reported as received, written or not. */
  get unreceivedItems(): number {
    return this.#next - 1 - this.#received;
  }

  /** Bytes of their frames. Looks at each of them. */
  get unreceivedBytes(): number {
    let bytes = 0;
    for (let number = this.#received + 1; number < this.#next; number++) {
      const entry = this.#entries.get(number);
      if (entry !== undefined) bytes += entry.end - entry.start;
    }
    return bytes;
  }

  /** The last number given to a stanza. */
  get last(): number {
    return this.#next - 1;
  }

  /** Numbers up to this one will not be sent (again); for HELLO. */
  get lastGone(): number {
    return (this.#entries.lowest ?? this.#next) - 1;
  }

  /** True from the high-water mark until the lane has fallen below the low one. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * Takes `envelope` and its duty over. False when the lane, the budget or its sender's share of
   * the budget is too full. An error that answers a stanza needs room in the lane alone. False also
   * for a stanza whose frame the peer would not take: it would end the link each time it is sent.
   */
  append(envelope: Envelope, binding: SenderBinding): boolean {
    const room = maxStanzaFrameBytes(envelope);
    if (room > this.#options.maxFrameBytes) return false;
    if (!envelope.isOwed && !(this.#budget.mayGrow(room) && binding.tab.mayAdd(room))) return false;
    const isAll = envelope.isOwed || this.#entries.size === 0;
    if (this.#entries.size >= (isAll ? this.#options.laneMaxItems : this.#ordinaryItems)) {
      return false;
    }
    const maxBytes = isAll ? this.#options.laneMaxBytes : this.#ordinaryBytes;
    const slabBytes = maxBytes - (this.#entries.size + 1) * ENTRY_BYTES;
    if (this.#slabs.allocatedBytes > slabBytes) return false;
    let slab = this.#slabs.reserve(room, slabBytes);
    if (slab === undefined && this.#slabs.compact(this.#entries.values())) {
      slab = this.#slabs.reserve(room, slabBytes);
    }
    if (slab === undefined) return false;
    const start = slab.used;
    const number = this.#next++;
    const end = encodeStanzaFrame(slab.bytes, start, envelope, number);
    this.#slabs.commit(slab, end);
    const entry = new LaneEntry(slab, start, end, binding);
    entry.adoptDuty(envelope);
    entry.isTakenBack = envelope.arrival === "taken-back";
    entry.isOwed = envelope.isOwed;
    if (envelope.trace !== undefined) this.#follow(entry, envelope.trace, number);
    if (entry.wantsHeld) this.#lastWantingHeld = number;
    this.#entries.add(number, entry);
    this.#bind(entry);
    this.#tellBudget();
    if (!this.#isOver) this.#checkLevel();
    this.#events.laneHasWork(this);
    return true;
  }

  /**
   * Makes the stanza that was appended last bring its carbon: the peer makes it, so that it costs no
   * frame.
   * @param id of the message
   * @returns false when the last stanza is another one or was sent before, or the peer is of a
   *   version that makes no carbons
   */
  bringCarbon(id: StanzaId): boolean {
    const { last } = this;
    if (!this.#takesCarbons || last <= this.#sent || last <= this.#everSent) return false;
    const entry = this.#entries.get(last);
    return entry !== undefined && patchCarbon(entry.slab.bytes, entry.start, id);
  }

  /**
   * Takes a stanza of another lane, in order and whatever the bound: it was within that lane's. If
   * the peer may not make the carbon that the stanza brings, the carbon follows it.
   * @param wasSent true when that lane may have sent it
   */
  adopt(entry: LaneEntry, wasSent: boolean): void {
    this.#adopt(entry, wasSent);
    if (!this.#takesCarbons) this.adoptCarbonOf(entry, wasSent);
  }

  /**
   * Takes the carbon that a stanza brings, as a stanza of its own: the stanza itself goes elsewhere, or
   * the peer may not make the carbon.
   */
  adoptCarbonOf(entry: LaneEntry, wasSent: boolean): void {
    if (!takeCarbon(entry.slab.bytes, entry.start)) return;
    const carbon = this.#carbonOf?.(entry.toCopy());
    if (carbon !== undefined) this.#adopt(LaneEntry.of(carbon, entry.binding), wasSent);
  }

  #adopt(entry: LaneEntry, wasSent: boolean): void {
    this.#slabs.adopt(entry);
    const { slab: { bytes }, start } = entry;
    const number = this.#next++;
    patchNumber(bytes, start, number);
    if (wasSent) patchMayBeRepeat(bytes, start);
    this.#entries.add(number, entry);
    if (entry.wantsHeld) this.#lastWantingHeld = number;
    if (entry.trace !== undefined) {
      this.#follow(entry, entry.trace, number);
      entry.trace.note("moved", { lane: this.id, number });
    }
    this.#bind(entry);
    this.#tellBudget();
    if (!this.#isOver) this.#checkLevel();
    this.#events.laneHasWork(this);
  }

  /** Notes that the peer must learn that `lane` ends, before it gets any stanza that moved here. */
  noteRetired(lane: number): void {
    this.retired.add(lane, this.#next);
  }

  /**
   * Begins on a new connection, on which process `peer` claims all up to `lastReceived`.
   *
   * `restarted` when the peer cannot know what it was sent before (another process, or one that has
   * lost its memory): the caller takes all stanzas with `takeForRestart` before anything is sent.
   * `impossible` when the peer claims a number that was never sent.
   *
   * @param takesCarbons true when the peer makes the carbon of a message that brings one. It is the
   *   same for the whole life of a process.
   */
  resume(
    peer: number,
    lastReceived: number,
    takesCarbons = false,
  ): "resumed" | "restarted" | "impossible" {
    const { lastGone } = this;
    this.#takesCarbons = takesCarbons && this.#carbonOf !== undefined;
    if (lastReceived > Math.max(this.#everSent, lastGone)) return "impossible";
    const known = this.#peer;
    this.#peer = peer;
    const start = Math.max(lastReceived, lastGone);
    if (known !== undefined && (known !== peer || start < this.#received)) return "restarted";
    this.#tellHeld(this.#received + 1, start);
    this.#received = start;
    this.#sent = start;
    this.retired.tellAgain();
    if (this.waiting > 0) this.#events.laneHasWork(this);
    return "resumed";
  }

  /**
   * Marks unsent stanzas as possible repeats, as the link was down for long: the node before, which
   * holds them too, may have given them to another node.
   */
  markLate(): void {
    for (const [number, entry] of this.#entries) {
      if (number <= this.#sent || !entry.isHeldBefore || entry.isTakenBack) continue;
      patchMayBeRepeat(entry.slab.bytes, entry.start);
    }
  }

  /** Empties the lane for good and returns its stanzas in order; its numbers are not used again. */
  takeAll(): TakenEntry[] {
    const taken = this.#take();
    this.#restartAt(this.#next - 1);
    return taken;
  }

  /**
   * Empties the lane after `resume` returned `restarted`. Numbers go on behind HELLO's last number,
   * where the new peer expects them.
   */
  takeForRestart(): TakenEntry[] {
    const { lastGone } = this;
    const taken = this.#take();
    this.#next = lastGone + 1;
    this.#restartAt(lastGone);
    this.retired.clear();
    return taken;
  }

  /**
   * Writes the stanzas that may be sent, in pieces as large as the slabs allow. A frame is begun
   * while fewer than `creditBytes` have been written.
   * @returns bytes written, and how many of the stanzas were written for the first time
   */
  flush(creditBytes: number, write: (bytes: Uint8Array) => void): { bytes: number; fresh: number } {
    const isFollowed = this.#sent < (this.#followed.at(-1) ?? 0);
    if (isFollowed && this.takesContexts) this.#writeContexts(creditBytes, write);
    let bytes = 0;
    let number = this.#sent + 1;
    let run: LaneEntry | undefined;
    let runEnd = 0;
    for (; number < this.#next && bytes < creditBytes; number++) {
      const entry = this.#entries.get(number)!; // numbers above `sent` have no gaps
      if (run !== undefined && (run.slab !== entry.slab || runEnd !== entry.start)) {
        write(run.slab.bytes.subarray(run.start, runEnd));
        run = undefined;
      }
      run ??= entry;
      runEnd = entry.end;
      bytes += entry.end - entry.start;
    }
    if (run !== undefined) write(run.slab.bytes.subarray(run.start, runEnd));
    if (isFollowed) this.#noteFollowed("written", this.#sent + 1, number - 1);
    this.#sent = number - 1;
    const fresh = Math.max(0, this.#sent - this.#everSent);
    this.#everSent += fresh;
    return { bytes, fresh };
  }

  /** Drops settled stanzas; false when the peer acknowledges a number that was not sent to it. */
  acknowledge(ack: Ack): boolean {
    if (ack.received > this.#sent) return false;
    if (ack.received > this.#received) {
      this.#tellHeld(this.#received + 1, ack.received);
      if (this.#followed.length > 0) {
        this.#noteFollowed("received", this.#received + 1, ack.received);
        this.#followed.splice(0, firstAbove(this.#followed, ack.received));
      }
      this.#received = ack.received;
    }
    let named = Math.max(0, ack.settled - this.#settled);
    for (const { count } of ack.ranges) named += count;
    if (named > this.#entries.size) this.#settleHeld(ack);
    else this.#settleNamed(ack);
    if (ack.settled > this.#settled) this.#settled = ack.settled;
    this.retired.received(ack.received);
    this.#tidy();
    this.#tellBudget();
    if (this.#isOver) this.#checkLevel();
    return true;
  }

  /**
   * Slows the sender of a stanza down for the peer, until the peer says that it is over, the stanza is
   * settled, or the link has ended. False for a stanza that was not sent to the peer. Nobody is slowed
   * for what is no message: nodes and clients answer what the peer sends.
   */
  slow({ number, isOver }: Slow): boolean {
    if (number > this.#sent) return false;
    if (isOver) this.#endSlowing(number);
    else {
      const entry = this.#entries.get(number);
      if (entry?.maySlow && !this.#slowed.has(number)) {
        this.#slowed.set(number, this.#events.laneSlows(entry));
      }
    }
    return true;
  }

  /** Lets all senders go on that are slowed for the peer: its link has ended. */
  endSlowing(): void {
    for (const number of [...this.#slowed.keys()]) this.#endSlowing(number);
  }

  #endSlowing(number: number): void {
    const end = this.#slowed.get(number);
    this.#slowed.delete(number);
    end?.();
  }

  /** Yields the stanzas not reported as received, in order. */
  *unreceived(): IterableIterator<LaneEntry> {
    for (const [number, entry] of this.#entries) if (number > this.#received) yield entry;
  }

  /** Yields the bindings of held stanzas; a sender comes once for each stanza. */
  *holders(): IterableIterator<SenderBinding> {
    for (const entry of this.#entries.values()) yield entry.binding;
  }

  /**
   * Tells settlers that the peer has received these numbers: they survive the death of this
   * process.
   */
  #tellHeld(first: number, last: number): void {
    if (first > this.#lastWantingHeld) return;
    for (let number = first; number <= last; number++) this.#entries.get(number)?.held();
  }

  #follow(entry: LaneEntry, trace: StanzaTrace, number: number): void {
    entry.trace = trace;
    this.#followed.push(number);
  }

  /** Writes the contexts of the stanzas that go out with `creditBytes`, before all of them. */
  #writeContexts(creditBytes: number, write: (bytes: Uint8Array) => void): void {
    const last = this.#followed.at(-1) ?? 0;
    let bytes = 0;
    for (let number = this.#sent + 1; number <= last && bytes < creditBytes; number++) {
      const { trace, start, end } = this.#entries.get(number)!;
      if (trace?.carried !== undefined) write(trace.carried);
      bytes += end - start;
    }
  }

  /** Notes a step of those stanzas with these numbers that somebody follows. */
  #noteFollowed(step: "written" | "received", first: number, last: number): void {
    const followed = this.#followed;
    for (let i = firstAbove(followed, first - 1); i < followed.length; i++) {
      const number = followed[i]!;
      if (number > last) return;
      this.#entries.get(number)?.trace?.note(step, { lane: this.id, number });
    }
  }

  #take(): TakenEntry[] {
    this.endSlowing();
    const taken: TakenEntry[] = [];
    for (const [number, entry] of this.#entries) {
      const wasReceived = number <= this.#received;
      taken.push({ entry, wasSent: number <= this.#everSent, wasReceived });
      this.#unbind(entry);
    }
    this.#entries.clear();
    // The entries still point into the old slabs, so those must not be written to again.
    this.#slabs = new FrameSlabs();
    this.#tellBudget();
    if (this.#isOver) this.#checkLevel();
    return taken;
  }

  #restartAt(number: number): void {
    this.#sent = number;
    this.#everSent = number;
    this.#received = number;
    this.#settled = number;
    this.#followed = [];
  }

  #settleNamed({ settled, ranges }: Ack): void {
    for (let number = this.#settled + 1; number <= settled; number++) this.#settle(number);
    for (const { first, count } of ranges) {
      for (let number = first; number < first + count; number++) this.#settle(number);
    }
  }

  /**
   * Settles in one pass over what is held. While a client keeps one stanza open for long, an ACK may
   * name millions of numbers behind it that were settled before.
   */
  #settleHeld({ settled, ranges }: Ack): void {
    let at = 0;
    for (const [number] of [...this.#entries]) {
      while (at < ranges.length && ranges[at]!.first + ranges[at]!.count <= number) at++;
      const isInRange = at < ranges.length && ranges[at]!.first <= number;
      if (number <= settled || isInRange) this.#settle(number);
    }
  }

  #settle(number: number): void {
    const entry = this.#entries.take(number);
    if (entry === undefined) return;
    if (this.#slowed.size > 0) this.#endSlowing(number);
    this.#slabs.release(entry.slab, entry.end - entry.start);
    this.#unbind(entry);
    entry.settle();
  }

  /** Counts the entry for its sender; not an owed error, which its sender did not cause. */
  #bind({ binding, start, end, isOwed }: LaneEntry): void {
    binding.held++;
    if (!isOwed) binding.tab.add(end - start + ENTRY_BYTES);
  }

  #unbind({ binding, start, end, isOwed }: LaneEntry): void {
    binding.held--;
    if (!isOwed) binding.tab.remove(end - start + ENTRY_BYTES);
  }

  /** Updates the budget in steps. The block that an empty lane keeps for later does not count. */
  #tellBudget(): void {
    const bytes = this.#entries.size === 0 ? 0 : this.allocatedBytes;
    const more = bytes - this.#toldBytes;
    if (bytes > 0 && more < BUDGET_STEP_BYTES && more > -BUDGET_STEP_BYTES) return;
    this.#budget.grow(more);
    this.#toldBytes = bytes;
  }

  #checkLevel(): void {
    const { laneMaxItems, laneMaxBytes, laneHighWater, laneLowWater } = this.#options;
    const mark = this.#isOver ? laneLowWater : laneHighWater;
    const isOver = this.#entries.size > mark * laneMaxItems ||
      this.allocatedBytes > Math.max(mark * laneMaxBytes, FRAME_SLAB_BYTES + ENTRY_BYTES);
    if (isOver === this.#isOver) return;
    this.#isOver = isOver;
    this.#events.laneLevelChanged(this);
  }

  /** Compacts the slabs, so that a few stanzas that stay long do not keep whole slabs. */
  #tidy(): void {
    if (this.#slabs.allocatedBytes < 8 * FRAME_SLAB_BYTES) return;
    this.#slabs.compact(this.#entries.values());
  }
}

/** Returns the index of the first of rising numbers that is above `bound`; the length without one. */
function firstAbove(numbers: readonly number[], bound: number): number {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle]! > bound) high = middle;
    else low = middle + 1;
  }
  return low;
}
