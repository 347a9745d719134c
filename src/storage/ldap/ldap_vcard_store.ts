import { storageError } from "../storage_error.ts";
import type { FoundPerson, SearchField, SearchOptions, SearchTerm } from "../vcard_search.ts";
import { searchEntryOf } from "../vcard_search.ts";
import type { VcardStore } from "../vcard_store.ts";
import type { LdapAccounts } from "./ldap_accounts.ts";
import { allOf, anyOf, escapeFilterValue } from "./ldap_text.ts";
import type { VcardMapping } from "./ldap_vcard.ts";
import { vcardOf } from "./ldap_vcard.ts";

/** The field of a vCard map behind each field of a search. */
const MAPPED: Readonly<Record<Exclude<SearchField, "user">, string>> = {
  fn: "FN",
  first: "GIVEN",
  middle: "MIDDLE",
  last: "FAMILY",
  nick: "NICKNAME",
  bday: "BDAY",
  ctry: "CTRY",
  locality: "LOCALITY",
  email: "EMAIL",
  orgname: "ORGNAME",
  orgunit: "ORGUNIT",
};

/** The vCards of the accounts of one domain in a directory, which is never changed. */
export class LdapVcardStore implements VcardStore {
  readonly isReadOnly = true;
  readonly #accounts: LdapAccounts;
  readonly #map: readonly VcardMapping[];

  constructor(accounts: LdapAccounts, map: readonly VcardMapping[]) {
    this.#accounts = accounts;
    this.#map = map;
  }

  /** Attributes that a vCard is made of. */
  get attributes(): readonly string[] {
    return [...new Set(this.#map.map(({ attribute }) => attribute).filter((each) => each !== ""))];
  }

  async read(localpart: string): Promise<string | undefined> {
    const entry = await this.#accounts.find(localpart, this.attributes);
    const { domainpart } = this.#accounts;
    return entry && vcardOf(entry, this.#map, { localpart, domainpart });
  }

  write(): Promise<never> {
    return this.#refuse("write a vCard to");
  }

  replace(): Promise<never> {
    return this.#refuse("replace a vCard in");
  }

  remove(): Promise<never> {
    return this.#refuse("remove a vCard from");
  }

  /** A directory says of nobody that they are public, so that a search for those finds nobody. */
  async search(
    terms: readonly SearchTerm[],
    { limit, findsAll }: SearchOptions,
  ): Promise<readonly FoundPerson[]> {
    if (!findsAll || terms.length === 0) return [];
    const filters = terms.map((term) => this.#filterOf(term));
    if (filters.includes(undefined)) return [];
    const found = await this.#accounts.search("search people in", {
      filter: allOf(...filters as string[]), // none is undefined
      attributes: this.attributes.filter((each) => !this.#isPhoto(each)),
      maxEntries: limit,
      takesAny: true,
    });
    const { domainpart } = this.#accounts;
    return found.map(({ localpart, entry }) => ({
      localpart,
      fields: searchEntryOf(localpart, vcardOf(entry, this.#map, { localpart, domainpart })).fields,
    }));
  }

  /** Returns the filter of a term; undefined when nobody can fit it. */
  #filterOf({ field, text }: SearchTerm): string | undefined {
    const trimmed = text.trim();
    const isBegin = trimmed.endsWith("*");
    const begin = isBegin ? trimmed.slice(0, -1).trim() : trimmed;
    if (begin === "") return undefined;
    const filters = this.#formatsOf(field).map(({ attribute, format }) => {
      const at = format.search(/%[us]/);
      const [before, after] = [format.slice(0, at), format.slice(at + 2)];
      const value = `${escapeFilterValue(before + begin)}${isBegin ? "*" : ""}`;
      return `(${attribute}=${value}${escapeFilterValue(after)})`;
    });
    return filters.length === 0 ? undefined : anyOf(...filters);
  }

  /** Returns the attributes of a field whose whole value, but for a frame, is the field's text. */
  #formatsOf(field: SearchField): readonly { attribute: string; format: string }[] {
    const { uids } = this.#accounts;
    if (field === "user") return uids;
    const name = MAPPED[field];
    return this.#map.filter((each) => each.field === name).flatMap(({ pattern, attribute }) => {
      if (pattern === "%s") return [{ attribute, format: "%s" }];
      return pattern === "%u" ? uids : [];
    });
  }

  #isPhoto(attribute: string): boolean {
    return this.#map.some((each) => each.attribute === attribute && each.field === "PHOTO");
  }

  #refuse(action: string): Promise<never> {
    return Promise.reject(
      storageError("managed-elsewhere", { action, place: this.#accounts.directory.place }),
    );
  }
}
