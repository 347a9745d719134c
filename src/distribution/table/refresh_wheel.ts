import type { Account } from "./account.ts";

/** Most buckets: 100 ms apart at the default of 60 s. */
const MAX_SLOTS = 600;
/** Buckets come no closer than this. */
const LEAST_TICK_MS = 20;

/**
 * Spreads renewal: every account has a bucket, buckets come round once in `refreshAfterMs`, and a
 * million accounts cost as much in each tick. One timer serves all (its owner's).
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

  /** Gives the account its bucket: accounts that come in a burst are spread over the round. */
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

  /** The accounts whose turn it is. */
  tick(): ReadonlySet<Account> {
    const slot = this.#slots[this.#cursor]!;
    this.#cursor = (this.#cursor + 1) % this.#slots.length;
    return slot;
  }
}
