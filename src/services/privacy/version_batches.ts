import type { PrivacyStore } from "../../storage/mod.ts";

/** Accounts that one query asks for. */
const ACCOUNTS_AT_ONCE = 500;

interface Waiting {
  readonly localpart: string;
  readonly found: PromiseWithResolvers<number>;
}

/**
 * Asks for the versions of accounts' lists. While one query of a host runs, later questions gather
 * for the next one: very many logins at once cost few queries.
 */
export class VersionBatches {
  readonly #storeOf: (host: string) => PrivacyStore;
  readonly #waiting = new Map<string, Waiting[]>();

  constructor(storeOf: (host: string) => PrivacyStore) {
    this.#storeOf = storeOf;
  }

  /**
   * Returns the version of an account's lists; 0 when it never had any.
   *
   * @throws CausewayError with a code `storage/…`
   */
  find(host: string, localpart: string): Promise<number> {
    const found = Promise.withResolvers<number>();
    const waiting = this.#waiting.get(host);
    if (waiting !== undefined) waiting.push({ localpart, found });
    else {
      this.#waiting.set(host, [{ localpart, found }]);
      void this.#askAll(host); // never rejects
    }
    return found.promise;
  }

  async #askAll(host: string): Promise<void> {
    const waiting = this.#waiting.get(host)!; // set by the caller
    while (waiting.length > 0) {
      const batch = waiting.splice(0, ACCOUNTS_AT_ONCE);
      try {
        const localparts = new Set(batch.map(({ localpart }) => localpart));
        const versions = await this.#storeOf(host).versions([...localparts]);
        for (const { localpart, found } of batch) found.resolve(versions.get(localpart) ?? 0);
      } catch (thrown) {
        for (const { found } of batch) found.reject(thrown);
      }
    }
    this.#waiting.delete(host);
  }
}
