import type { Account } from "./account.ts";

interface Due {
  readonly account: Account;
  readonly dueMs: number;
}

/** Accounts that were just written and will be checked again, in order of time. */
export class ReadBackQueue {
  readonly #delaysMs: readonly number[];
  readonly #queues: Due[][];
  readonly #heads: number[];

  constructor(delaysMs: readonly number[]) {
    this.#delaysMs = delaysMs;
    this.#queues = delaysMs.map(() => []);
    this.#heads = delaysMs.map(() => 0);
  }

  /** Checks that are still to come. */
  get size(): number {
    return this.#queues.reduce((sum, queue, i) => sum + queue.length - this.#heads[i]!, 0);
  }

  /** Queues `account` for one check after each delay. */
  add(account: Account, nowMs: number): void {
    this.#delaysMs.forEach((delayMs, i) => {
      this.#queues[i]!.push({ account, dueMs: nowMs + delayMs });
    });
  }

  /**
   * Takes the accounts that are due. One that changed again meanwhile is queued twice, and checked
   * once.
   */
  take(nowMs: number): ReadonlySet<Account> {
    const due = new Set<Account>();
    this.#queues.forEach((queue, i) => {
      let head = this.#heads[i]!;
      while (head < queue.length && queue[head]!.dueMs <= nowMs) due.add(queue[head++]!.account);
      // Removing them one by one would cost the length of the queue each time.
      if (head > 1_024 && head * 2 > queue.length) {
        queue.splice(0, head);
        head = 0;
      }
      this.#heads[i] = head;
    });
    return due;
  }
}
