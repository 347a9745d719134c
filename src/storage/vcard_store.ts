import type { FoundPerson, SearchOptions, SearchTerm } from "./vcard_search.ts";

/**
 * The vCards of the accounts of one domain (XEP-0054). Localparts are normalised (RFC 7622 §3.3).
 * The store does not know which accounts exist: reading takes the same steps for all names.
 *
 * Every method rejects with a `CausewayError` whose code begins with `storage/` when the backend
 * cannot do it. A change that was reported as done is on the disk.
 */
export interface VcardStore {
  /** True for vCards that are only read here. A change rejects with `storage/managed-elsewhere`. */
  readonly isReadOnly?: true;
  /** Returns the vCard as XML; undefined when there is none. */
  read(localpart: string): Promise<string | undefined>;
  /**
   * Replaces the vCard by XML that can be read by itself. Its owner is found by its fields from now
   * on, unless it says that it is not public.
   */
  write(localpart: string, xml: string): Promise<void>;
  /**
   * Replaces the vCard if it is still the `expected` one, as `read` has returned it.
   * @param expected undefined to write it only where there is none
   * @param xml undefined to remove it
   * @returns false, and nothing has changed, when it is another one by now
   */
  replace(
    localpart: string,
    expected: string | undefined,
    xml: string | undefined,
  ): Promise<boolean>;
  /** Removes the vCard, if there is one. */
  remove(localpart: string): Promise<void>;
  /** Finds people by fields of their vCards. The cost is bounded, whatever the terms. */
  search(terms: readonly SearchTerm[], options: SearchOptions): Promise<readonly FoundPerson[]>;
}
