import type { PrivacyStore } from "../../storage/mod.ts";
import type { BareJid } from "../../xmpp/mod.ts";
import type { Privacy, PrivacyRoster } from "./account_privacy.ts";
import { AccountPrivacy, needsRoster, readPrivacy } from "./account_privacy.ts";
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

  /** Reads the lists of an account; undefined when it never had any. */
  async read(account: BareJid, known?: Privacy): Promise<AccountPrivacy | undefined> {
    const stored = await this.store(account.domainpart).read(account.localpart);
    if (stored.version === 0) return undefined;
    const privacy = readPrivacy(stored, known);
    return new AccountPrivacy(account, privacy, await this.rosterFor(account, privacy));
  }

  /** Reads the roster of an account; undefined when none of its lists needs it. */
  async rosterFor(account: BareJid, privacy: Privacy): Promise<PrivacyRoster | undefined> {
    if (!needsRoster(privacy)) return undefined;
    const { items = [] } = await this.#hosts.rosters(account.domainpart)?.read(account.text) ??
      {};
    return new Map(items.filter(({ isListed }) => isListed).map((item) => [item.jid, item]));
  }
}
