import type { PrivacyStore } from "../../storage/mod.ts";
import type { BareJid } from "../../xmpp/mod.ts";
import type { Privacy, PrivacyRoster } from "./account_privacy.ts";
import { AccountPrivacy, readPrivacy } from "./account_privacy.ts";
import type { PrivacyDeps } from "./privacy_ports.ts";

/** Lists of accounts as the database has them, with the rosters that they need. */
export class StoredLists {
  readonly #hosts: PrivacyDeps["hosts"];

  constructor(hosts: PrivacyDeps["hosts"]) {
    this.#hosts = hosts;
  }

  /** Returns the store of a host that has lists. @throws TypeError for another host */
  store(domain: string): PrivacyStore {
    const store = this.#hosts.store(domain);
    if (store === undefined) {
      throw new TypeError(`Cannot use privacy lists of ${domain}: it has none`);
    }
    return store;
  }

  /**
   * Reads the lists of an account; undefined when it never had any, and no session uses one.
   * @param known the lists that its sessions here go by until now
   */
  async read(account: BareJid, known?: AccountPrivacy): Promise<AccountPrivacy | undefined> {
    const stored = await this.store(account.domainpart).read(account.localpart);
    if (stored.version === 0 && (known?.active.size ?? 0) === 0) return undefined;
    const privacy = readPrivacy(stored, known?.privacy);
    return new AccountPrivacy(account, privacy, await this.rosterFor(account, privacy, known));
  }

  /**
   * Reads the roster of an account; undefined when no list needs it: neither a stored one, nor an
   * active one that is stored no more. A roster that is still the same stays the same object.
   */
  async rosterFor(
    account: BareJid,
    { lists }: Privacy,
    known: AccountPrivacy | undefined,
  ): Promise<PrivacyRoster | undefined> {
    const all = [...lists.values(), ...known?.active.values() ?? []];
    if (!all.some(({ needsRoster }) => needsRoster)) return undefined;
    const roster = await this.rosterOf(account);
    return known?.roster !== undefined && isSame(known.roster, roster) ? known.roster : roster;
  }

  /** Reads what an account sees of its roster. */
  async rosterOf(account: BareJid): Promise<PrivacyRoster> {
    const { items = [] } = await this.#hosts.rosters(account.domainpart)?.read(account.text) ??
      {};
    return new Map(items.filter(({ isListed }) => isListed).map((item) => [item.jid, item]));
  }
}

/** True for two rosters that differ in nothing that a rule can name. */
function isSame(one: PrivacyRoster, other: PrivacyRoster): boolean {
  return one.size === other.size && [...one].every(([jid, { subscription, groups }]) => {
    const contact = other.get(jid);
    return contact?.subscription === subscription && contact.groups.length === groups.length &&
      contact.groups.every((group, index) => group === groups[index]);
  });
}
