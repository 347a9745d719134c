import { CausewayError } from "../../base/mod.ts";
import { BareJid, tryMakeJid } from "../../xmpp/mod.ts";
import type { Deref, LdapSearch } from "./ldap_connection.ts";
import type { LdapDirectory } from "./ldap_directory.ts";
import type { LdapEntry } from "./ldap_entry.ts";
import { allOf, anyOf, equals, fillFilter } from "./ldap_text.ts";

/** An attribute that names accounts. */
export interface LdapUid {
  readonly attribute: string;
  /** Its value, with `%u` for the localpart. */
  readonly format: string;
}

/** A condition on an attribute that is checked here instead of by the server. */
export interface LdapLocalFilter {
  readonly operation: "equal" | "notequal";
  readonly attribute: string;
  readonly values: readonly string[];
}

/** Place of the accounts of one host in a directory. */
export interface LdapAccountsOptions {
  readonly base: string;
  /** Attributes of which any one may hold the localpart. At least one. */
  readonly uids: readonly LdapUid[];
  /** Further condition on accounts; empty: none. */
  readonly filter: string;
  readonly localFilter?: LdapLocalFilter | undefined;
  readonly deref: Deref;
  /**
   * Attribute that tells an entry from an earlier one of the same name. A server gives each new entry
   * another value.
   * @default "entryUUID"
   */
  readonly idAttribute?: string | undefined;
}

/** Attribute with the id of an entry (RFC 4530). */
export const ENTRY_UUID = "entryUUID";

/** Entries that one name may find before those that do not have it exactly are left out. */
const MAX_ALIKE = 20;
/** Bytes of an id that an account keeps as it is; a longer one counts as none. */
const MAX_ID_BYTES = 64;
/** Names that are looked for in one search. */
const NAMES_AT_ONCE = 50;

/** An account, and its entry. */
export interface FoundAccount {
  readonly localpart: string;
  readonly entry: LdapEntry;
}

/** A search among the accounts. */
type AccountSearch = Omit<LdapSearch, "base" | "deref">;

/** An entry with the localparts that it gives its account; at least one. */
interface NamedEntry {
  readonly names: readonly string[];
  readonly entry: LdapEntry;
}

/** The entries of a host's accounts. */
export class LdapAccounts {
  readonly directory: LdapDirectory;
  readonly domainpart: string;
  readonly #options: LdapAccountsOptions;

  constructor(directory: LdapDirectory, domainpart: string, options: LdapAccountsOptions) {
    this.directory = directory;
    this.domainpart = domainpart;
    this.#options = options;
  }

