import type { Clock } from "../../base/mod.ts";
import { BareJid, tryMakeJid } from "../../xmpp/mod.ts";
import { storageError } from "../storage_error.ts";
import type { UserStore } from "../user_store.ts";
import type { CacheBounds } from "./expiring_cache.ts";
import { ExpiringCache } from "./expiring_cache.ts";
import type { Deref } from "./ldap_connection.ts";
import type { LdapDirectory } from "./ldap_directory.ts";
import { valueIn } from "./ldap_accounts.ts";
import { allOf, anyOf, equals, escapeDnValue, fillFilter, unescapeDnValue } from "./ldap_text.ts";

/** Groups of a directory whose members are contacts of one another. */
export interface SharedRosterOptions {
  readonly base: string;
  readonly deref: Deref;
  /** Attribute with the name of a group. */
  readonly groupAttribute: string;
  /** Attribute with the name of a group as people see it. */
  readonly groupDescription: string;
  /** Attribute with the name of a person as people see it. */
  readonly userDescription: string;
  /** Attribute with the localpart of a person. */
  readonly userUid: string;
  /** Attribute with the members of a group. */
  readonly memberAttribute: string;
  /** A member's value, with `%u` for its id. */
  readonly memberFormat: string;
  /** Expression whose first group is the id in a member's value, instead of the format. */
  readonly memberExpression: RegExp | undefined;
  /** Filter of the groups that an account (`%u`) sees; empty: those that it is a member of. */
  readonly rosterFilter: string;
  /** Filter of the entries of a group (`%g`); empty: those with its name. */
  readonly groupFilter: string;
  /** Filter of the person with an id (`%u`); empty: the one whose localpart it is. */
  readonly userFilter: string;
  /** Further condition on all of them; empty: none. */
  readonly filter: string;
  /** True leaves out people without an account. */
  readonly checksAccounts: boolean;
  /** True shows the contacts that people have themselves too. */
  readonly hasOwnRoster: boolean;
  /** Groups of accounts that are kept. */
  readonly accounts: CacheBounds;
  /** Members of groups that are kept. */
  readonly groups: CacheBounds;
}

/** A contact that the directory gives an account. */
export interface SharedContact {
  /** Bare JID. */
  readonly jid: string;
  /** Empty: none. */
  readonly name: string;
  readonly groups: readonly string[];
}

/** Members of one group, and its name as people see it. */
interface Group {
  readonly name: string;
  readonly members: readonly Omit<SharedContact, "groups">[];
}

/** Groups that one account sees; more are an error. */
const MAX_GROUPS = 200;
/** Entries and members of one group; more are an error. */
const MAX_MEMBERS = 5_000;
/** People who are looked for in one search. */
const PEOPLE_AT_ONCE = 50;
/** Localparts of which a store is asked at once. */
const ACCOUNTS_AT_ONCE = 500;
/** UTF-16 units of a member's value that is looked at. */
const MAX_VALUE_UNITS = 1_024;

/** The contacts that a directory gives the accounts of one host. */
export class SharedRoster {
  readonly #directory: LdapDirectory;
  readonly #domainpart: string;
  readonly #options: SharedRosterOptions;
  readonly #users: UserStore;
  readonly #groupsOf: ExpiringCache<readonly string[]>;
  readonly #groups: ExpiringCache<Group>;

  constructor(
    { directory, domainpart, options, users, clock }: {
      readonly directory: LdapDirectory;
      readonly domainpart: string;
      readonly options: SharedRosterOptions;
      /** The host's accounts, which may be kept elsewhere. */
      readonly users: UserStore;
      readonly clock: Clock;
    },
  ) {
    this.#directory = directory;
    this.#domainpart = domainpart;
    this.#options = options;
    this.#users = users;
    this.#groupsOf = new ExpiringCache(options.accounts, clock);
    this.#groups = new ExpiringCache(options.groups, clock);
  }

  /** Name of the directory for messages. */
  get place(): string {
    return this.#directory.place;
  }

