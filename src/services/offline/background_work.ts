import type { CancelTimer, Clock } from "../../base/mod.ts";
import { describeError, Pauses } from "../../base/mod.ts";
import type { Logger } from "../../observe/mod.ts";

/** Objects behind `BackgroundWork`. */
export interface BackgroundWorkDeps {
  readonly logger: Logger;
  readonly clock: Clock;
}

/** Work that nobody awaits, and its timers. `close` ends the timers and awaits the work. */
export class BackgroundWork {
  readonly #deps: BackgroundWorkDeps;
  readonly #timers = new Set<CancelTimer>();
  readonly #tasks = new Set<Promise<void>>();
  readonly #pauses: Pauses;

  constructor(deps: BackgroundWorkDeps) {
    this.#deps = deps;
    this.#pauses = new Pauses(deps.clock);
  }

  get isClosed(): boolean {
    return this.#pauses.isClosed;
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
    if (this.isClosed) return;
    const cancel = this.#deps.clock.after(delayMs, () => {
      this.#timers.delete(cancel);
      this.spawn(begin());
    });
    this.#timers.add(cancel);
  }

  /** Resolves `forMs` from now, or with `close`. */
  pause(forMs: number): Promise<void> {
    return this.#pauses.pause(forMs);
  }

  /** Begins nothing more, ends all pauses, and resolves once no work is left. */
  async close(): Promise<void> {
    this.#pauses.close();
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
    while (this.#tasks.size > 0) await Promise.all(this.#tasks);
  }
}
