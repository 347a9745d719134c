import { CausewayError, describeError, FairShares, Pauses } from "../../base/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import { Turns } from "../../xmpp/mod.ts";
import { RETRY_MS } from "./last_items.ts";
import type { PepMetrics } from "./pep_metrics.ts";
import type { Telling } from "./pep_notices.ts";
import type { PepDeps } from "./pep_ports.ts";

/**
 * Changes whose notifications may wait to be sent, and as many that sessions elsewhere may be told of
 * once Redis is back. An account has a quarter of the free places, and of the free bytes.
 */
const MAX_UNTOLD = { maxItems: 10_000, maxBytes: 16 * 1_048_576 };

/** A change that is still to be told. */
export interface Untold {
  readonly owner: Jid;
  /** Bytes that are kept for it. */
  readonly bytes: number;
}

/**
 * Tells of a change. Resolves to false when sessions elsewhere are to be told by another attempt.
 * @throws CausewayError with a code `storage/…`
 */
export type Tell = (telling: Telling) => Promise<boolean>;

/** Collaborators of `UntoldChanges`. */
export interface UntoldChangesDeps extends Pick<PepDeps, "sessions" | "paced" | "clock" | "log"> {
  readonly counters: PepMetrics;
}

/**
 * Changes that sessions are still to be told of. Those of one account are told in their order, and again
 * while the database or the session table fails.
 */
export class UntoldChanges {
  readonly #deps: UntoldChangesDeps;
  readonly #turns = new Turns();
  readonly #waiting = new FairShares(MAX_UNTOLD);
  /** As `#turns`, for changes that wait until it is known who is elsewhere. */
  readonly #turnsElsewhere = new Turns();
  readonly #unreached = new FairShares(MAX_UNTOLD);
  /** Pauses before a change is told again. */
  readonly #pauses: Pauses;

  constructor(deps: UntoldChangesDeps) {
    this.#deps = deps;
    this.#pauses = new Pauses(deps.clock);
  }

  /** Gives up all changes that cannot be told now. */
  close(): void {
    this.#pauses.close();
  }

  /** Waits until all changes so far are told. */
  async settled(): Promise<void> {
    await this.#turns.settled();
    await this.#turnsElsewhere.settled();
  }

  /** Tells of a change, behind the earlier ones of its owner. */
  tell(change: Untold, tell: Tell): void {
    const { text: owner } = change.owner;
    const isLate = this.#turns.has(owner);
    const told = new Set<string>();
    this.#await(change, { shares: this.#waiting, turns: this.#turns }, async () => {
      const isForThoseHere = this.#turnsElsewhere.has(owner);
      const hasToldAll = await this.#retry((isAgain) =>
        tell({ isLate: isLate || isAgain, isForThoseHere, told })
      );
      if (!hasToldAll) this.#tellElsewhere(change, (telling) => tell({ ...telling, told }));
    });
  }

  /** Tells sessions elsewhere of a change, behind the earlier ones of its owner. */
  #tellElsewhere(change: Untold, tell: (telling: Omit<Telling, "told">) => Promise<boolean>): void {
    const { sessions, paced } = this.#deps;
    this.#await(change, { shares: this.#unreached, turns: this.#turnsElsewhere }, async () => {
      for (;;) {
        // It is asked before the database, which is not read in vain.
        const isTableThere = await sessions.everywhere([change.owner.text]) !== undefined;
        const attempt = () => paced.run(() => tell({ isLate: true, isForThoseHere: false }));
        if (isTableThere && await this.#retry(attempt)) return;
        if (this.#pauses.isClosed) return this.#deps.counters.failures.inc();
        await this.#pauses.pause(RETRY_MS);
      }
    });
  }

  /** Runs a step, which never rejects, in the turn of the change's owner, if there is room for it. */
  #await(
    { owner: { text }, bytes }: Untold,
    { shares, turns }: { readonly shares: FairShares; readonly turns: Turns },
    step: () => Promise<void>,
  ): void {
    const holders = { singles: [text], crowds: [] };
    if (!shares.mayHold(holders, bytes)) return this.#deps.counters.failures.inc();
    shares.hold(holders, bytes);
    void turns.run(text, step).finally(() => shares.release(holders, bytes));
  }

  /**
   * Tells of a change as often as the database fails in a way that may pass, until this server is
   * closed. Never rejects.
   *
   * @param tell gets true when it has failed before
   * @returns what `tell` did, and true for a change that is given up
   */
  async #retry(tell: (isAgain: boolean) => Promise<boolean>): Promise<boolean> {
    const { log } = this.#deps;
    for (let attempt = 1;; attempt++) {
      try {
        return await tell(attempt > 1);
      } catch (thrown) {
        this.#deps.counters.failures.inc();
        const error = describeError(thrown);
        if (attempt === 1) log.warn("pep.notification-failed", { error });
        const mayPass = thrown instanceof CausewayError && thrown.retryable;
        if (!mayPass || this.#pauses.isClosed) return true;
      }
      await this.#pauses.pause(RETRY_MS);
    }
  }
}