  /**
   * Returns the entry of an account; undefined when there is none.
   *
   * @param localpart normalised. A name that no account can have takes the same steps
   * @throws CausewayError `storage/ambiguous` when several entries have the name, `storage/…`
   */
  async find(localpart: string, attributes: readonly string[]): Promise<LdapEntry | undefined> {
    const found = await this.#search("read an account from", {
      filter: this.#filterOf([localpart]),
      attributes,
      maxEntries: MAX_ALIKE,
    });
    const own = found.filter(({ names }) => names.includes(localpart));
    if (own.length < 2) return own[0]?.entry;
    throw new CausewayError(
      "storage/ambiguous",
      `Cannot read an account from ${this.directory.place}: ${own.length} entries are ` +
        `${localpart}@${this.domainpart}`,
    );
  }

  /** The attributes that name accounts. */
  get uids(): readonly LdapUid[] {
    return this.#options.uids;
  }

  /** Attribute with the ids of entries. */
  get idAttribute(): string {
    return this.#options.idAttribute ?? ENTRY_UUID;
  }

  /**
   * Returns the creation of an account (`AccountCredentials.creation`), which is the id of its entry.
   * Empty when the directory shows no id.
   *
   * @param entry with the attribute `idAttribute`
   */
  creationOf(entry: LdapEntry): string {
    const text = entry.text(this.idAttribute).toLowerCase();
    if (/^[!-~]+$/.test(text) && text.length <= MAX_ID_BYTES) return text;
    // Active Directory has 16 bytes.
    const bytes = entry.bytes(this.idAttribute) ?? new Uint8Array();
    return bytes.length > MAX_ID_BYTES ? "" : bytes.toHex();
  }

  /** Returns the accounts among these names. */
  async findAll(
    localparts: readonly string[],
    attributes: readonly string[] = [],
  ): Promise<readonly FoundAccount[]> {
    const all: FoundAccount[] = [];
    for (let at = 0; at < localparts.length; at += NAMES_AT_ONCE) {
      const names = localparts.slice(at, at + NAMES_AT_ONCE);
      const found = await this.#search("read accounts from", {
        filter: this.#filterOf(names),
        attributes,
        maxEntries: MAX_ALIKE * names.length,
      });
      for (const { entry, names: own } of found) {
        for (const localpart of own) if (names.includes(localpart)) all.push({ localpart, entry });
      }
    }
    return all;
  }

  /** Returns the accounts that a further filter finds; all of them for an empty one. */
  async search(
    action: string,
    { filter, ...search }: AccountSearch,
  ): Promise<readonly FoundAccount[]> {
    const named = this.#options.uids.map(({ attribute }) => `(${attribute}=*)`);
    const whole = allOf(this.#ownFilter(), filter, anyOf(...named));
    const found = await this.#search(action, { ...search, filter: whole });
    return found.map(({ names, entry }) => ({ localpart: names[0]!, entry })); // none has no name
  }

  async #search(
    action: string,
    { attributes, ...search }: AccountSearch,
  ): Promise<readonly NamedEntry[]> {
    const { base, deref, uids, localFilter } = this.#options;
    const asked = new Set([...uids.map(({ attribute }) => attribute), ...attributes]);
    if (localFilter !== undefined) asked.add(localFilter.attribute);
    const entries = await this.directory.search(action, {
      ...search,
      base,
      deref,
      attributes: [...asked],
    });
    return entries.filter((entry) => this.#passes(entry)).flatMap((entry) => {
      const names = this.#namesOf(entry);
      return names.length === 0 ? [] : [{ names, entry }];
    });
  }

  #filterOf(localparts: readonly string[]): string {
    const names = localparts.flatMap((localpart) =>
      this.#options.uids.map(({ attribute, format }) =>
        equals(attribute, format.replace("%u", () => localpart))
      )
    );
    return allOf(this.#ownFilter(), anyOf(...names));
  }

  #ownFilter(): string {
    return fillFilter(this.#options.filter, { d: this.domainpart });
  }

  #passes(entry: LdapEntry): boolean {
    const { localFilter } = this.#options;
    if (localFilter === undefined) return true;
    const { operation, attribute, values } = localFilter;
    const has = entry.texts(attribute).some((each) => values.includes(each));
    return has === (operation === "equal");
  }

  /**
   * Returns the localparts that an entry gives its account. The server compares names by rules of its
   * own, so that they are read from the entry rather than believed to be what was asked for.
   */
  #namesOf(entry: LdapEntry): readonly string[] {
    const names = this.#options.uids.flatMap(({ attribute, format }) =>
      entry.texts(attribute).flatMap((value) => {
        const name = valueIn(value, format);
        const localpart = name === undefined ? undefined : this.prepared(name);
        return localpart === undefined ? [] : [localpart];
      })
    );
    return [...new Set(names)];
  }

  /** Returns a name as a localpart (RFC 7622 §3.3); undefined for one that no account can have. */
  prepared(name: string): string | undefined {
    const jid = tryMakeJid(name, this.domainpart);
    return jid instanceof BareJid && jid.localpart !== "" ? jid.localpart : undefined;
  }
}

/** Returns the part of a value that stands where its format has `%u`; undefined for another value. */
export function valueIn(value: string, format: string): string | undefined {
  const at = format.indexOf("%u");
  const [before, after] = [format.slice(0, at), format.slice(at + 2)];
  if (value.length <= before.length + after.length) return undefined;
  const begin = value.slice(0, before.length);
  const end = value.slice(value.length - after.length);
  const isOfFormat = begin.toLowerCase() === before.toLowerCase() &&
    (after === "" || end.toLowerCase() === after.toLowerCase());
  return isOfFormat ? value.slice(before.length, value.length - after.length) : undefined;
}
