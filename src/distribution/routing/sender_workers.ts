/**
 * Items of one sender at which it is slowed down: more than a client has in flight, and few enough
 * that what was read ahead from all clients stays small.
 */
const LONG_QUEUE = 256;

/** The rest of an item's work, once what it waited for is there. */
export type Finish = () => void;

/** Bounds of what waits in all queues together. */
export interface WorkerBounds<T> {
  readonly maxItems: number;
  readonly maxBytes: number;
  /** Bytes that count for an item: the same each time. */
  bytesOf(item: T): number;
}

/** Where an item stands in its sender's order. */
export interface Standing {
  /** It comes back from where it had been sent: it goes before all that has not been sent. */
  readonly isReturned?: boolean;
  /** Answers have as much room again, so that a full queue can still be told of. */
  readonly isAnswer?: boolean;
}

/**
 * Serial queues keyed by sender (RFC 6120 §10.1) that exist only while they have work.
 *
 * The caller handles an item at once when its sender is not busy. Only when that handling has to wait
 * (a lookup in Redis) does a queue come to be, which holds the sender's later items back until it is
 * done. What a lane gives back meanwhile is older than all of it, the item that waits included, and is
 * done first.
 */
export class SenderWorkers<T> {
  readonly #handle: (item: T) => Promise<Finish> | undefined;
  readonly #bounds: WorkerBounds<T>;
  readonly #pressure: (item: T, isOver: boolean) => void;
  readonly #queues = new Map<string, Queue<T>>();
  readonly #running = new Set<Promise<void>>();
  #queued = 0;
  #queuedBytes = 0;

  /**
   * @param handle does the work; when it has to wait it returns a promise, which must not reject, of
   *   what is left to do then
   * @param pressure told with an item of a sender when that sender's queue has grown long, and with the
   *   same item once the queue is gone
   */
  constructor(
    handle: (item: T) => Promise<Finish> | undefined,
    bounds: WorkerBounds<T>,
    pressure: (item: T, isOver: boolean) => void = () => {},
  ) {
    this.#handle = handle;
    this.#bounds = bounds;
    this.#pressure = pressure;
  }

  /** Items that wait. */
  get queued(): number {
    return this.#queued;
  }

  /** Bytes of them. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Senders whose work is waiting. */
  get active(): number {
    return this.#queues.size;
  }

  /** True when an item of this sender would have to wait. */
  isBusy(sender: string): boolean {
    return this.#queues.size > 0 && this.#queues.has(sender);
  }

  /**
   * Puts `item` behind everything of its sender, who must be busy, or where it stands; false when a
   * bound is reached and it was not taken.
   */
  enqueue(
    sender: string,
    item: T,
    { isReturned = false, isAnswer = false }: Standing = {},
  ): boolean {
    const queue = this.#queues.get(sender);
    if (queue === undefined) throw new RangeError(`Cannot enqueue for an idle sender: ${sender}`);
    const { maxItems, maxBytes } = this.#bounds;
    const bytes = this.#queuedBytes + this.#bounds.bytesOf(item);
    const share = isAnswer ? 2 : 1;
    if (this.#queued >= share * maxItems || bytes > share * maxBytes) return false;
    this.#queued++;
    this.#queuedBytes = bytes;
    if (isReturned) {
      queue.returned.push(item);
      return true;
    }
    queue.items.push(item);
    if (queue.items.length === LONG_QUEUE && queue.heldBy === undefined) {
      queue.heldBy = item;
      this.#pressure(item, true);
    }
    return true;
  }

  /** Makes the sender busy until `first` and whatever is enqueued meanwhile is done. */
  begin(sender: string, first: Promise<Finish>, { isReturned = false }: Standing = {}): void {
    const queue: Queue<T> = { items: [], returned: [], heldBy: undefined };
    this.#queues.set(sender, queue);
    const running = this.#work(sender, queue, first, isReturned);
    this.#running.add(running);
    void running.then(() => this.#running.delete(running));
  }

  /** Resolves when nothing waits any more. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  async #work(
    sender: string,
    queue: Queue<T>,
    first: Promise<Finish>,
    isReturned: boolean,
  ): Promise<void> {
    const { items, returned } = queue;
    let finish: Finish | undefined = await first;
    if (isReturned) {
      finish();
      finish = undefined;
    }
    let next = 0;
    // Whatever is awaited, more may have come behind or before: it ends only when there is nothing.
    for (;;) {
      if (returned.length > 0) await this.#workReturned(returned);
      else if (finish !== undefined) {
        finish();
        finish = undefined;
      } else if (next < items.length) {
        const pending = this.#handleNext(items[next++]!);
        if (next === 1024) {
          // What was handled must not pile up behind a sender who never pauses.
          items.splice(0, next);
          next = 0;
        }
        if (pending !== undefined) finish = await pending;
      } else break;
    }
    this.#queues.delete(sender);
    if (queue.heldBy !== undefined) this.#pressure(queue.heldBy, false);
  }

  #handleNext(item: T): Promise<Finish> | undefined {
    this.#queued--;
    this.#queuedBytes -= this.#bounds.bytesOf(item);
    return this.#handle(item);
  }

  async #workReturned(returned: T[]): Promise<void> {
    for (let next = 0; next < returned.length; next++) {
      const pending = this.#handleNext(returned[next]!);
      if (pending !== undefined) (await pending)();
    }
    returned.length = 0;
  }
}

interface Queue<T> {
  readonly items: T[];
  /** Before all of those. */
  readonly returned: T[];
  /** The item at which the sender was found to be too fast. */
  heldBy: T | undefined;
}
