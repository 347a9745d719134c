import { CausewayError } from "../base/mod.ts";
import type { Config } from "../config/mod.ts";
import { nearestKey } from "../config/mod.ts";
import { isLocked } from "../migration/mod.ts";
import type { UserStore } from "../storage/mod.ts";
import { Stores } from "../storage/mod.ts";
import type { CompleteCredentials } from "../xmpp/mod.ts";
import { BareJid, tryParseJid } from "../xmpp/mod.ts";
import { deriveScramCredentials } from "../xmpp/sasl/mod.ts";

/** Gets a password from whoever has it. */
export type PasswordReader = () => string | Promise<string>;

/** Change of a password. */
export interface PasswordChange {
  /** True when an import had reserved the account: it may lack some of its data. */
  readonly wasReserved: boolean;
}

/** The accounts of all hosts of a configuration, for commands. */
export class Accounts implements AsyncDisposable {
  readonly #config: Config;
  readonly #stores: Stores;

  private constructor(config: Config, stores: Stores) {
    this.#config = config;
    this.#stores = stores;
  }

  /** @throws CausewayError `storage/…` when the store cannot be opened */
  static async open(config: Config): Promise<Accounts> {
    return new Accounts(config, await Stores.open(config.storage));
  }

  /** Returns the accounts of one of `hosts`. */
  users(domainpart: string): UserStore {
    return this.#stores.users(domainpart);
  }

  /**
   * Parses the address of an account, existing or not.
   *
   * @throws CausewayError `cli/address` when `text` is not `localpart@domain` with one of `hosts`
   */
  address(text: string): BareJid {
    return parseAccountAddress(text, this.#config.hosts);
  }

  /**
   * Adds an account. Asks for its password last, so that nobody types one for nothing.
   *
   * @throws CausewayError `storage/user-exists`; `storage/managed-elsewhere` for a host whose accounts
   * are in a directory; `storage/…`
   */
  async add(jid: BareJid, readPassword: PasswordReader): Promise<void> {
    const users = this.users(jid.domainpart);
    if (await users.exists(jid.localpart)) throw existsAlready(jid);
    if (isDirectory(users)) throw managedElsewhere("add", jid);
    const credentials = await this.#derive(await readPassword());
    await this.#stores.addAccount(jid.localpart, jid.domainpart, credentials);
  }

  /** Deletes the account with all its data. */
  async remove(jid: BareJid): Promise<void> {
    if (!await this.#stores.removeAccount(jid.localpart, jid.domainpart)) throw isMissing(jid);
  }

  /**
   * Sets the password of an account. Asks for it last, so that nobody types one for nothing.
   *
   * @throws CausewayError `cli/no-account`; `storage/managed-elsewhere`, as `add`; `storage/…`
   */
  async setPassword(jid: BareJid, readPassword: PasswordReader): Promise<PasswordChange> {
    const users = this.users(jid.domainpart);
    if (!await users.exists(jid.localpart)) throw isMissing(jid);
    if (isDirectory(users)) throw managedElsewhere("change the password of", jid);
    const change = await this.#change(jid, await this.#derive(await readPassword()));
    if (change === undefined) throw isMissing(jid);
    return change;
  }

  /** Adds the account, or changes its password when it exists. */
  async put(jid: BareJid, password: string): Promise<PasswordChange> {
    const credentials = await this.#derive(password);
    const change = await this.#change(jid, credentials);
    if (change !== undefined) return change;
    await this.#stores.addAccount(jid.localpart, jid.domainpart, credentials);
    return { wasReserved: false };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stores.close();
  }

  /** Changes the credentials of an account; undefined when there is none. */
  async #change(
    { localpart, domainpart }: BareJid,
    credentials: CompleteCredentials,
  ): Promise<PasswordChange | undefined> {
    const users = this.users(domainpart);
    // A directory keeps no keys, and refuses the change itself.
    const before = isDirectory(users) ? undefined : await users.credentials(localpart);
    if (!await users.setPassword(localpart, credentials)) return undefined;
    return { wasReserved: before !== undefined && isLocked(before) };
  }

  #derive(password: string) {
    return deriveScramCredentials(password, this.#config.auth.scramIterations);
  }
}

/** Parses an account address; see `Accounts.address`. */
export function parseAccountAddress(text: string, hosts: readonly string[]): BareJid {
  const jid = tryParseJid(text);
  if (!(jid instanceof BareJid) || jid.localpart === "") {
    throw new CausewayError(
      "cli/address",
      `Cannot use ${JSON.stringify(text)} as an account: expected localpart@domain`,
    );
  }
  if (!hosts.includes(jid.domainpart)) {
    const nearest = nearestKey(jid.domainpart, hosts);
    const question = nearest === undefined ? "" : `, did you mean ${jid.localpart}@${nearest}?`;
    throw new CausewayError(
      "cli/address",
      `Cannot use ${jid.text} as an account: ${jid.domainpart} is not one of hosts ` +
        `(${hosts.join(", ")})${question}`,
    );
  }
  return jid;
}

/** Returns the warning about a password that opens an account which an import had reserved. */
export function reservedNote({ text }: BareJid): string {
  return `an import had reserved ${text}, which may not have all its data yet: see that the import ` +
    "comes to its end; it leaves this password as it is";
}

/** True for accounts in a directory, which is only read. */
function isDirectory({ checkPassword }: UserStore): boolean {
  return checkPassword !== undefined;
}

function managedElsewhere(action: string, { text, domainpart }: BareJid): CausewayError {
  return new CausewayError(
    "storage/managed-elsewhere",
    `Cannot ${action} ${text}: the accounts of ${domainpart} are in a directory, which is only read ` +
      "here",
  );
}

function existsAlready(jid: BareJid): CausewayError {
  return new CausewayError("storage/user-exists", `Cannot add ${jid.text}: the account exists`);
}

function isMissing(jid: BareJid): CausewayError {
  return new CausewayError("cli/no-account", `Cannot find ${jid.text}: there is no such account`);
}
