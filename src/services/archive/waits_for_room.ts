import type { CancelTimer, Clock } from "../../base/mod.ts";

/** Milliseconds between two looks at what waits, besides those when there is more room. */
const LOOK_MS = 250;

/** The wait of one message for room. */
export interface WaitForRoom {
  /** Monotonic milliseconds until which the message may wait. */
  readonly dueMs: number;
  /** Returns false while there is certainly no room. It costs little. */
  mayFit(): boolean;
  /** Takes the room, if there is some; false if there is none. */
  attempt(): boolean;
}

/**
 * Messages that wait until there is room for them, the one that came first before the others. A message
 * that does not fit holds up none that does.
 *
 * The sender of a message is not read while its message waits, so there is one of each sender at most.
 */
export class WaitsForRoom {
  readonly #clock: Clock;
  readonly #briefMs: number;
  readonly #waits = new Map<WaitForRoom, (isTaken: boolean) => void>();
  #cancelLook: CancelTimer | undefined;
  /** Monotonic milliseconds until which all may wait at the most. */
  #lastMs = Infinity;

  /** @param briefMs milliseconds for which messages wait at the most after `hurry` */
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
    for (const [wait, resolve] of this.#waits) {
      const isTaken = wait.mayFit() && wait.attempt();
      if (!isTaken && !this.#isOver(wait)) continue;
      this.#waits.delete(wait);
      resolve(isTaken);
    }
    if (this.#waits.size > 0) return;
    this.#cancelLook?.();
    this.#cancelLook = undefined;
  }

  /** Ends all waits soon, and those that begin from now on. */
  hurry(): void {
    this.#lastMs = Math.min(this.#lastMs, this.#clock.monotonicMs() + this.#briefMs);
  }

  #isOver({ dueMs }: WaitForRoom): boolean {
    return this.#clock.monotonicMs() >= Math.min(dueMs, this.#lastMs);
  }

  #lookLater(): void {
    this.#cancelLook ??= this.#clock.after(LOOK_MS, () => {
      this.#cancelLook = undefined;
      this.freed();
      if (this.#waits.size > 0) this.#lookLater();
    });
  }
}
