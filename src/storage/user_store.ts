import type { CredentialSource, ScramCredentials } from "../xmpp/sasl/mod.ts";

/** Which part of a list is wanted. */
export interface ListPage {
  /** The localpart after which the page begins; left out, it begins at the first. */
  readonly after?: string;
  /** Accounts on the page, at least 1. @default 1000 */
  readonly limit?: number;
}

/**
 * The accounts of one domain. Localparts are normalised (RFC 7622 §3.3); of a password only what
 * SCRAM needs is kept.
 *
 * Every method rejects with a `CausewayError` whose code begins with `storage/` when the backend
 * cannot do it; what was reported as done is on the disk.
 */
export interface UserStore extends CredentialSource {
  /** Makes an account. Rejects with `storage/user-exists` when it is there already. */
  add(localpart: string, credentials: ScramCredentials): Promise<void>;
  /** Deletes an account; false when there was none. */
  remove(localpart: string): Promise<boolean>;
  /** Replaces what is kept of the password; false when there is no such account. */
  setPassword(localpart: string, credentials: ScramCredentials): Promise<boolean>;
  /** How many accounts have which count of PBKDF2 rounds; of many accounts a sample is enough. */
  scramRounds(): Promise<ReadonlyMap<number, number>>;
  exists(localpart: string): Promise<boolean>;
  /** Localparts in the order of their code points; fewer than `limit` on the last page. */
  list(page?: ListPage): Promise<readonly string[]>;
}

/** Accounts on a page unless asked otherwise. */
export const DEFAULT_PAGE_LIMIT = 1000;

/** All localparts of `store`, read page by page. */
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
