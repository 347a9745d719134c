import type { Clock } from "../../base/mod.ts";
import { describeError, GatheredLookup } from "../../base/mod.ts";
import type { Logger } from "../../observe/mod.ts";
import type { BareJid, CredentialSource } from "../../xmpp/mod.ts";
import type { AccountUse } from "../iq_service.ts";

/** Accounts that one query looks up. */
const ACCOUNTS_AT_ONCE = 500;
/** Milliseconds that a session waits for the lookup. Its data may lie in a database that answers. */
const MAX_WAIT_MS = 2_000;
/** Milliseconds for which a lookup counts for reads: a login and what a client asks then cost one. */
const FRESH_MS = 2_000;
/** Fresh lookups that are remembered. */
const MAX_FRESH = 10_000;

/** Objects behind the check. */
export interface AccountCheckDeps {
  /** Returns those of at most 500 localparts that have an account at a host, with its creation. */
  existing(host: string, localparts: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Called when the account of a session is gone: its name may have a new owner. */
  gone(account: BareJid): void;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The result of a lookup. */
interface Seen {
  readonly creation: string;
  /** Monotonic milliseconds when the lookup began. */
  readonly atMs: number;
}

/**
 * Finds out whether the account of a session still exists, before the session changes data of the
 * account, and while it reads some. While one query of a host runs, later questions gather for the
 * next one. What a login or another check has found counts for reads of the next two seconds.
 */
export class AccountCheck {
  readonly #deps: AccountCheckDeps;
  readonly #byHost = new Map<string, GatheredLookup<string>>();
  /** Accounts that were found lately, by bare JID, the oldest first. */
  readonly #fresh = new Map<string, Seen>();

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
  async isCurrent(account: BareJid, creation: string, use: AccountUse): Promise<boolean> {
    const { clock } = this.#deps;
    const seen = use === "read" ? this.#fresh.get(account.text) : undefined;
    const isFresh = seen?.creation === creation && clock.monotonicMs() - seen.atMs < FRESH_MS;
    if (isFresh) return true;
    const late = Promise.withResolvers<true>();
    const cancel = clock.after(MAX_WAIT_MS, () => late.resolve(true));
    try {
      return await Promise.race([this.#look(account, creation), late.promise]);
    } finally {
      cancel();
    }
  }

  /** Returns the accounts of a host as logins use them: who logs in has been looked up. */
  noting(host: string, source: CredentialSource): CredentialSource {
    const noted = async <Found extends { readonly creation?: string }>(
      localpart: string,
      find: () => Promise<Found | undefined>,
    ) => {
      const atMs = this.#deps.clock.monotonicMs();
      const found = await find();
      if (found !== undefined) {
        this.#note(`${localpart}@${host}`, { creation: found.creation ?? "", atMs });
      }
      return found;
    };
    const { complete, checkPassword } = source;
    return {
      credentials: (localpart) => noted(localpart, () => source.credentials(localpart)),
      ...complete !== undefined && { complete: complete.bind(source) },
      ...checkPassword !== undefined && {
        checkPassword: (localpart, password) =>
          noted(localpart, () => checkPassword.call(source, localpart, password)),
      },
    };
  }

  /** Never rejects. */
  async #look(account: BareJid, creation: string): Promise<boolean> {
    const { localpart, domainpart: host, text } = account;
    const atMs = this.#deps.clock.monotonicMs();
    try {
      if (await this.#lookupAt(host).find(localpart) === creation) {
        this.#note(text, { creation, atMs });
        return true;
      }
    } catch (thrown) {
      this.#deps.logger.debug("accounts.unchecked", { host, error: describeError(thrown) });
      return true;
    }
    this.#fresh.delete(text);
    this.#deps.gone(account);
    return false;
  }

  #note(account: string, seen: Seen): void {
    this.#fresh.delete(account);
    this.#fresh.set(account, seen);
    const outdatedMs = this.#deps.clock.monotonicMs() - FRESH_MS;
    for (const [other, { atMs }] of this.#fresh) {
      if (atMs > outdatedMs && this.#fresh.size <= MAX_FRESH) break;
      this.#fresh.delete(other);
    }
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
