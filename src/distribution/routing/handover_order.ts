import type { Fate } from "../../xmpp/mod.ts";
import { FairShares } from "../../base/mod.ts";
import type { Holders } from "../../base/mod.ts";
import { senderKey } from "../mod.ts";
import type { UserHosts } from "../mod.ts";
import type { Envelope } from "../envelope.ts";
import { costOf, holdersOf } from "./holders_of.ts";

/** Bounds of the stanzas that wait. */
export interface HandoverOrderOptions {
  /** Stanzas that wait, over all senders. @default 100000 */
  readonly maxWaiting?: number;
  /** Bytes of waiting stanzas, counting what each costs besides its text. @default 67108864 */
  readonly maxWaitingBytes?: number;
}

/** Fills in the defaults. */
export function resolveHandoverOptions(
  options: HandoverOrderOptions = {},
): Required<HandoverOrderOptions> {
  return {
    maxWaiting: options.maxWaiting ?? 100_000,
    maxWaitingBytes: options.maxWaitingBytes ?? 64 * 1024 * 1024,
  };
}

/** Takes stanzas that are to go on: those that a node gave back, then those that waited for them. */
export type ReturnWaiting = (envelope: Envelope, reason: "node-gone" | "waited") => void;

/** Stanzas from one sender to one address on their way over another node of this datacenter. */
interface Way {
  readonly to: string;
  readonly from: string;
  readonly node: string;
  /** The process whose numbers `last` belongs to. */
  readonly process: number;
  /** The highest number that was handed to the node. */
  last: number;
  /** Stanzas at the node that are not settled. */
  open: number;
  /** Stanzas that go on once all of those are settled or given back. */
  readonly kept: Kept[];
  /** True once nothing waits for its open stanzas any more. */
  hasEnded: boolean;
}

interface Kept {
  readonly envelope: Envelope;
  readonly reason: Parameters<ReturnWaiting>[1];
  /** The bound that it counts for, with the holders of its shares. */
  readonly shares: FairShares;
  readonly holders: Holders;
}

/**
 * Keeps a sender's order to a recipient who moves between the nodes of this datacenter.
 *
 * A stanza handed to a node that the recipient has left comes back in time: the node gives it back
 * or hands it on. Later stanzas of the sender wait here until all those are settled. For a
 * recipient who does not move nothing waits.
 *
 *     nothing open ── handed ──▶ open at a node ── all settled ──▶ nothing open
 *                                    │
 *                  the recipient left that node, and more comes
 *                                    ▼
 *                                 waiting ── all settled or given back ──▶ goes on, in order
 */
export class HandoverOrder {
  /** Counts waiting stanzas. */
  readonly #shares: FairShares;
  /**
   * Counts waiting and returned stanzas. No bound refuses a returned one: it was within those of a
   * lane.
   */
  readonly #budget: FairShares;
  readonly #hosts: UserHosts;
  readonly #returned: ReturnWaiting;
  /** By recipient's address, then by sender. */
  readonly #ways = new Map<string, Map<string, Way>>();
  /**
   * All ways with something returned or waiting. `#ways` may hold a newer one for the same pair.
   */
  readonly #stalled = new Set<Way>();

  /** @param budget a wider bound that waiting and returned stanzas count for */
  constructor(
    hosts: UserHosts,
    returned: ReturnWaiting,
    options: HandoverOrderOptions = {},
    budget: FairShares = new FairShares(),
  ) {
    this.#hosts = hosts;
    this.#returned = returned;
    const { maxWaiting: maxItems, maxWaitingBytes: maxBytes } = resolveHandoverOptions(options);
    this.#budget = budget;
    this.#shares = new FairShares({ maxItems, maxBytes, within: budget });
  }

  /** Stanzas that wait. */
  get waiting(): number {
    return this.#shares.items;
  }

  /** Bytes of the stanzas that wait. */
  get waitingBytes(): number {
    return this.#shares.bytes;
  }

  /** Notes that `envelope` is about to be handed to `node`. */
  handed(envelope: Envelope, node: string): void {
    const { process, sequence } = envelope;
    let way = this.#find(envelope);
    if (way?.process === process && sequence <= way.last) return; // it was handed over before
    if (way === undefined || way.node !== node || way.process !== process) {
      way = this.#add(envelope, node);
    }
    way.open++;
    way.last = sequence;
    envelope.fate = new Handed(this, way, envelope.fate);
  }

