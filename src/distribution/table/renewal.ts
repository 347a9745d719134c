import type { CancelTimer, Clock } from "../../base/mod.ts";
import type { Account } from "./claims/account.ts";
import type { OwnAccounts } from "./claims/own_accounts.ts";
import { ReadBackQueue } from "./claims/read_back_queue.ts";
import type { Reconciler } from "./claims/reconciler.ts";
import type { RefreshWheel } from "./claims/refresh_wheel.ts";
import type { Heartbeat } from "./mesh/heartbeat.ts";

/** The parts that `Renewal` works with. */
export interface RenewalDeps {
  readonly clock: Clock;
  readonly wheel: RefreshWheel;
  readonly accounts: OwnAccounts;
  readonly reconciler: Reconciler;
  readonly heart: Heartbeat;
  /** Milliseconds after a write at which the account is read back. */
  readonly readBackMs: readonly number[];
  /** Runs a promise that never rejects. */
  spawn(task: Promise<void>): void;
}

/**
 * Renews this node's entries in step with the wheel, reads back what was just written, and beats the
 * heart when that is due.
 */
export class Renewal {
  readonly #deps: RenewalDeps;
  readonly #readBack: ReadBackQueue;
  /** Accounts that are being read back. */
  #readingBack = 0;
  #isRunning = false;
  #ticksDue = 0;
  #isTurning = false;
  #isRestoring = false;
  #cancelTick: CancelTimer = () => {};

  constructor(deps: RenewalDeps) {
    this.#deps = deps;
    this.#readBack = new ReadBackQueue(deps.readBackMs);
  }

  /** Number of read-backs that are still to come. */
  get readBacks(): number {
    return this.#readBack.size + this.#readingBack;
  }

  start(): void {
    this.#isRunning = true;
    this.#scheduleTick();
  }

  close(): void {
    this.#isRunning = false;
    this.#cancelTick();
  }

  /** Reads the account back, because it has changed. */
  readBack(account: Account): void {
    this.#readBack.add(account, this.#deps.clock.monotonicMs());
  }

  /** Writes all entries anew. */
  async refreshAll(): Promise<void> {
    if (this.#isRestoring) return;
    const { accounts, reconciler } = this.#deps;
    this.#isRestoring = true;
    for (const account of accounts.all()) account.restartRenewals();
    await reconciler.refresh(accounts.all());
    this.#isRestoring = false;
  }

  #scheduleTick(): void {
    const { clock, wheel, spawn } = this.#deps;
    this.#cancelTick = clock.after(wheel.tickMs, () => {
      this.#scheduleTick();
      this.#ticksDue++;
      spawn(this.#turn());
    });
  }

  /** Runs one step of all recurring work. A slow Redis makes steps late, never many at once. */
  async #turn(): Promise<void> {
    if (this.#isTurning) return;
    const { clock, wheel, reconciler, heart } = this.#deps;
    this.#isTurning = true;
    try {
      if (heart.isDue) await heart.beat();
      while (this.#ticksDue > 0 && this.#isRunning) {
        this.#ticksDue--;
        const accounts = wheel.tick();
        if (heart.status === "up") await reconciler.refresh(accounts);
        else reconciler.dropExpired(accounts);
      }
      const due = this.#readBack.take(clock.monotonicMs());
      this.#readingBack = due.size;
      if (due.size > 0 && heart.status === "up") await reconciler.refresh(due);
    } finally {
      this.#readingBack = 0;
      this.#isTurning = false;
    }
  }
}
