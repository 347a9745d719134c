import type { BackoffOptions, CancelTimer, Clock } from "../../base/mod.ts";
import { backoffMs } from "../../base/mod.ts";

/** Pauses between attempts. Their length is random: sessions that failed together do not return so. */
const PAUSES: BackoffOptions = { firstMs: 1_000, maxMs: 30_000, jitter: 0.5 };

/** A change that waits for its next attempt. */
interface Waiting<Change> {
  readonly change: Change;
  readonly attempts: number;
  readonly cancel: CancelTimer;
}

/** Changes of presence that the database kept from being told: the last one of each session. */
export class PresenceRetries<Change> {
  readonly #clock: Clock;
  /** By full JID. */
  readonly #waiting = new Map<string, Waiting<Change>>();
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the change of a session that waits. */
  waiting(session: string): Change | undefined {
    return this.#waiting.get(session)?.change;
  }

  /**
   * Calls `again` after a pause, instead of what waits for the session. The pauses of one change grow.
   * @param options.maxAttempts attempts at one change, this one included, after which it is given up
   */
  later(session: string, change: Change, { maxAttempts, again }: {
    readonly maxAttempts: number;
    readonly again: () => void;
  }): void {
    const last = this.#waiting.get(session);
    const attempts = last?.change === change ? last.attempts + 1 : 1;
    this.giveUp(session);
    if (this.#isClosed || attempts >= maxAttempts) return;
    const cancel = this.#clock.after(backoffMs(attempts, PAUSES), again);
    this.#waiting.set(session, { change, attempts, cancel });
  }

  /** Forgets the change of a session that waits. */
  giveUp(session: string): void {
    this.#waiting.get(session)?.cancel();
    this.#waiting.delete(session);
  }

  /** Tries nothing again from now on. */
  close(): void {
    this.#isClosed = true;
    for (const { cancel } of this.#waiting.values()) cancel();
    this.#waiting.clear();
  }
}
