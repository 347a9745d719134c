import type { Clock } from "./clock.ts";

/** Pauses between attempts that all end early when their owner is closed. */
export class Pauses {
  readonly #clock: Clock;
  /** Functions that end the present pauses, in the order in which these began. */
  readonly #ends = new Set<() => void>();
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True when nothing is to be attempted again. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Resolves `forMs` milliseconds from now, or with `close`; at once after that. */
  async pause(forMs: number): Promise<void> {
    if (this.#isClosed) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#clock.after(forMs, resolve);
    this.#ends.add(resolve);
    await promise;
    cancel();
    this.#ends.delete(resolve);
  }

  /** Ends all pauses, and those that begin later at once. */
  close(): void {
    this.#isClosed = true;
    for (const end of this.#ends) end();
  }
}
