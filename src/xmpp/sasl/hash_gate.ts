/**
 * A gate that runs a few tasks at once while the others wait their turn. Hashing a password takes a
 * thread for milliseconds. Without a gate, clients that guess passwords all at once would take every
 * core.
 */
export class HashGate {
  readonly #maxAtOnce: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(maxAtOnce: number) {
    this.#maxAtOnce = maxAtOnce;
  }

  /** Number of waiting tasks. */
  get waitingCount(): number {
    return this.#waiting.length;
  }

  /** Runs `task` at its turn, in the order of calls. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#maxAtOnce) {
      // A finished task hands its place to the next, so that no later caller slips in between.
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
