import { GatheredLookup } from "../../base/mod.ts";
import type { PrivacyStore } from "../../storage/mod.ts";

/** Accounts that one query asks for. */
const ACCOUNTS_AT_ONCE = 500;

/**
 * Asks for the versions of accounts' lists. While one query of a host runs, later questions gather
 * for the next one: very many logins at once cost few queries.
 */
export class VersionBatches {
  readonly #storeOf: (host: string) => PrivacyStore;
  readonly #byHost = new Map<string, GatheredLookup<number>>();

  constructor(storeOf: (host: string) => PrivacyStore) {
    this.#storeOf = storeOf;
  }

  /**
   * Returns the version of an account's lists; 0 when it never had any.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async find(host: string, localpart: string): Promise<number> {
    let lookup = this.#byHost.get(host);
    if (lookup === undefined) {
      const ask = (localparts: readonly string[]) => this.#storeOf(host).versions(localparts);
      this.#byHost.set(host, lookup = new GatheredLookup(ask, ACCOUNTS_AT_ONCE));
    }
    return await lookup.find(localpart) ?? 0;
  }
}
