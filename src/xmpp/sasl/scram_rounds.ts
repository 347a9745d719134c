/**
 * How many PBKDF2 rounds the accounts of a host have: as long as they have several counts, made under
 * several configurations, names without an account must show all of them, each as often.
 */
export class ScramRounds {
  readonly #byDefault: number;
  /** Most rounds first, so that names go over to more as accounts do, and not back and forth. */
  #shares: readonly { readonly rounds: number; readonly upTo: number }[] = [];

  /** @param byDefault those of new accounts: what is shown while there are no others */
  constructor(byDefault: number) {
    this.#byDefault = byDefault;
  }

  /** Takes in how many accounts have which count. */
  learn(accounts: ReadonlyMap<number, number>): void {
    let total = 0;
    for (const count of accounts.values()) total += count;
    let sum = 0;
    this.#shares = [...accounts].sort(([one], [other]) => other - one)
      .map(([rounds, count]) => ({ rounds, upTo: (sum += count) / total }));
  }

  /** The count of the account at `position` of all, from 0 to below 1. */
  at(position: number): number {
    return this.#shares.find(({ upTo }) => position < upTo)?.rounds ?? this.#byDefault;
  }
}