  /**
   * Takes over a stanza that must not overtake earlier ones at another node.
   * @param isAt tells whether the recipient is at a node, as far as is known
   * @returns the node that it waits for; `full` when it would have to wait and there is no room
   */
  keepBehind(
    envelope: Envelope,
    isAt: (node: string) => boolean,
  ): { readonly node: string } | "full" | undefined {
    if (this.#ways.size === 0) return undefined;
    const way = this.#find(envelope);
    if (way === undefined || way.process !== envelope.process) return undefined;
    if (envelope.sequence <= way.last) return undefined; // others wait for this one
    if (!this.#stalled.has(way) && isAt(way.node)) return undefined;
    const holders = holdersOf(envelope, this.#hosts);
    if (!this.#shares.mayHold(holders, costOf(envelope))) return "full";
    envelope.detach();
    this.#keep(way, { envelope, reason: "waited", shares: this.#shares, holders });
    return way;
  }

  /**
   * Ends the handover of an `envelope` that a node gave back. If `isToGoOn`, takes it over and
   * returns true: it is routed once all others are back, before those that wait behind it. After
   * `drain` nothing waits behind it: the caller routes it.
   */
  takeBack(envelope: Envelope, isToGoOn: boolean): boolean {
    const handed = envelope.fate;
    if (!(handed instanceof Handed)) return false;
    const { way } = handed;
    envelope.fate = handed.before;
    const isTaken = isToGoOn && !way.hasEnded;
    if (isTaken) {
      const holders = holdersOf(envelope, this.#hosts);
      this.#keep(way, { envelope, reason: "node-gone", shares: this.#budget, holders });
    }
    this.settled(way);
    return isTaken;
  }

  /** Notes that one stanza open on `way` is settled. */
  settled(way: Way): void {
    if (--way.open > 0) return;
    if (!this.#stalled.has(way)) return this.#forget(way);
    // Not within the call that settles it: a lane that is just being emptied takes nothing new.
    queueMicrotask(() => this.#goOn(way));
  }

  /** Returns all that waits, in order, for a graceful stop. */
  drain(): readonly Envelope[] {
    const ways = [...this.#stalled];
    for (const way of ways) this.#end(way);
    return ways.flatMap(({ kept }) => kept.map(({ envelope }) => envelope));
  }

  #goOn(way: Way): void {
    if (way.open > 0 || !this.#stalled.has(way)) return;
    this.#end(way);
    for (const { envelope, reason } of way.kept) this.#returned(envelope, reason);
  }

  #keep(way: Way, kept: Kept): void {
    kept.shares.hold(kept.holders, costOf(kept.envelope));
    way.kept.push(kept);
    this.#stalled.add(way);
  }

  #end(way: Way): void {
    way.hasEnded = true;
    this.#stalled.delete(way);
    this.#forget(way);
    // A stanza that has bounced comes to wait behind younger ones, and one that a node gives back is
    // older than all that wait for it.
    way.kept.sort((a, b) => a.envelope.sequence - b.envelope.sequence);
    for (const { envelope, shares, holders } of way.kept) shares.release(holders, costOf(envelope));
  }

  #find({ stanza: { to, from } }: Envelope): Way | undefined {
    return this.#ways.get(to.text)?.get(senderKey(from, this.#hosts));
  }

  /** Adds a way. Stanzas on the pair's earlier way still get settled, but it's no longer found. */
  #add({ stanza: { to, from }, process }: Envelope, node: string): Way {
    const way: Way = {
      to: to.text,
      from: senderKey(from, this.#hosts),
      node,
      process,
      last: 0,
      open: 0,
      kept: [],
      hasEnded: false,
    };
    const senders = this.#ways.get(way.to);
    if (senders === undefined) this.#ways.set(way.to, new Map([[way.from, way]]));
    else senders.set(way.from, way);
    return way;
  }

  #forget(way: Way): void {
    const senders = this.#ways.get(way.to);
    if (senders?.get(way.from) !== way) return;
    senders.delete(way.from);
    if (senders.size === 0) this.#ways.delete(way.to);
  }
}

/** Tells a stanza's fate to the receiver that it had before, then to the order. */
class Handed implements Fate {
  readonly way: Way;
  readonly before: Fate | undefined;
  readonly held?: (number: number) => void;
  readonly leftOpen?: (number: number) => void;
  readonly slow?: (number: number) => () => void;
  readonly #order: HandoverOrder;

  constructor(order: HandoverOrder, way: Way, before: Fate | undefined) {
    this.#order = order;
    this.way = way;
    this.before = before;
    if (before?.held !== undefined) this.held = passHeld;
    if (before?.leftOpen !== undefined) this.leftOpen = passLeftOpen;
    if (before?.slow !== undefined) this.slow = passSlow;
  }

  settle(number: number): void {
    this.before?.settle(number);
    this.#order.settled(this.way);
  }
}

function passHeld(this: Handed, number: number): void {
  this.before!.held!(number); // `held` is set only if `before` has it
}

function passLeftOpen(this: Handed, number: number): void {
  this.before!.leftOpen!(number); // `leftOpen` is set only if `before` has it
}

function passSlow(this: Handed, number: number): () => void {
  return this.before!.slow!(number); // `slow` is set only if `before` has it
}
