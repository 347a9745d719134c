import type { FairShares, Holders } from "../../base/mod.ts";

/**
 * Queued items at which a sender is slowed down: more than a client has in flight, and few enough
 * that stanzas read ahead from all clients take little memory.
 */
const LONG_QUEUE = 256;
/** Bytes of queued items at which a sender is slowed down: 256 short messages take a third of them. */
const LONG_QUEUE_BYTES = 1_048_576;

/**
 * The rest of an item's work, once its wait is over. If that has to wait again, it returns the wait
 * for what is left.
 */
export type Finish = () => Pending | undefined | void;

/**
 * A wait that ends with a call instead of a promise. So whoever ends it knows that the rest of the
 * work, unless it has to wait for something else, is done when that call returns.
 */
export interface DirectWait {
  /** Calls `goOn` once, with the rest of the work: within this call if the wait is over already. */
  whenOver(goOn: (rest: Finish) => void): void;
}

/** A wait of an item, for a lookup or for an archive. A promise must not reject. */
export type Pending = Promise<Finish> | DirectWait;

/** Calls `goOn` with the rest of the work when a wait is over. */
export function whenOver(pending: Pending, goOn: (rest: Finish) => void): void {
  if (pending instanceof Promise) void pending.then(goOn);
  else pending.whenOver(goOn);
}

/** Bounds of items, and callbacks about them; each must give the same answer about one item every time. */
export interface SenderWorkersDeps<T> {
  /** The bound that an item counts for while it waits behind others of its sender. */
  sharesOf(item: T): FairShares;
  /** The bound that an item counts for during its own lookup. */
  readonly lookedUp: FairShares;
  /** Holders of the item's shares of these bounds. */
  holdersOf(item: T): Holders;
  /** Bytes that count for an item. */
  bytesOf(item: T): number;
  /** True when `item` comes before `other`, of the same sender. */
  isOlder(item: T, other: T): boolean;
  /**
   * Begins early with what `item` will have to wait for, if it can. Its sender's first item, `head`,
   * waits; all between the two are foreseen, and `before` is the last of those, or `head`. Returns
   * false when `item` cannot be foreseen yet: it is asked about again. @default nothing is foreseen
   */
  foresee?(item: T, places: { readonly before: T; readonly head: T }): boolean;
  /**
   * Slows the sender of an item at the node that the item came from. Returns a function that ends it.
   * @default senders are slowed here alone
   */
  slowAfar?(item: T): (() => void) | undefined;
}

/** Handled items at the head of a queue from which on they are cut off. */
const MOST_HANDLED = 64;

/** The place of an item in its sender's order. */
export interface Standing {
  /** True for a returned item: it goes before all that have not been sent. */
  readonly isReturned?: boolean;
}

/**
 * Serial queues keyed by sender (RFC 6120 §10.1) that exist only while they have work.
 *
 * The caller handles an item at once when its sender is not busy. Only if that has to wait (for a
 * lookup in Redis) does a queue begin, which holds the sender's later items back until it is done.
 * Items that a lane returns meanwhile are older than all of those, the waiting one included, and
 * are done first. Several returned items are done by age.
 */
export class SenderWorkers<T> {
  readonly #handle: (item: T) => Pending | undefined;
  readonly #deps: SenderWorkersDeps<T>;
  readonly #pressure: (item: T, isOver: boolean) => void;
  readonly #queues = new Map<string, Queue<T>>();
  #idle: PromiseWithResolvers<void> | undefined;
  #queued = 0;
  #queuedBytes = 0;

  /**
   * @param handle does the work; when it has to wait it returns the wait for the rest of the work
   * @param pressure called with an item of a sender when that sender's queue has grown long, or is to
   *   be slowed, and with the same item once the queue is gone
   */
  constructor(
    handle: (item: T) => Pending | undefined,
    deps: SenderWorkersDeps<T>,
    pressure: (item: T, isOver: boolean) => void = () => {},
  ) {
    this.#handle = handle;
    this.#deps = deps;
    this.#pressure = pressure;
  }

  /** Items that wait. */
  get queued(): number {
    return this.#queued;
  }

  /** Bytes of the items that wait. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Senders with waiting work. */
  get active(): number {
    return this.#queues.size;
  }

  /** True when an item of this sender would have to wait. */
  isBusy(sender: string): boolean {
    return this.#queues.size > 0 && this.#queues.has(sender);
  }

