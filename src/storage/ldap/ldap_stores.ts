import { CausewayError, SystemClock } from "../../base/mod.ts";
import type { Clock } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import type { RosterStore } from "../roster_store.ts";
import type { UserStore } from "../user_store.ts";
import type { VcardStore } from "../vcard_store.ts";
import { LdapAccounts } from "./ldap_accounts.ts";
import type { LdapAccountsOptions } from "./ldap_accounts.ts";
import { LdapDirectory } from "./ldap_directory.ts";
import type { LdapPoolOptions } from "./ldap_directory.ts";
import { LdapUserStore } from "./ldap_user_store.ts";
import type { VcardMapping } from "./ldap_vcard.ts";
import { LdapVcardStore } from "./ldap_vcard_store.ts";
import { MergedRosterStore } from "./merged_roster_store.ts";
import { SharedRoster } from "./shared_roster.ts";
import type { SharedRosterOptions } from "./shared_roster.ts";

/** Place of a host's accounts, or of their vCards, in a directory. */
export interface LdapPlace {
  readonly backend: "ldap";
  /** Tag of the pool for searches. */
  readonly pool: string;
  /** Tag of the pool whose servers check passwords, by connections of their own. */
  readonly bindPool: string;
  readonly accounts: LdapAccountsOptions;
  /** Sources of the fields of vCards. */
  readonly vcardMap: readonly VcardMapping[];
}

/** Place of a host's shared roster. */
export interface SharedRosterPlace {
  readonly pool: string;
  readonly options: SharedRosterOptions;
}

/** Objects that measure and log a directory. */
interface Observers {
  readonly metrics: Metrics;
  readonly logger: Logger;
}

/** The directories of a node, and the stores in them. */
export class LdapStores {
  readonly #pools: ReadonlyMap<string, LdapPoolOptions>;
  readonly #clock: Clock;
  readonly #directories = new Map<string, LdapDirectory>();
  readonly #shared = new Map<string, SharedRoster>();
  #observers: Observers | undefined;

  constructor(pools: ReadonlyMap<string, LdapPoolOptions> = new Map(), clock?: Clock) {
    this.#pools = pools;
    this.#clock = clock ?? new SystemClock();
  }

  users(place: LdapPlace, domainpart: string): UserStore {
    return new LdapUserStore({
      accounts: this.#accounts(place, domainpart),
      binds: this.#directory(place.bindPool, "people"),
      base: place.accounts.base,
      clock: this.#clock,
    });
  }

  vcards(place: LdapPlace, domainpart: string): VcardStore {
    return new LdapVcardStore(this.#accounts(place, domainpart), place.vcardMap);
  }

  /** Adds the contacts of a directory to the rosters of a host. */
  rosters(
    { pool, options }: SharedRosterPlace,
    { own, users, domainpart }: {
      readonly own: RosterStore;
      readonly users: UserStore;
      readonly domainpart: string;
    },
  ): RosterStore {
    let shared = this.#shared.get(domainpart);
    if (shared === undefined) {
      const directory = this.#directory(pool, "searches");
      shared = new SharedRoster({ directory, domainpart, options, users, clock: this.#clock });
      this.#shared.set(domainpart, shared);
    }
    return new MergedRosterStore({ own, shared, hasOwn: options.hasOwnRoster, domainpart });
  }

  /**
   * Connects to each directory of `tags`, and returns the failures that may pass by themselves.
   *
   * @throws CausewayError `storage/…` for a failure that stays, such as a wrong password
   */
  async probe(
    tags: Iterable<string>,
  ): Promise<readonly { readonly pool: string; readonly error: CausewayError }[]> {
    const failures: { readonly pool: string; readonly error: CausewayError }[] = [];
    for (const tag of new Set(tags)) {
      const directory = this.#directory(tag, "searches");
      try {
        await directory.probe();
      } catch (error) {
        if (!(error instanceof CausewayError) || !error.retryable) throw error;
        failures.push({ pool: directory.pool, error });
      }
    }
    return failures;
  }

  /** Measures and logs all directories from now on. */
  observe(observers: Observers): void {
    this.#observers = observers;
    for (const directory of this.#directories.values()) directory.observe(observers);
  }

  /** Directories that are in use, with the numbers of their connections. */
  get inUse(): readonly Pick<LdapDirectory, "pool" | "place" | "figures" | "checkFailure">[] {
    return [...this.#directories.values()];
  }

  async close(): Promise<void> {
    await Promise.all([...this.#directories.values()].map((each) => each.close()));
  }

  #accounts({ pool, accounts }: LdapPlace, domainpart: string): LdapAccounts {
    return new LdapAccounts(this.#directory(pool, "searches"), domainpart, accounts);
  }

  #directory(tag: string, use: "searches" | "people"): LdapDirectory {
    const options = this.#pools.get(tag);
    if (options === undefined) throw new TypeError(`Cannot use the pool ${tag}: there is none`);
    const pool = use === "searches" ? `ldap.${tag}` : `ldap.${tag} (logins)`;
    let directory = this.#directories.get(pool);
    if (directory === undefined) {
      directory = new LdapDirectory({ pool, options, use, clock: this.#clock });
      this.#directories.set(pool, directory);
      if (this.#observers !== undefined) directory.observe(this.#observers);
    }
    return directory;
  }
}
