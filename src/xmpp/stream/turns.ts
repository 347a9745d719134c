/**
 * Runs asynchronous tasks one after another where they have the same key, and side by side where they
 * have not. A key costs nothing while it has no task.
 */
export class Turns {
  readonly #last = new Map<string, Promise<void>>();

  /** Runs `task` after those given before for `key`, whether they failed or not; at once if none. */
  run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const { promise: done, resolve } = Promise.withResolvers<void>();
    // Before the task begins: what it asks for itself comes behind it.
    this.#last.set(key, done);
    const mine = before === undefined ? task() : before.then(task);
    mine.then(ignore, ignore).then(() => {
      if (this.#last.get(key) === done) this.#last.delete(key);
      resolve();
    });
    return mine;
  }

  /** Waits until no task is left, those included that others begin meanwhile. */
  async settled(): Promise<void> {
    while (this.#last.size > 0) await Promise.all(this.#last.values());
  }
}

/** The caller of `run` is told how its task ended; the next in line does not care. */
function ignore(): void {}
