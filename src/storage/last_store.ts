/** The last logout of an account. */
export interface LastLogout {
  /** Wall-clock milliseconds. */
  readonly atMs: number;
  /** Text that the client gave with it; empty for none. */
  readonly status: string;
}

/** The last logout of one account of a domain. */
export interface AccountLogout extends LastLogout {
  readonly localpart: string;
}

/**
 * The last logouts of the accounts of one domain (XEP-0012). Localparts are normalised (RFC 7622
 * §3.3). The store does not know which accounts exist: reading takes the same steps for all names.
 *
 * Every method rejects with a `CausewayError` whose code begins with `storage/` when the backend
 * cannot do it. A change that was reported as done is on the disk.
 */
export interface LastStore {
  read(localpart: string): Promise<LastLogout | undefined>;
  /**
   * Notes logouts of different accounts, all of them or none. A logout that is older than the noted
   * one of its account changes nothing.
   */
  note(logouts: readonly AccountLogout[]): Promise<void>;
  /** Forgets the logout of an account. */
  remove(localpart: string): Promise<void>;
}
