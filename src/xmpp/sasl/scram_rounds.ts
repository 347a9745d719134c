/**
 * Shares of the PBKDF2 round counts among the accounts of a host. Accounts made under several
 * configurations have several counts. Names without an account must then show every count, each as often
 * as real accounts do.
 */
export class ScramRounds {
  readonly #byDefault: number;
  /**
   * Shares with most rounds first. As accounts move to more rounds, names move the same way, and never
   * back and forth.
   */
  #shares: readonly { readonly rounds: number; readonly upTo: number }[] = [];

  /** @param byDefault rounds of new accounts, shown while there are no others */
  constructor(byDefault: number) {
    this.#byDefault = byDefault;
  }

  /** Replaces the shares by the number of accounts for each count. */
  learn(accounts: ReadonlyMap<number, number>): void {
    let total = 0;
    for (const count of accounts.values()) total += count;
    let sum = 0;
    this.#shares = [...accounts].sort(([one], [other]) => other - one)
      .map(([rounds, count]) => ({ rounds, upTo: (sum += count) / total }));
  }

  /** Returns the count of the account at `position` among all, from 0 to below 1. */
  at(position: number): number {
    return this.#shares.find(({ upTo }) => position < upTo)?.rounds ?? this.#byDefault;
  }
}
