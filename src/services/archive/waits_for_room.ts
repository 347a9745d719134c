import type { CancelTimer, Clock } from "../../base/mod.ts";

/** Milliseconds between two looks at what waits, besides those when there is more room. */
const LOOK_MS = 250;
/** Messages without room that `freed` looks at before it leaves the others for the next time. */
const MOST_IN_VAIN = 32;

/** The wait of one message for room. */
export interface WaitForRoom {
  /** Monotonic milliseconds until which the message may wait. */
  readonly dueMs: number;
  /** Returns false while there is certainly no room. It costs little. */
  mayFit(): boolean;
  /** Takes the room, if there is some; false if there is none. */
  attempt(): boolean;
}

/** Walk over the waits and the functions that resolve them. It sees waits that come later, too. */
type Waits = MapIterator<[WaitForRoom, (isTaken: boolean) => void]>;

/**
 * Messages that wait until there is room for them, the one that came first before the others. A message
 * that does not fit holds up none that does.
 *
 * With more room, the cost depends on the messages that take it, not on all that wait. So a look that has
 * found 32 messages without room ends, and the next one goes on behind them. All are looked at four
 * times in a second.
 *
 * The sender of a message is not read while its message waits, so there is one of each sender at most.
 */
export class WaitsForRoom {
  readonly #clock: Clock;
  readonly #briefMs: number;
  readonly #waits = new Map<WaitForRoom, (isTaken: boolean) => void>();
  /** The waits behind those that the last look has seen, unless it has seen all. */
  #others: Waits | undefined;
  #cancelLook: CancelTimer | undefined;
  /** Monotonic milliseconds until which any of them may wait. */
  #lastMs = Infinity;

  /** @param briefMs most milliseconds for which messages wait after `hurry` */
  constructor(clock: Clock, briefMs: number) {
    this.#clock = clock;
    this.#briefMs = briefMs;
  }

  /** Messages that wait. */
  get size(): number {
    return this.#waits.size;
  }

  /** Resolves to true once `attempt` has taken the room, and to false when the time is over. */
  add(wait: WaitForRoom): Promise<boolean> {
    if (wait.mayFit() && wait.attempt()) return Promise.resolve(true);
    if (this.#isOver(wait)) return Promise.resolve(false);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#waits.set(wait, resolve);
    this.#lookLater();
    return promise;
  }

  /** Lets messages take their room, as there is more of it now. */
  freed(): void {
    this.#look(MOST_IN_VAIN);
  }

  /** Ends all waits soon, and those that begin from now on. */
  hurry(): void {
    this.#lastMs = Math.min(this.#lastMs, this.#clock.monotonicMs() + this.#briefMs);
  }

  #look(mostInVain: number): void {
    const others = this.#others;
    this.#others = undefined;
    const left = others === undefined ? mostInVain : this.#lookAt(others, mostInVain);
    if (left > 0) this.#lookAt(this.#waits.entries(), left);
    if (this.#waits.size > 0) return;
    this.#cancelLook?.();
    this.#cancelLook = undefined;
  }

  /** Returns the messages without room that may still be looked at. */
  #lookAt(waits: Waits, mostInVain: number): number {
    for (let left = mostInVain; left > 0;) {
      const next = waits.next();
      if (next.done) return left;
      const [wait, resolve] = next.value;
      const isTaken = wait.mayFit() && wait.attempt();
      if (isTaken || this.#isOver(wait)) {
        this.#waits.delete(wait);
        resolve(isTaken);
      } else left--;
    }
    this.#others = waits;
    return 0;
  }

  #isOver({ dueMs }: WaitForRoom): boolean {
    return this.#clock.monotonicMs() >= Math.min(dueMs, this.#lastMs);
  }

  #lookLater(): void {
    this.#cancelLook ??= this.#clock.after(LOOK_MS, () => {
      this.#cancelLook = undefined;
      this.#others = undefined;
      this.#look(Infinity);
      if (this.#waits.size > 0) this.#lookLater();
    });
  }
}
