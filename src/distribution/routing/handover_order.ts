import { FairShares, RETAINED_OVERHEAD_BYTES } from "../../base/mod.ts";
import type { Holders } from "../../base/mod.ts";
import { senderKey } from "../mod.ts";
import type { Settler, UserHosts } from "../mod.ts";
import type { Envelope } from "../envelope.ts";
import { holdersOf } from "./holders_of.ts";

/** Bounds of what waits. */
export interface HandoverOrderOptions {
  /** Stanzas that wait, over all senders. @default 100000 */
  readonly maxWaiting?: number;
  /** Bytes of them, counting what each costs besides its text. @default 67108864 */
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

/** Goes on with what a node gave back, which is to be routed anew, and with what waited behind it. */
export type ResumeHandover = (
  returned: readonly Envelope[],
  waiting: readonly Envelope[],
) => void;

/** What one sender has under way to one address by another node of this datacenter. */
interface Way {
  readonly to: string;
  readonly from: string;
  readonly node: string;
  /** The process whose numbers `last` belongs to. */
  readonly process: number;
  /** The highest number that went this way. */
  last: number;
  /** Stanzas on it whose fate is open. */
  open: number;
  readonly returned: Kept[];
  readonly waiting: Kept[];
}

interface Kept {
  readonly envelope: Envelope;
  /** Whose shares it counts for. */
  readonly holders: Holders;
}

/**
 * Keeps a sender's order to a recipient who moves between the nodes of this datacenter.
 *
 * What was handed to a node where the recipient is no longer comes back from there in time: given back,
 * or handed on by that node. What follows it waits here until all of it is settled. A recipient who
 * stays where they are makes nothing wait.
 *
 *     nothing open ── handed ──▶ open at a node ── all settled ──▶ nothing open
 *                                    │
 *                  the recipient left that node, and more comes
 *                                    ▼
 *                                 waiting ── all settled or given back ──▶ goes on, in order
 */
export class HandoverOrder {
  /** Of what waits. */
  readonly #shares: FairShares;
  /** Of that and what came back: no bound refuses that, as it was within those of a lane. */
  readonly #budget: FairShares;
  readonly #hosts: UserHosts;
  readonly #resume: ResumeHandover;
  /** By recipient's address and sender. */
  readonly #ways = new Map<string, Map<string, Way>>();
  /** All with something returned or waiting; one may have been replaced in `#ways`. */
  readonly #stalled = new Set<Way>();

  /** @param budget a wider bound that all of it counts for */
  constructor(
    hosts: UserHosts,
    resume: ResumeHandover,
    options: HandoverOrderOptions = {},
    budget: FairShares = new FairShares(),
  ) {
    this.#hosts = hosts;
    this.#resume = resume;
    const { maxWaiting: maxItems, maxWaitingBytes: maxBytes } = resolveHandoverOptions(options);
    this.#budget = budget;
    this.#shares = new FairShares({ maxItems, maxBytes, within: budget });
  }

  /** Stanzas that wait. */
  get waiting(): number {
    return this.#shares.items;
  }

  /** Bytes of them. */
  get waitingBytes(): number {
    return this.#shares.bytes;
  }

  /** Notes that `envelope` is about to be handed to `node`. */
  handed(envelope: Envelope, node: string): void {
    const { process, sequence } = envelope;
    let way = this.#find(envelope);
    if (way?.process === process && sequence <= way.last) return; // it has been round that way
    if (way === undefined || way.node !== node || way.process !== process) {
      way = this.#add(envelope, node);
    }
    way.open++;
    way.last = sequence;
    envelope.settler = new Handed(this, way, envelope.settler);
  }

  /**
   * Takes over what must not overtake what is under way elsewhere.
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
    if (envelope.sequence <= way.last) return undefined; // it is what the others wait for
    if (!this.#stalled.has(way) && isAt(way.node)) return undefined;
    const holders = holdersOf(envelope, this.#hosts);
    if (!this.#shares.mayHold(holders, costOf(envelope))) return "full";
    envelope.detach();
    this.#shares.hold(holders, costOf(envelope));
    way.waiting.push({ envelope, holders });
    this.#stalled.add(way);
    return way;
  }

  /**
   * A node has given `envelope` back. When it `isToGoOn`, it is taken over and goes on before what
   * waits behind it, once all of it is back; true then.
   */
  takeBack(envelope: Envelope, isToGoOn: boolean): boolean {
    const handed = envelope.settler;
    if (!(handed instanceof Handed)) return false;
    const { way } = handed;
    envelope.settler = handed.before;
    if (isToGoOn) {
      const holders = holdersOf(envelope, this.#hosts);
      this.#budget.hold(holders, costOf(envelope));
      way.returned.push({ envelope, holders });
      this.#stalled.add(way);
    }
    this.settled(way);
    return isToGoOn;
  }

  /** One of what was open on `way` has met its fate. */
  settled(way: Way): void {
    if (--way.open > 0) return;
    if (!this.#stalled.has(way)) return this.#forget(way);
    // Not within what settles it: a lane that is just being emptied takes nothing new.
    queueMicrotask(() => this.#goOn(way));
  }

  /** Gives up what waits, for a graceful stop: in order. */
  drain(): readonly Envelope[] {
    const ways = [...this.#stalled];
    for (const way of ways) this.#end(way);
    return ways.flatMap(({ returned, waiting }) => [...returned, ...waiting].map(envelopeOf));
  }

  #goOn(way: Way): void {
    if (way.open > 0 || !this.#stalled.has(way)) return;
    this.#end(way);
    this.#resume(way.returned.map(envelopeOf), way.waiting.map(envelopeOf));
  }

  #end(way: Way): void {
    this.#stalled.delete(way);
    this.#forget(way);
    for (const { envelope, holders } of way.waiting) {
      this.#shares.release(holders, costOf(envelope));
    }
    for (const { envelope, holders } of way.returned) {
      this.#budget.release(holders, costOf(envelope));
    }
  }

  #find({ stanza: { to, from } }: Envelope): Way | undefined {
    return this.#ways.get(to.text)?.get(senderKey(from, this.#hosts));
  }

  /** What was the pair's way until now is settled or waited for without being found any more. */
  #add({ stanza: { to, from }, process }: Envelope, node: string): Way {
    const way: Way = {
      to: to.text,
      from: senderKey(from, this.#hosts),
      node,
      process,
      last: 0,
      open: 0,
      returned: [],
      waiting: [],
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

function envelopeOf({ envelope }: Kept): Envelope {
  return envelope;
}

function costOf({ stanza }: Envelope): number {
  return stanza.bytes.length + RETAINED_OVERHEAD_BYTES;
}

/** Told of the fate of what is on a way, before whoever was told without it. */
class Handed implements Settler {
  readonly way: Way;
  readonly before: Settler | undefined;
  readonly held?: (number: number) => void;
  readonly leftOpen?: (number: number) => void;
  readonly #order: HandoverOrder;

  constructor(order: HandoverOrder, way: Way, before: Settler | undefined) {
    this.#order = order;
    this.way = way;
    this.before = before;
    if (before?.held !== undefined) this.held = passHeld;
    if (before?.leftOpen !== undefined) this.leftOpen = passLeftOpen;
  }

  settle(number: number): void {
    this.before?.settle(number);
    this.#order.settled(this.way);
  }
}

function passHeld(this: Handed, number: number): void {
  this.before!.held!(number); // it is set where there is one
}

function passLeftOpen(this: Handed, number: number): void {
  this.before!.leftOpen!(number); // it is set where there is one
}
