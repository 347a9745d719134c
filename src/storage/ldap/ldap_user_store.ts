import { randomBytes } from "node:crypto";
import type { Clock } from "../../base/mod.ts";
import { storageError } from "../storage_error.ts";
import type { ListPage, UserStore } from "../user_store.ts";
import { DEFAULT_PAGE_LIMIT } from "../user_store.ts";
import { byCodePoints } from "./code_points.ts";
import type { LdapAccounts } from "./ldap_accounts.ts";
import type { LdapDirectory } from "./ldap_directory.ts";
import { escapeDnValue } from "./ldap_text.ts";

/** Parts of the accounts of a host. */
export interface LdapUserStoreDeps {
  readonly accounts: LdapAccounts;
  /** Connections for the logins of people. */
  readonly binds: LdapDirectory;
  readonly base: string;
  readonly clock: Clock;
}

/** Accounts of a host that are listed; more are an error. */
const MAX_LISTED = 1_000_000;
/** Milliseconds for which a list is kept, so that its pages cost one search together. */
const LIST_LIFETIME_MS = 60_000;

/** The accounts of one domain in a directory, which checks their passwords and is never changed. */
export class LdapUserStore implements UserStore {
  readonly #deps: LdapUserStoreDeps;
  #listed: { readonly all: readonly string[]; readonly untilMs: number } | undefined;

  constructor(deps: LdapUserStoreDeps) {
    this.#deps = deps;
  }

  /**
   * Searches the account, and logs in as its entry. A name without an account takes the same steps,
   * with an entry that nobody has.
   */
  async checkPassword(
    localpart: string,
    password: string,
  ): Promise<{ readonly creation: string } | undefined> {
    const { accounts, binds, base } = this.#deps;
    const entry = await accounts.find(localpart, [accounts.idAttribute]);
    const dn = entry?.dn ??
      `cn=${escapeDnValue(`nobody-${randomBytes(8).toString("hex")}`)},${base}`;
    const isRight = await binds.accepts(dn, password);
    return isRight && entry !== undefined ? { creation: accounts.creationOf(entry) } : undefined;
  }

  async exists(localpart: string): Promise<boolean> {
    return (await this.existing([localpart])).has(localpart);
  }

  async existing(localparts: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const { accounts } = this.#deps;
    const found = await accounts.findAll(localparts, [accounts.idAttribute]);
    return new Map(found.map(({ localpart, entry }) => [localpart, accounts.creationOf(entry)]));
  }

  async list({ after, limit = DEFAULT_PAGE_LIMIT }: ListPage = {}): Promise<readonly string[]> {
    if (!Number.isSafeInteger(limit) || limit < 1) {
      throw new RangeError(`Cannot list ${limit} accounts: the limit is at least 1`);
    }
    const all = await this.#all(after === undefined);
    const rest = after === undefined ? all : all.slice(firstAfter(all, after));
    return rest.slice(0, limit);
  }

  /** Accounts without keys have no shape: nobody is shown one. */
  credentialShapes(): Promise<readonly []> {
    return Promise.resolve([]);
  }

  credentials(): Promise<never> {
    return this.#refuse("read keys of an account from");
  }

  add(): Promise<never> {
    return this.#refuse("add an account to");
  }

  remove(): Promise<never> {
    return this.#refuse("remove an account from");
  }

  setPassword(): Promise<never> {
    return this.#refuse("change an account in");
  }

  complete(): Promise<never> {
    return this.#refuse("change an account in");
  }

  async #all(isFirstPage: boolean): Promise<readonly string[]> {
    const { accounts, clock } = this.#deps;
    const kept = this.#listed;
    if (!isFirstPage && kept !== undefined && clock.monotonicMs() < kept.untilMs) return kept.all;
    const found = await accounts.search("list the accounts in", {
      filter: "",
      attributes: [],
      maxEntries: MAX_LISTED,
    });
    const all = [...new Set(found.map(({ localpart }) => localpart))].toSorted(byCodePoints);
    this.#listed = { all, untilMs: clock.monotonicMs() + LIST_LIFETIME_MS };
    return all;
  }

  #refuse(action: string): Promise<never> {
    const { place } = this.#deps.accounts.directory;
    return Promise.reject(storageError("managed-elsewhere", { action, place }));
  }
}

function firstAfter(sorted: readonly string[], name: string): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (byCodePoints(sorted[middle]!, name) > 0) high = middle;
    else low = middle + 1;
  }
  return low;
}
