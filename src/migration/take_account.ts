import { CausewayError } from "../base/mod.ts";
import { removeUnownedMessages } from "../storage/mod.ts";
import type { ScramCredentials } from "../xmpp/mod.ts";
import { AccountData } from "./account_data.ts";
import type { MovedAccount, MovedKind, MovedLogin } from "./moved_account.ts";
import { areSame, isLocked, isLockedBy, locked } from "./moved_keys.ts";
import type { TakingDeps, TakingImport } from "./taking_deps.ts";

/** Findings about an account that an operator or its owner has deleted. */
const DELETED = "it was deleted while it was taken";
const REPLACED =
  "it was deleted while it was taken, and its name has a new owner, who may have got " +
  "some of its data";

/** Findings about an account of a host whose accounts are in a directory. */
const NOT_IN_DIRECTORY = "the directory that keeps the host's accounts has none of this name";
const IN_DIRECTORY =
  "the host's accounts are kept in a directory, which checks the password itself";

/** Result of taking one account. */
export interface Taken {
  /** `there`: it existed already. `refused`: nothing of it was taken. */
  readonly outcome: "added" | "there" | "refused";
  /** Keys of an account that was added and has one only. */
  readonly onlyKey?: "SHA-1" | "SHA-256";
  readonly findings: readonly { readonly kind: MovedKind; readonly reason: string }[];
}

/** An account that is here with its data, and lacks its keys: nobody can log in yet. */
export interface Reserved {
  /** See `AccountCredentials.creation`. */
  readonly creation: string;
  /** The result, if the keys go to this very account. */
  readonly taken: Taken;
  /**
   * Gives the account its keys, unless somebody has given it a password.
   * @throws CausewayError with a code `storage/…`; it may have them then
   */
  finish(): Promise<Taken>;
}

/**
 * Takes an account with its data. What is here already stays as it is, so that to repeat it is safe.
 *
 * A new account comes first, with keys that no password has, so that nobody can log in or take the
 * name. Then come its data, and last its keys. If the process is killed in between and never
 * continues, no later owner of the name gets the data: an operator deletes the account, or gives it a
 * password.
 *
 * Nobody can be kept from logging in to an account of a directory, which checks the passwords. Such an
 * account gets its messages from one import, and only if it has no other data here: it may have got
 * them before. If that import is killed between some of them, and the person reads these before it
 * continues, they come once more.
 *
 * Two imports that take one account at once would give it all messages twice. So one leaves it to the
 * other, which has reserved it, or has the lock of an account whose messages it takes.
 *
 * To repeat it up to the keys gives the same result. Behind them it would be that of an account which
 * existed already. The caller therefore notes what is reserved, and then lets it have its keys.
 *
 * @returns undefined for an account that another import takes, or somebody has just made
 * @throws CausewayError with a code `storage/…`; then the account may be taken again
 */
export async function takeAccount(
  account: MovedAccount,
  deps: TakingImport,
): Promise<Taken | Reserved | undefined> {
  const { localpart, domainpart } = account.jid;
  if (!deps.hosts.includes(domainpart)) {
    return refused("account", `${domainpart} is not one of hosts`);
  }
  const users = deps.stores.users(domainpart);
  const taking = new Taking(account, deps);
  const { data } = taking;
  if (users.checkPassword !== undefined) {
    // A directory makes accounts itself, and keeps no keys.
    if (!await users.exists(localpart)) return refused("account", NOT_IN_DIRECTORY);
    if (account.login !== undefined) data.note("password", IN_DIRECTORY);
    if (!await data.alone(() => data.takeOfDirectory())) return undefined;
    return { outcome: "there", findings: data.findings };
  }
  const existing = await users.credentials(localpart);
  if (existing === undefined || isLocked(existing)) {
    if (existing !== undefined && !isLockedBy(existing, deps.importId) && !deps.takesReserved) {
      return undefined;
    }
    if (account.login === undefined) return refused("account", "nobody could log in to it");
    const credentials = await taking.credentials(account.login);
    if (credentials === undefined) return refused("account", "its password cannot be used");
    if (existing === undefined && !await taking.reserve(credentials)) return undefined;
    // Somebody may delete it, and take the name, at any moment from now on.
    const reserved = await users.credentials(localpart);
    if (reserved === undefined) return refused("account", DELETED);
    if (!isLocked(reserved)) return undefined; // somebody has set a password, or has the name now
    if (!await data.alone(() => data.take(true))) return undefined;
    const { creation = "" } = reserved;
    const { findings } = data;
    const taken: Taken = { outcome: "added", ...onlyKeyOf(credentials), findings };
    const { login } = account;
    const finish = async () => {
      const meant = { creation, credentials: reserved };
      if (await users.setPassword(localpart, credentials, meant)) return taken;
      // It is gone, or somebody has set a password: an operator, or an import that was taken for gone.
      const existing = await users.credentials(localpart);
      if (existing !== undefined && (existing.creation ?? "") === creation) {
        await taking.compareLogin(login, existing);
      }
      return await taking.there(creation);
    };
    return { creation, taken, finish };
  }
  await data.take(false);
  if (account.login !== undefined) await taking.compareLogin(account.login, existing);
  return await taking.there(existing.creation ?? "");
}

