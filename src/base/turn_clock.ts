import type { CancelTimer, Clock } from "./clock.ts";

/**
 * A clock that stands still while one callback of the event loop runs, however many stanzas that one
 * brings: to read the time costs a tenth of a microsecond, and each stanza asks for it several times.
 *
 * Time goes on with the next microtask, so what awaits something sees it pass; work that never yields
 * cannot be measured with it.
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
