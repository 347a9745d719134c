/**
 * Queues of asynchronous steps, one for each key. Steps with one key run one after another; those
 * of different keys run side by side. A key without steps costs nothing.
 */
export class AccountTurns {
  readonly #last = new Map<string, Promise<void>>();
  readonly #maxWaiting: number;
  #waiting = 0;

  /** @param maxWaiting steps that may run or wait at once */
  constructor(maxWaiting: number) {
    this.#maxWaiting = maxWaiting;
  }

  /** Steps that run or wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Runs `step` after the earlier ones of `key`.
   * @param step must not reject
   * @returns false, and nothing has happened, when too many steps wait
   */
  run(key: string, step: () => Promise<void>): boolean {
    if (this.#waiting >= this.#maxWaiting) return false;
    this.#waiting++;
    const before = this.#last.get(key);
    const mine = (before === undefined ? step() : before.then(step)).then(() => {
      this.#waiting--;
      if (this.#last.get(key) === mine) this.#last.delete(key);
    });
    this.#last.set(key, mine);
    return true;
  }

  /** Waits until no step is left, including steps that begin meanwhile. */
  async settled(): Promise<void> {
    while (this.#last.size > 0) await Promise.all(this.#last.values());
  }
}
