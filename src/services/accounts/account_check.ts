import type { Clock } from "../../base/mod.ts";
import { describeError, GatheredLookup } from "../../base/mod.ts";
import type { Logger } from "../../observe/mod.ts";
import type { BareJid } from "../../xmpp/mod.ts";

/** Accounts that one query looks up. */
const ACCOUNTS_AT_ONCE = 500;
/** Milliseconds that a session waits for the lookup. Its data may lie in a database that answers. */
const MAX_WAIT_MS = 2_000;

/** Objects behind the check. */
export interface AccountCheckDeps {
  /** Returns those of at most 500 localparts that have an account at a host, with its creation. */
  existing(host: string, localparts: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Called when the account of a session is gone: its name may have a new owner. */
  gone(account: BareJid): void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Finds out whether the account of a session still exists, before the session changes data of the
 * account, and while it reads some. While one query of a host runs, later questions gather for the
 * next one.
 */
export class AccountCheck {
  readonly #deps: AccountCheckDeps;
  readonly #byHost = new Map<string, GatheredLookup<string>>();

  constructor(deps: AccountCheckDeps) {
    this.#deps = deps;
  }

  /**
   * False when an account is gone, or was made again. A database that does not answer within two
   * seconds keeps nobody from data that may lie in another one. Its answer counts later: `gone` is
   * called. Never rejects.
   *
   * @param creation `LocalSession.creation` of the session
   */
  async isCurrent(account: BareJid, creation: string): Promise<boolean> {
    const late = Promise.withResolvers<true>();
    const cancel = this.#deps.clock.after(MAX_WAIT_MS, () => late.resolve(true));
    try {
      return await Promise.race([this.#look(account, creation), late.promise]);
    } finally {
      cancel();
    }
  }

  /** Never rejects. */
  async #look(account: BareJid, creation: string): Promise<boolean> {
    const { localpart, domainpart: host } = account;
    try {
      if (await this.#lookupAt(host).find(localpart) === creation) return true;
    } catch (thrown) {
      this.#deps.logger.debug("accounts.unchecked", { host, error: describeError(thrown) });
      return true;
    }
    this.#deps.gone(account);
    return false;
  }

  #lookupAt(host: string): GatheredLookup<string> {
    let lookup = this.#byHost.get(host);
    if (lookup === undefined) {
      const ask = (localparts: readonly string[]) => this.#deps.existing(host, localparts);
      this.#byHost.set(host, lookup = new GatheredLookup(ask, ACCOUNTS_AT_ONCE));
    }
    return lookup;
  }
}