  /**
   * Puts `item` behind everything of its sender, who must be busy, or among the returned items by
   * age. False when a bound or a share of it is reached and the item was not taken.
   */
  enqueue(sender: string, item: T, { isReturned = false }: Standing = {}): boolean {
    const queue = this.#queues.get(sender);
    if (queue === undefined) throw new RangeError(`Cannot enqueue for an idle sender: ${sender}`);
    const shares = this.#deps.sharesOf(item);
    const holders = this.#deps.holdersOf(item);
    const bytes = this.#deps.bytesOf(item);
    if (!shares.mayHold(holders, bytes)) return false;
    shares.hold(holders, bytes);
    this.#queued++;
    this.#queuedBytes += bytes;
    queue.bytes += bytes;
    if (isReturned) {
      this.#insert(item, queue);
      return true;
    }
    queue.items.push(item);
    this.#foresee(queue);
    if (queue.items.length >= LONG_QUEUE || queue.bytes >= LONG_QUEUE_BYTES) {
      this.#slow(queue, item);
    }
    return true;
  }

  /**
   * Slows the sender of `item`, however short its queue is, until the queue is gone. Others are not
   * affected, and a sender without a queue is not.
   */
  slow(sender: string, item: T): void {
    const queue = this.#queues.get(sender);
    if (queue === undefined) return;
    this.#slow(queue, item);
    // An item that comes to its end ends this too, so the next one has to say it anew.
    const { endSlowing } = queue;
    queue.endSlowing = this.#deps.slowAfar?.(item);
    endSlowing?.();
  }

  /**
   * Makes the sender busy until `first`, the rest of the work on `item`, and all items enqueued
   * meanwhile are done. False when there is no room for `item`, which is then not handled further.
   */
  begin(
    sender: string,
    item: T,
    first: Pending,
    { isReturned = false }: Standing = {},
  ): boolean {
    const { lookedUp } = this.#deps;
    if (!lookedUp.mayHold(this.#deps.holdersOf(item), this.#deps.bytesOf(item))) return false;
    this.#holdLookedUp(item);
    const entry: Entry<T> = { item, isReturned, finish: undefined };
    const queue: Queue<T> = {
      items: [],
      next: 0,
      foreseen: 0,
      started: [entry],
      first: 0,
      bytes: 0,
      heldBy: undefined,
      isWaiting: false,
      isWorking: false,
      endSlowing: undefined,
    };
    this.#queues.set(sender, queue);
    this.#wait(sender, queue, entry, first);
    return true;
  }

  /** Resolves when nothing waits any more. */
  async idle(): Promise<void> {
    while (this.#queues.size > 0) await (this.#idle ??= Promise.withResolvers()).promise;
  }

  /** Goes on with a queue once the wait of one of its entries is over. */
  #wait(sender: string, queue: Queue<T>, entry: Entry<T>, pending: Pending): void {
    queue.isWaiting = true;
    whenOver(pending, (rest) => {
      entry.finish = rest;
      queue.isWaiting = false;
      this.#work(sender, queue);
    });
  }

  /** Works on a queue until something has to be waited for. Removes the queue when nothing is left. */
  #work(sender: string, queue: Queue<T>): void {
    if (queue.isWorking) return; // a wait was over at once: the loop below goes on
    queue.isWorking = true;
    // Each step may bring more items, behind or before: the loop ends when there are none.
    while (!queue.isWaiting && this.#step(sender, queue));
    queue.isWorking = false;
    if (queue.isWaiting) return;
    this.#queues.delete(sender);
    // A table that a Map has left still has the queue, for all minor garbage collections.
    queue.items.length = queue.started.length = 0;
    if (queue.heldBy !== undefined) this.#pressure(queue.heldBy, false);
    queue.endSlowing?.();
    if (this.#queues.size > 0) return;
    this.#idle?.resolve();
    this.#idle = undefined;
  }

  /** Goes on with the first item of a queue. Returns false when there is none. */
  #step(sender: string, queue: Queue<T>): boolean {
    const { items, started } = queue;
    const entry = started[queue.first];
    if (entry?.finish !== undefined) {
      const { finish } = entry;
      if (++queue.first === started.length) started.length = queue.first = 0;
      if (finish !== DONE) this.#releaseLookedUp(entry.item);
      const rest = finish();
      if (rest === undefined) return true;
      this.#holdLookedUp(entry.item);
      this.#putBack(entry, queue);
      this.#wait(sender, queue, entry, rest);
    } else if (entry !== undefined) {
      const pending = this.#handleNext(entry.item, queue);
      if (pending === undefined) entry.finish = DONE;
      else this.#wait(sender, queue, entry, pending);
    } else if (queue.next < items.length) {
      const item = items[queue.next++]!;
      const pending = this.#handleNext(item, queue);
      if (queue.next === MOST_HANDLED) {
        // Handled items must not pile up in the array of a sender who never pauses.
        items.splice(0, queue.next);
        queue.foreseen = Math.max(0, queue.foreseen - queue.next);
        queue.next = 0;
      }
      if (pending === undefined) return true;
      const entry: Entry<T> = { item, isReturned: false, finish: undefined };
      started.push(entry);
      this.#foresee(queue);
      this.#wait(sender, queue, entry, pending);
    } else return false;
    return true;
  }

  /** Foresees items, in their order, up to the first one that cannot be. */
  #foresee(queue: Queue<T>): void {
    const { items, started, first, next } = queue;
    // With several entries there are returned ones, which may wait for something else.
    if (this.#deps.foresee === undefined || started.length - first !== 1) return;
    const head = started[first]!.item;
    queue.foreseen = Math.max(queue.foreseen, next);
    for (; queue.foreseen < items.length; queue.foreseen++) {
      const before = queue.foreseen > next ? items[queue.foreseen - 1]! : head;
      if (!this.#deps.foresee(items[queue.foreseen]!, { before, head })) return;
    }
  }

  #slow(queue: Queue<T>, item: T): void {
    if (queue.heldBy !== undefined) return;
    queue.heldBy = item;
    this.#pressure(item, true);
  }

  #handleNext(item: T, queue: Queue<T>): Pending | undefined {
    const bytes = this.#deps.bytesOf(item);
    queue.bytes -= bytes;
    this.#deps.sharesOf(item).release(this.#deps.holdersOf(item), bytes);
    this.#queued--;
    this.#queuedBytes -= bytes;
    const pending = this.#handle(item);
    if (pending !== undefined) this.#holdLookedUp(item);
    return pending;
  }

  #holdLookedUp(item: T): void {
    this.#deps.lookedUp.hold(this.#deps.holdersOf(item), this.#deps.bytesOf(item));
  }

