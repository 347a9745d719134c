import type { CancelTimer, Clock } from "../../base/mod.ts";
import { describeError } from "../../base/mod.ts";
import type { Logger } from "../../observe/mod.ts";

/** Objects behind `BackgroundWork`. */
export interface BackgroundWorkDeps {
  readonly logger: Logger;
  readonly clock: Clock;
}

/** Work that nobody awaits, and its timers. `close` ends the timers and awaits the work. */
export class BackgroundWork {
  readonly #deps: BackgroundWorkDeps;
  /** Functions that end the timers early, one for each timer. */
  readonly #timers = new Set<CancelTimer>();
  readonly #tasks = new Set<Promise<void>>();
  #isClosed = false;

  constructor(deps: BackgroundWorkDeps) {
    this.#deps = deps;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Lets `work` go on by itself. `close` waits for it, even if `close` was called before. */
  spawn(work: Promise<void>): void {
    const task: Promise<void> = work
      .catch((thrown) => this.#deps.logger.error("offline.bug", { error: describeError(thrown) }))
      .finally(() => this.#tasks.delete(task));
    this.#tasks.add(task);
  }

  /** Begins work `delayMs` from now. Begins none after `close`. */
  after(delayMs: number, begin: () => Promise<void>): void {
    if (this.#isClosed) return;
    const cancel = this.#deps.clock.after(delayMs, () => {
      this.#timers.delete(cancel);
      this.spawn(begin());
    });
    this.#timers.add(cancel);
  }

  /** Resolves `forMs` from now, or with `close`. */
  async pause(forMs: number): Promise<void> {
    if (this.#isClosed) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#deps.clock.after(forMs, resolve);
    const end = () => {
      cancel();
      resolve();
    };
    this.#timers.add(end);
    await promise;
    this.#timers.delete(end);
  }

  /** Begins nothing more, ends all pauses, and resolves once no work is left. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const end of this.#timers) end();
    this.#timers.clear();
    while (this.#tasks.size > 0) await Promise.all(this.#tasks);
  }
}
