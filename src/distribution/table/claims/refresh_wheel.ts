import type { Account } from "./account.ts";

/** Most buckets: 100 ms apart at the default of 60 s. */
const MAX_SLOTS = 600;
/** Least time between buckets. */
const LEAST_TICK_MS = 20;

/**
 * Spreads renewal over time. Every account has a bucket, and each bucket comes up once in
 * `refreshAfterMs`, so that a million accounts cost the same in each tick. Its owner runs one timer
 * for all.
 */
export class RefreshWheel {
  /** Milliseconds between buckets. */
  readonly tickMs: number;
  readonly #slots: Set<Account>[];
  #nextSlot = 0;
  #cursor = 0;
  #size = 0;

  constructor(refreshAfterMs: number) {
    const slots = Math.max(1, Math.min(MAX_SLOTS, Math.floor(refreshAfterMs / LEAST_TICK_MS)));
    this.tickMs = refreshAfterMs / slots;
    this.#slots = Array.from({ length: slots }, () => new Set<Account>());
  }

  get size(): number {
    return this.#size;
  }

  /** Assigns the account a bucket: accounts that come in a burst are spread over the round. */
  add(account: Account): void {
    if (account.slot !== -1) return;
    account.slot = this.#nextSlot;
    this.#nextSlot = (this.#nextSlot + 1) % this.#slots.length;
    this.#slots[account.slot]!.add(account);
    this.#size++;
  }

  remove(account: Account): void {
    if (account.slot === -1) return;
    this.#slots[account.slot]!.delete(account);
    account.slot = -1;
    this.#size--;
  }

  /** Returns the accounts whose turn it is. */
  tick(): ReadonlySet<Account> {
    const slot = this.#slots[this.#cursor]!;
    this.#cursor = (this.#cursor + 1) % this.#slots.length;
    return slot;
  }
}
