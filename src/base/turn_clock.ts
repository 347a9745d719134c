import type { CancelTimer, Clock } from "./clock.ts";

/**
 * A clock that stands still during one callback of the event loop, however many stanzas the callback
 * brings. Reading the time costs a tenth of a microsecond, and each stanza needs it several times.
 *
 * Time goes on with the next microtask, so code that awaits something sees time pass. This clock cannot
 * measure work that never yields.
 */
export class TurnClock implements Clock {
  readonly #clock: Clock;
  #monotonicMs = NaN;
  #wallUs = NaN;
  #isReset = true;
  readonly #reset = () => {
    this.#isReset = true;
    this.#monotonicMs = NaN;
    this.#wallUs = NaN;
  };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  wallMs(): number {
    return this.#clock.wallMs();
  }

  wallUs(): number {
    if (Number.isNaN(this.#wallUs)) {
      this.#wallUs = this.#clock.wallUs();
      this.#resetLater();
    }
    return this.#wallUs;
  }

  monotonicMs(): number {
    if (Number.isNaN(this.#monotonicMs)) {
      this.#monotonicMs = this.#clock.monotonicMs();
      this.#resetLater();
    }
    return this.#monotonicMs;
  }

  after(delayMs: number, callback: () => void): CancelTimer {
    return this.#clock.after(delayMs, callback);
  }

  #resetLater(): void {
    if (!this.#isReset) return;
    this.#isReset = false;
    queueMicrotask(this.#reset);
  }
}
