/**
 * A queue for each key: tasks with one key run one after another, tasks with different keys side by
 * side. A key without tasks costs nothing.
 */
export class Turns {
  readonly #last = new Map<string, Promise<void>>();

  /**
   * Runs `task` after the earlier tasks of `key`, whether or not those failed; at once if there are
   * none.
   */
  run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const { promise: done, resolve } = Promise.withResolvers<void>();
    // Set before the task begins, so that calls from the task queue after it.
    this.#last.set(key, done);
    const mine = before === undefined ? task() : before.then(task);
    mine.then(ignore, ignore).then(() => {
      if (this.#last.get(key) === done) this.#last.delete(key);
      resolve();
    });
    return mine;
  }

  /** True while a task of `key` runs or waits. */
  has(key: string): boolean {
    return this.#last.has(key);
  }

  /** Waits until no task is left, including tasks that begin meanwhile. */
  async settled(): Promise<void> {
    while (this.#last.size > 0) await Promise.all(this.#last.values());
  }
}

/** Ignores a task's failure: `run` has reported it to its caller, and the next task does not need it. */
function ignore(): void {}
