import { CausewayError } from "../base/mod.ts";
import type { Config } from "../config/mod.ts";
import { nearestKey } from "../config/mod.ts";
import { isLocked } from "../migration/mod.ts";
import type { UserStore } from "../storage/mod.ts";
import { Stores } from "../storage/mod.ts";
import { BareJid, tryParseJid } from "../xmpp/mod.ts";
import { deriveScramCredentials } from "../xmpp/sasl/mod.ts";

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

  async add(jid: BareJid, password: string): Promise<void> {
    // Check first, so that nobody waits for a key derivation that ends in a refusal.
    const users = this.users(jid.domainpart);
    if (await users.exists(jid.localpart)) throw existsAlready(jid);
    const credentials = await this.#derive(password);
    await this.#stores.addAccount(jid.localpart, jid.domainpart, credentials);
  }

  /** Deletes the account with all its data. */
  async remove(jid: BareJid): Promise<void> {
    if (!await this.#stores.removeAccount(jid.localpart, jid.domainpart)) throw isMissing(jid);
  }

  /**
   * Sets the password of an account. The result says whether an import had reserved the account: it
   * may lack some of its data.
   */
  async setPassword(
    jid: BareJid,
    password: string,
  ): Promise<{ readonly wasReserved: boolean }> {
    const users = this.users(jid.domainpart);
    const credentials = await this.#derive(password);
    // A directory keeps no keys, and refuses the change itself.
    const before = users.checkPassword === undefined
      ? await users.credentials(jid.localpart)
      : undefined;
    if (!await users.setPassword(jid.localpart, credentials)) throw isMissing(jid);
    return { wasReserved: before !== undefined && isLocked(before) };
  }

  /** Adds the account, or changes its password when it exists. */
  async put(jid: BareJid, password: string): Promise<void> {
    const users = this.users(jid.domainpart);
    const credentials = await this.#derive(password);
    if (await users.setPassword(jid.localpart, credentials)) return;
    await this.#stores.addAccount(jid.localpart, jid.domainpart, credentials);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stores.close();
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

function existsAlready(jid: BareJid): CausewayError {
  return new CausewayError("storage/user-exists", `Cannot add ${jid.text}: the account exists`);
}

function isMissing(jid: BareJid): CausewayError {
  return new CausewayError("cli/no-account", `Cannot find ${jid.text}: there is no such account`);
}
