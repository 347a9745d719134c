/**
 * Lets a few tasks run at once and the others wait their turn. Hashing a password takes a thread for
 * milliseconds: without a gate, clients that all guess at once would take every core from the rest.
 */
export class HashGate {
  readonly #maxAtOnce: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(maxAtOnce: number) {
    this.#maxAtOnce = maxAtOnce;
  }

  /** Tasks that wait. */
  get waitingCount(): number {
    return this.#waiting.length;
  }

  /** Runs `task` when it is its turn, in the order of calls. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#maxAtOnce) {
      // Whoever leaves hands the place on, so that nobody slips in between.
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else {
      this.#running++;
    }
    try {
      return await task();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }
}
