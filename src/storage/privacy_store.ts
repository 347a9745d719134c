/** One privacy list as it is kept: its name, and its items as XML that can be read by itself. */
export interface StoredPrivacyList {
  readonly name: string;
  readonly xml: string;
}

/** The privacy lists of one account. */
export interface StoredPrivacy {
  /** Grows with each change; 0 for an account that has never had a list. */
  readonly version: number;
  /** Name of the default list; undefined: there is none. */
  readonly defaultName: string | undefined;
  /** In no particular order. */
  readonly lists: readonly StoredPrivacyList[];
}

/** One change of the privacy lists of an account. */
export interface PrivacyWrite {
  /** Version that the change was made for, as `read` returned it. */
  readonly expected: number;
  /** Name of the default list from now on. */
  readonly defaultName: string | undefined;
  /** The list that is written, or removed where `xml` is undefined. Undefined: no list changes. */
  readonly list?: { readonly name: string; readonly xml: string | undefined } | undefined;
}

/**
 * The privacy lists of the accounts of one domain (XEP-0016), which hold the block list too
 * (XEP-0191). Localparts are normalised (RFC 7622 §3.3). The store does not know which accounts
 * exist, and does not read the lists.
 *
 * The lists of an account have one version. `write` makes a change only if that version is still
 * the expected one, so that several nodes can change them at the same moment and none loses the
 * change of another.
 *
 * Every method rejects with a `CausewayError` whose code begins with `storage/` when the backend
 * cannot do it. A change that was reported as done is on the disk.
 */
export interface PrivacyStore {
  /** Returns all lists of an account. */
  read(localpart: string): Promise<StoredPrivacy>;
  /**
   * Makes one change.
   * @returns the new version; undefined when the lists have another version than the expected one
   */
  write(localpart: string, write: PrivacyWrite): Promise<number | undefined>;
  /** Returns the versions of those of the accounts that have ever had a list, in one query. */
  versions(localparts: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** Removes all lists of an account. Safe to repeat. */
  removeAll(localpart: string): Promise<void>;
}