  /**
   * Returns the contacts of an account, by their bare JIDs.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async contactsOf(localpart: string): Promise<ReadonlyMap<string, SharedContact>> {
    const names = await this.#groupsOf.get(localpart, () => this.#findGroups(localpart));
    const own = `${localpart}@${this.#domainpart}`;
    const contacts = new Map<string, SharedContact>();
    for (const name of names) {
      const group = await this.#groups.get(name, () => this.#readGroup(name));
      for (const { jid, name: shown } of group.members) {
        if (jid === own) continue;
        const before = contacts.get(jid);
        const groups = [...new Set([...before?.groups ?? [], group.name])];
        contacts.set(jid, { jid, name: before?.name || shown, groups });
      }
    }
    return contacts;
  }

  async #findGroups(localpart: string): Promise<readonly string[]> {
    const { groupAttribute, memberAttribute, rosterFilter } = this.#options;
    const filter = rosterFilter === ""
      ? equals(memberAttribute, this.#memberValueOf(localpart))
      : this.#filled(rosterFilter, localpart);
    const found = await this.#search("find groups in", filter, {
      attributes: [groupAttribute],
      // One group may be the attribute of many people.
      maxEntries: rosterFilter === "" ? MAX_GROUPS : MAX_MEMBERS,
    });
    const names = [...new Set(found.flatMap((entry) => entry.texts(groupAttribute)))];
    if (names.length > MAX_GROUPS) throw this.#tooLarge("find groups in", MAX_GROUPS);
    return names.toSorted();
  }

  async #readGroup(group: string): Promise<Group> {
    const { groupAttribute, groupDescription, groupFilter, memberAttribute } = this.#options;
    const action = "read a group from";
    const filter = groupFilter === ""
      ? equals(groupAttribute, group)
      : fillFilter(groupFilter, { g: group, d: this.#domainpart });
    const found = await this.#search(action, filter, {
      attributes: [groupDescription, memberAttribute],
      maxEntries: MAX_MEMBERS,
    });
    const ids = new Set(
      found.flatMap((entry) =>
        entry.texts(memberAttribute).flatMap((value) => this.#idIn(value) ?? [])
      ),
    );
    if (ids.size > MAX_MEMBERS) throw this.#tooLarge(action, MAX_MEMBERS);
    const shown = found.map((entry) => entry.text(groupDescription)).find((each) => each !== "");
    return { name: shown ?? group, members: await this.#people([...ids]) };
  }

  async #people(ids: readonly string[]): Promise<Group["members"]> {
    const { userUid, userDescription, userFilter, checksAccounts } = this.#options;
    const names = new Map<string, string>();
    for (let at = 0; at < ids.length; at += PEOPLE_AT_ONCE) {
      const filters = ids.slice(at, at + PEOPLE_AT_ONCE).map((id) =>
        userFilter === "" ? equals(userUid, id) : this.#filled(userFilter, id)
      );
      const found = await this.#search("read people from", anyOf(...filters), {
        attributes: [userUid, userDescription],
        maxEntries: MAX_MEMBERS,
      });
      for (const entry of found) {
        for (const uid of entry.texts(userUid)) {
          const jid = tryMakeJid(uid, this.#domainpart);
          if (!(jid instanceof BareJid) || jid.localpart === "") continue;
          names.set(jid.localpart, entry.text(userDescription));
        }
      }
    }
    const localparts = [...names.keys()];
    const known = checksAccounts ? await this.#existing(localparts) : new Set(localparts);
    return localparts.filter((each) => known.has(each)).map((localpart) => ({
      jid: `${localpart}@${this.#domainpart}`,
      name: names.get(localpart)!, // it is one of the keys
    }));
  }

  async #existing(localparts: readonly string[]): Promise<ReadonlySet<string>> {
    const known = new Set<string>();
    for (let at = 0; at < localparts.length; at += ACCOUNTS_AT_ONCE) {
      const some = await this.#users.existing(localparts.slice(at, at + ACCOUNTS_AT_ONCE));
      for (const each of some.keys()) known.add(each);
    }
    return known;
  }

  /** Returns the value by which groups name a member with this id. */
  #memberValueOf(id: string): string {
    const { memberFormat } = this.#options;
    return memberFormat.replace("%u", () => this.#isOfNames ? escapeDnValue(id) : id);
  }

  /** Returns the id in a member's value; undefined for a value of another kind. */
  #idIn(value: string): string | undefined {
    if (value.length > MAX_VALUE_UNITS) return undefined;
    const { memberExpression, memberFormat } = this.#options;
    const id = memberExpression === undefined
      ? valueIn(value, memberFormat)
      : memberExpression.exec(value)?.[1];
    return id !== undefined && this.#isOfNames ? unescapeDnValue(id) : id;
  }

  /** True when members are named by distinguished names. */
  get #isOfNames(): boolean {
    const { memberFormat, memberExpression } = this.#options;
    return memberFormat.includes("=") || memberExpression?.source.includes("=") === true;
  }

  #filled(filter: string, id: string): string {
    return fillFilter(filter, { u: id, d: this.#domainpart });
  }

  #search(
    action: string,
    filter: string,
    rest: { readonly attributes: readonly string[]; readonly maxEntries: number },
  ) {
    const { base, deref } = this.#options;
    const own = this.#filled(this.#options.filter, "");
    return this.#directory.search(action, { base, deref, filter: allOf(own, filter), ...rest });
  }

  #tooLarge(action: string, most: number) {
    return storageError("too-large", { action, place: this.place }, {
      cause: new Error(`more than ${most}`),
    });
  }
}
