import type { Clock } from "../../base/mod.ts";

/** Milliseconds between two questions to a database that fails. */
const RETRY_MS = 500;

/** Pauses between two questions to a database that fails. The end of the node ends all of them. */
export class RetryPauses {
  readonly #clock: Clock;
  readonly #ends = new Set<() => void>();
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True when no question is to be repeated. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Resolves when it is time to ask again. Pauses that begin one after another end in that order. */
  async pause(): Promise<void> {
    if (this.#isClosed) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#clock.after(RETRY_MS, resolve);
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
