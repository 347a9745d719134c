import type { CancelTimer, Clock } from "../../../base/mod.ts";

/** Calls that begin at once after a pause. */
export const CALLS_AT_ONCE = 16;
/** Milliseconds between the calls that follow. */
export const CALL_EVERY_MS = 4;

/**
 * The pace at which a node calls endpoints. A datacenter may announce hundreds of endpoints, and
 * calling all of them in one turn of the event loop would hold up every client of the node.
 * Destinations take turns, so one with many endpoints does not delay the others.
 */
export class CallPace {
  readonly #clock: Clock;
  /** Calls that wait, oldest first, by destination; the destination whose turn is next comes first. */
  readonly #waiting = new Map<string, Set<() => void>>();
  /** Monotonic milliseconds; each call moves it on by `CALL_EVERY_MS`. */
  #spentMs = -Infinity;
  #cancelTimer: CancelTimer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Runs `call` now when there is room, or else when its turn comes.
   * @returns undefined when `call` has run, or else a function that calls it off
   */
  begin(destination: string, call: () => void): CancelTimer | undefined {
    if (this.#waiting.size === 0 && this.#spend()) {
      call();
      return undefined;
    }
    const turn = () => call(); // an identity of its own
    const turns = this.#waiting.get(destination) ?? new Set();
    this.#waiting.set(destination, turns.add(turn));
    this.#wake();
    return () => {
      turns.delete(turn);
      if (turns.size === 0 && this.#waiting.get(destination) === turns) {
        this.#waiting.delete(destination);
      }
      if (this.#waiting.size === 0) this.#stop();
    };
  }

  /** True when one more call may begin now. */
  #spend(): boolean {
    const nowMs = this.#clock.monotonicMs();
    const spentMs = Math.max(this.#spentMs, nowMs);
    if (spentMs - nowMs > (CALLS_AT_ONCE - 1) * CALL_EVERY_MS) return false;
    this.#spentMs = spentMs + CALL_EVERY_MS;
    return true;
  }

  #wake(): void {
    if (this.#waiting.size === 0) return;
    this.#cancelTimer ??= this.#clock.after(CALL_EVERY_MS, () => {
      this.#cancelTimer = undefined;
      // One in each turn of the event loop, also when the timer comes late.
      const [next] = this.#waiting;
      if (next !== undefined && this.#spend()) this.#run(...next);
      this.#wake();
    });
  }

  #stop(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  #run(destination: string, turns: Set<() => void>): void {
    const turn = turns.values().next().value!; // a destination that waits has one at least
    turns.delete(turn);
    this.#waiting.delete(destination);
    if (turns.size > 0) this.#waiting.set(destination, turns); // behind the others
    turn();
  }
}