/**
 * Returns true when an account that was reserved got its keys before the process was killed.
 *
 * @param creation that of the reserved account
 * @throws CausewayError with a code `storage/…`
 */
export async function hasKeys(
  account: MovedAccount,
  creation: string,
  deps: TakingDeps,
): Promise<boolean> {
  const { jid: { localpart, domainpart }, login } = account;
  if (!deps.hosts.includes(domainpart)) return false;
  const users = deps.stores.users(domainpart);
  if (users.checkPassword !== undefined) return false; // it was moved to a directory meanwhile
  const existing = await users.credentials(localpart);
  if (existing === undefined || isLocked(existing) || login === undefined) return false;
  if ((existing.creation ?? "") !== creation) return false;
  return login.kind === "password"
    ? await deps.verify(existing, login.password)
    : areSame(existing, login.credentials);
}

function refused(kind: MovedKind, reason: string): Taken {
  return { outcome: "refused", findings: [{ kind, reason }] };
}

/** The login of one account that is taken, and the result. */
class Taking {
  readonly data: AccountData;
  readonly #account: MovedAccount;
  readonly #deps: TakingImport;

  constructor(account: MovedAccount, deps: TakingImport) {
    this.data = new AccountData(account, deps);
    this.#account = account;
    this.#deps = deps;
  }

  /** Returns the keys of a login, undefined for a password that cannot be used. */
  async credentials(login: MovedLogin): Promise<ScramCredentials | undefined> {
    if (login.kind === "keys") return login.credentials;
    try {
      return await this.#deps.derive(login.password);
    } catch (thrown) {
      if (thrown instanceof CausewayError && thrown.code === "sasl/password-unusable") {
        return undefined;
      }
      throw thrown;
    }
  }

  /** Makes the account, and leaves it locked; false when it is there by now. */
  async reserve(credentials: ScramCredentials): Promise<boolean> {
    const { localpart, domainpart, text } = this.#account.jid;
    const { stores, importId } = this.#deps;
    const users = stores.users(domainpart);
    const messages = stores.offlineMessages(domainpart);
    try {
      await stores.archives(domainpart).closeUnowned?.(text);
      await removeUnownedMessages(localpart, { users, messages });
      await users.add(localpart, locked(credentials, importId));
      return true;
    } catch (thrown) {
      if (thrown instanceof CausewayError && thrown.code === "storage/user-exists") return false;
      throw thrown;
    }
  }

  /** Returns the result for an account that existed when it was looked for. */
  async there(creation: string): Promise<Taken> {
    const { localpart, domainpart } = this.#account.jid;
    const owners = await this.#deps.stores.users(domainpart).existing([localpart]);
    if (owners.get(localpart) !== creation) return await this.gone();
    return { outcome: "there", findings: this.data.findings };
  }

  /** Returns the result for an account that was deleted while it was taken. */
  async gone(): Promise<Taken> {
    const { localpart, domainpart } = this.#account.jid;
    if (await this.#deps.stores.users(domainpart).exists(localpart)) {
      return refused("account", REPLACED);
    }
    await this.data.removeAll();
    return refused("account", DELETED);
  }

  /** Adds a key that an account lacks, or reports that it has another password. */
  async compareLogin(login: MovedLogin, existing: ScramCredentials): Promise<void> {
    const { localpart, domainpart } = this.#account.jid;
    if (login.kind === "password") {
      if (await this.#deps.verify(existing, login.password)) return;
    } else {
      const { credentials } = login;
      if (areSame(existing, credentials)) {
        const sha1 = existing.sha1 ?? credentials.sha1;
        const sha256 = existing.sha256 ?? credentials.sha256;
        if (sha1 === undefined || sha256 === undefined) return;
        if (existing.sha1 !== undefined && existing.sha256 !== undefined) return;
        await this.#deps.stores.users(domainpart).complete(localpart, { sha1, sha256 });
        return;
      }
    }
    this.data.note("password", "the account exists with another password, which it keeps");
  }
}

function onlyKeyOf({ sha1, sha256 }: ScramCredentials): Pick<Taken, "onlyKey"> {
  if (sha256 === undefined) return { onlyKey: "SHA-1" };
  return sha1 === undefined ? { onlyKey: "SHA-256" } : {};
}
