import { CausewayError, describeError } from "../../base/mod.ts";
import type { RosterItem } from "../../storage/mod.ts";
import type { BareJid, Jid, Stanza } from "../../xmpp/mod.ts";
import type { AccountPrivacy, AppliedList } from "./account_privacy.ts";
import { defaultOf, isDenied, readPrivacy } from "./account_privacy.ts";
import { aspectInbound } from "./privacy_list.ts";
import type { PrivacyMetrics } from "./privacy_metrics.ts";
import type { PrivacyDeps } from "./privacy_ports.ts";
import type { StoredLists } from "./stored_lists.ts";

/** Accounts that hide from others, by bare JID, each with a function that is true for those others. */
export type Hiders = ReadonlyMap<string, (other: Jid) => boolean>;

/** Collaborators of `DefaultLists`. */
export interface DefaultListsDeps extends Pick<PrivacyDeps, "hosts" | "log"> {
  readonly stored: StoredLists;
  readonly metrics: PrivacyMetrics;
  /** True for an account whose lists a session here keeps current. */
  isRead(account: BareJid): boolean;
  /** Returns the lists of an account with sessions here. */
  known(account: BareJid): AccountPrivacy | undefined;
}

/** Default lists of accounts, wherever their sessions are: stanzas for accounts are kept out by them. */
export class DefaultLists {
  readonly #deps: DefaultListsDeps;

  constructor(deps: DefaultListsDeps) {
    this.#deps = deps;
  }

  /**
   * Returns true when the default list of an account denies a stanza that is for the account itself,
   * such as a subscription. Counts the stanza then.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async refusesForAccount(stanza: Stanza): Promise<boolean> {
    return (await this.refusalsFor(stanza.to.bare))(stanza);
  }

  /**
   * Reads the default list of an account. Returns a function that is true for stanzas to the account
   * that the list keeps out. It counts them.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async refusalsFor(account: BareJid): Promise<(stanza: Stanza) => boolean> {
    const applied = await this.#defaultFor(account);
    return (stanza) => {
      const { from, to, kind } = stanza;
      if (applied === undefined) return false;
      if (!isDenied(applied, to, from, aspectInbound(stanza))) return false;
      this.#deps.metrics.blocked("in", kind);
      return true;
    };
  }

  /**
   * Returns those accounts of one host that have lists, each with a function that is true for
   * contacts from whom its default list hides it: those whose requests it denies, and those who do
   * not get its presence. They are answered as strangers, whatever the account's roster says. An
   * account whose list is damaged hides from everybody.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async hiders(accounts: readonly BareJid[]): Promise<Hiders> {
    return await this.#hidersAmong(
      await this.#withLists(accounts),
      (account) => this.#defaultFor(account),
    );
  }

  /**
   * As `hiders`, for an answer to `asker`. The lists are always read from the database, and if there is
   * none to read, the asker's own: the time tells neither whether the one person who would be in the
   * answer hides from the asker, nor whether that person is online.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async hidersFrom(asker: BareJid, accounts: readonly BareJid[]): Promise<Hiders> {
    const store = this.#deps.hosts.store(asker.domainpart);
    if (store === undefined) return new Map();
    const asked = accounts.length === 0 ? [asker] : accounts;
    const versions = await store.versions(asked.map(({ localpart }) => localpart));
    const withLists = asked.filter(({ localpart }) => versions.has(localpart));
    return await this.#hidersAmong(
      withLists.length === 0 ? [asker] : withLists,
      async (account) => {
        const stored = await this.#deps.stored.read(account);
        return stored && { list: defaultOf(stored.privacy), roster: stored.roster };
      },
    );
  }

  async #hidersAmong(
    accounts: readonly BareJid[],
    read: (account: BareJid) => Promise<AppliedList | undefined>,
  ): Promise<Hiders> {
    const found = new Map<string, (contact: Jid) => boolean>();
    for (const account of accounts) {
      try {
        const applied = await read(account);
        if (applied?.list === undefined) continue;
        found.set(account.text, (contact) => isHidden(applied, account, contact));
      } catch (thrown) {
        if (!isDamaged(thrown)) throw thrown;
        // The other accounts are not concerned.
        this.#deps.metrics.failures.inc();
        this.#deps.log.warn("privacy.unread", { error: describeError(thrown) });
        found.set(account.text, () => true);
      }
    }
    return found;
  }

  /**
   * Reads the default list of an account. Returns a function that is true for somebody from whom the list
   * hides the account, as `hiders` says, if the roster has this item for them. The list is always read
   * from the database: it takes the same query whether or not the account exists, and is online.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async hiderOf(account: BareJid): Promise<(asker: Jid, item: RosterItem | undefined) => boolean> {
    const store = this.#deps.hosts.store(account.domainpart);
    if (store === undefined) return () => false;
    const stored = await store.read(account.localpart);
    const list = defaultOf(readPrivacy(stored, this.#deps.known(account)?.privacy));
    return (asker, item) => {
      const roster = new Map(item?.isListed === true ? [[item.jid, item]] : []);
      return isHidden({ list, roster }, account, asker);
    };
  }

  /** Returns those of several accounts that have ever had lists. A single one is not asked for. */
  async #withLists(accounts: readonly BareJid[]): Promise<readonly BareJid[]> {
    const [first] = accounts;
    const store = first && this.#deps.hosts.store(first.domainpart);
    if (store === undefined || accounts.length === 1) return accounts;
    const versions = await store.versions(accounts.map(({ localpart }) => localpart));
    return accounts.filter(({ localpart }) => versions.has(localpart));
  }

  /** Returns the default list of an account, wherever its sessions are; undefined without lists. */
  async #defaultFor(account: BareJid): Promise<AppliedList | undefined> {
    if (this.#deps.hosts.store(account.domainpart) === undefined) return undefined;
    const { isRead, known, stored } = this.#deps;
    const found = isRead(account) ? known(account) : await stored.read(account);
    return found && { list: defaultOf(found.privacy), roster: found.roster };
  }
}

/** True for those whose requests a list of `owner` denies, and those who do not get its presence. */
function isHidden(applied: AppliedList, owner: Jid, asker: Jid): boolean {
  return isDenied(applied, owner, asker, "iq") || isDenied(applied, owner, asker, "presence-out");
}

/** True for the failure to read a list whose text is not ours. The database itself is well. */
export function isDamaged(thrown: unknown): boolean {
  return thrown instanceof CausewayError && thrown.code === "storage/corrupt";
}