  #releaseLookedUp(item: T): void {
    this.#deps.lookedUp.release(this.#deps.holdersOf(item), this.#deps.bytesOf(item));
  }

  /** Puts an entry whose work has to wait again behind returned items that are older. */
  #putBack(entry: Entry<T>, { started, first }: Queue<T>): void {
    let at = first;
    while (started[at]?.isReturned === true) {
      if (entry.isReturned && this.#deps.isOlder(entry.item, started[at]!.item)) break;
      at++;
    }
    started.splice(at, 0, entry);
  }

  /** Inserts a returned item by age, before the one that was taken from `items`. */
  #insert(item: T, { started, first }: Queue<T>): void {
    const isBehind = (at: number) =>
      started[at]!.isReturned && !this.#deps.isOlder(item, started[at]!.item);
    let [low, high] = [first, started.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBehind(middle)) low = middle + 1;
      else high = middle;
    }
    started.splice(low, 0, { item, isReturned: true, finish: undefined });
  }
}

/** The rest of an item's work when there is none. */
const DONE: Finish = () => {};

interface Queue<T> {
  readonly items: T[];
  /** The place in `items` of the first one that has not been begun. */
  next: number;
  /** The place in `items` of the first one that has not been foreseen, unless it has been begun. */
  foreseen: number;
  /**
   * Items that go before all in `items`, from `first` on: returned ones, the oldest first, then the
   * one that was taken from `items` and is looked up.
   */
  readonly started: Entry<T>[];
  first: number;
  /** Bytes of all items that have not been begun. */
  bytes: number;
  /** The item at which the queue became long, or was slowed. */
  heldBy: T | undefined;
  /** True while the wait of one entry is not over. */
  isWaiting: boolean;
  /** True within the call that works on the queue. */
  isWorking: boolean;
  /** Ends the slowing of the sender at the node that its items come from. */
  endSlowing: (() => void) | undefined;
}

/** An item that goes before all that have not been begun. */
interface Entry<T> {
  readonly item: T;
  readonly isReturned: boolean;
  /** The rest of its work, once its wait is over. */
  finish: Finish | undefined;
}
