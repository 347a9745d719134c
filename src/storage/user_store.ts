import type {
  CompleteCredentials,
  CountedShape,
  CredentialSource,
  ScramCredentials,
} from "../xmpp/sasl/mod.ts";

/** One page of a list. */
export interface ListPage {
  /**
   * The localpart after which the page begins. Without it, the page begins at the first account.
   */
  readonly after?: string;
  /** Accounts on the page, at least 1. @default 1000 */
  readonly limit?: number;
}

/** The account that a change is meant for, and none that has its name by now. */
export interface MeantAccount {
  /** `AccountCredentials.creation` of the account. Another account of the same name is none. */
  readonly creation: string;
  /** Credentials that nobody has replaced since. @default whichever the account has */
  readonly credentials?: ScramCredentials;
}

/**
 * The accounts of one domain. Localparts are normalised (RFC 7622 §3.3); of a password only its
 * SCRAM credentials are kept.
 *
 * Every method rejects with a `CausewayError` whose code begins with `storage/` when the backend
 * cannot do it. A change that was reported as done is on the disk.
 */
export interface UserStore extends CredentialSource {
  /**
   * Makes an account. Rejects with `storage/user-exists` when it is there already.
   *
   * @param options `creation` of an account that moves here from another store. Without it the account
   * gets one of its own; empty: it has none
   */
  add(
    localpart: string,
    credentials: ScramCredentials,
    options?: { readonly creation: string },
  ): Promise<void>;
  /**
   * Deletes an account; false when there was none.
   * @param options `creation` as for `MeantAccount`
   */
  remove(localpart: string, options?: { readonly creation: string }): Promise<boolean>;
  /**
   * Replaces the credentials; false when there is no such account.
   * @param meant the account that is meant. @default whoever has the name
   */
  setPassword(
    localpart: string,
    credentials: ScramCredentials,
    meant?: MeantAccount,
  ): Promise<boolean>;
  /** Adds the secret that an account lacks; see `CredentialSource`. */
  complete(localpart: string, credentials: CompleteCredentials): Promise<void>;
  /** Counts the accounts by the shape of their keys. A large store may sample its accounts. */
  credentialShapes(): Promise<readonly CountedShape[]>;
  exists(localpart: string): Promise<boolean>;
  /**
   * Returns those of at most 500 localparts that have an account, each with its
   * `AccountCredentials.creation`.
   */
  existing(localparts: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Localparts in the order of their code points; fewer than `limit` on the last page. */
  list(page?: ListPage): Promise<readonly string[]>;
}

/** Default number of accounts on a page. */
export const DEFAULT_PAGE_LIMIT = 1000;

/** Yields all localparts of `store`, page by page. */
export async function* listUsers(
  store: UserStore,
  limit: number = DEFAULT_PAGE_LIMIT,
): AsyncGenerator<string, void> {
  let page = await store.list({ limit });
  while (page.length > 0) {
    yield* page;
    if (page.length < limit) return;
    page = await store.list({ limit, after: page.at(-1)! });
  }
}
