import type { CancelTimer, Clock } from "../../base/mod.ts";
import { describeError, Pauses } from "../../base/mod.ts";
import type { Counter, Logger } from "../../observe/mod.ts";
import type { ArchiveStore } from "../../storage/mod.ts";

/** Milliseconds from the start of a node to its first removal, and between two of them. */
const [FIRST_MS, INTERVAL_MS] = [60_000, 600_000];
/** Messages of one step, and milliseconds between two steps: 10 000 a second at most. */
const [STEP_MESSAGES, PAUSE_MS] = [1_000, 100];

/** Milliseconds by which the clocks of a node and of a database may differ. */
const CLOCK_OFF_MS = 300_000;

/** Objects behind the removal of old messages. */
export interface ArchiveRetentionDeps {
  /** Milliseconds for which messages are kept, by host. */
  readonly maxAgeMs: ReadonlyMap<string, number>;
  storeOf(host: string): ArchiveStore;
  /** Counts the messages that are removed. */
  readonly removed: Pick<Counter, "inc">;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Removes messages from archives that are older than their host keeps them, in small steps. Every node
 * does so: it finds nothing to do where another one was first.
 */
export class ArchiveRetention {
  readonly #deps: ArchiveRetentionDeps;
  #cancel: CancelTimer | undefined;
  readonly #ending = new AbortController();
  #round: Promise<void> = Promise.resolve();
  readonly #pauses: Pauses;

  constructor(deps: ArchiveRetentionDeps) {
    this.#deps = deps;
    this.#pauses = new Pauses(deps.clock);
  }

  start(): void {
    if (this.#deps.maxAgeMs.size > 0) this.#later(FIRST_MS);
  }

  /** Ends the round that is under way behind its present step. */
  async stop(): Promise<void> {
    this.#ending.abort();
    this.#cancel?.();
    this.#pauses.close();
    await this.#round;
  }

  get #isStopped(): boolean {
    return this.#ending.signal.aborted;
  }

  #later(waitMs: number): void {
    if (this.#isStopped) return;
    this.#cancel = this.#deps.clock.after(waitMs, () => {
      this.#round = this.#remove().finally(() => this.#later(INTERVAL_MS));
    });
  }

  /** Never rejects. */
  async #remove(): Promise<void> {
    const { maxAgeMs, storeOf, removed, clock, logger } = this.#deps;
    for (const [host, ageMs] of maxAgeMs) {
      if (this.#isStopped) return;
      let total = 0;
      try {
        if (!await this.#isClockRight(host)) continue;
        const { signal } = this.#ending;
        const age = { host, sentBeforeMs: clock.wallMs() - ageMs, signal };
        while (!this.#isStopped) {
          const count = await storeOf(host).removeBefore(age, STEP_MESSAGES);
          if (count === 0) break;
          removed.inc(count);
          total += count;
          await this.#pauses.pause(PAUSE_MS);
        }
      } catch (thrown) {
        logger.debug("archive.not-removed", { host, error: describeError(thrown) });
      }
      if (total > 0) logger.info("archive.removed", { host, messages: total });
    }
  }

  /** False when the database has another time: a clock that is ahead would remove what is to stay. */
  async #isClockRight(host: string): Promise<boolean> {
    const { storeOf, clock, logger } = this.#deps;
    const beforeMs = clock.wallMs();
    const databaseMs = await storeOf(host).clockMs?.();
    if (databaseMs === undefined) return true;
    const aheadMs = Math.round(beforeMs - databaseMs);
    if (Math.abs(aheadMs) <= CLOCK_OFF_MS) return true;
    logger.warn("archive.clock-off", { host, aheadMs });
    return false;
  }
}
