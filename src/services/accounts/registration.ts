import type { Clock, PeerAddress } from "../../base/mod.ts";
import { addressKey, CausewayError, describeError, RateLimit } from "../../base/mod.ts";
import type { Logger } from "../../observe/mod.ts";
import type { UserStore } from "../../storage/mod.ts";
import type { AccountCreation, CreationOutcome, ScramCredentials } from "../../xmpp/mod.ts";
import { BareJid, tryMakeJid } from "../../xmpp/mod.ts";
import { IpAccess } from "./ip_access.ts";
import type { IpRule } from "./ip_access.ts";
import { passwordBits } from "./password_strength.ts";

/** Options of registration at one host. */
export interface RegistrationOptions {
  readonly ipAccess: readonly IpRule[];
  /** Milliseconds between two accounts that one address makes; 0: any time. */
  readonly timeoutMs: number;
  /** Bits that a password has at least (`passwordBits`); 0: any password. */
  readonly passwordStrength: number;
}

/** Objects behind the registration. */
export interface RegistrationDeps {
  /** Hosts at which strangers may make accounts. */
  readonly hosts: ReadonlyMap<string, RegistrationOptions>;
  /** Returns the accounts of such a host. */
  usersOf(host: string): Pick<UserStore, "exists">;
  /** Makes an account. Rejects with `storage/user-exists` when it is there already. */
  add(jid: BareJid, credentials: ScramCredentials): Promise<void>;
  /** Derives the keys of a password. Rejects with `sasl/password-unusable` for a bad one. */
  derive(password: string): Promise<ScramCredentials>;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** Rules of one host. */
interface HostRules {
  readonly access: IpAccess;
  readonly passwordStrength: number;
  /** Accounts by address; undefined when an address may make any number. */
  readonly made: RateLimit | undefined;
}

/**
 * Makes accounts for clients that have none (XEP-0077 §3.1).
 *
 * The answer `conflict` tells a stranger that an account exists, which no server that lets people
 * choose a name can avoid. Each attempt, right or wrong, counts for the rate of logins of its
 * address, so that nobody asks for many names.
 */
export class Registration implements AccountCreation {
  readonly #deps: RegistrationDeps;
  readonly #rules: ReadonlyMap<string, HostRules>;

  constructor(deps: RegistrationDeps) {
    this.#deps = deps;
    const { clock } = deps;
    this.#rules = new Map([...deps.hosts].map(([host, options]) => {
      const { ipAccess, timeoutMs, passwordStrength } = options;
      const made = timeoutMs === 0
        ? undefined
        : new RateLimit({ perSec: 1000 / timeoutMs, burst: 1 }, clock);
      return [host, { access: new IpAccess(ipAccess), passwordStrength, made }];
    }));
  }

  mayCreate(host: string, { remoteAddress }: PeerAddress): boolean {
    return this.#rules.get(host)?.access.isAllowed(remoteAddress) ?? false;
  }

  async create(
    { username, password, host }: {
      readonly username: string;
      readonly password: string;
      readonly host: string;
    },
    peer: PeerAddress,
  ): Promise<CreationOutcome> {
    const rules = this.#rules.get(host);
    if (rules === undefined || !rules.access.isAllowed(peer.remoteAddress)) return "not-allowed";
    const jid = tryMakeJid(username, host);
    if (!(jid instanceof BareJid) || jid.localpart === "") return "jid-malformed";
    if (passwordBits(password) < rules.passwordStrength) return "not-acceptable";
    const key = addressKey(peer);
    if (rules.made?.take(key) === false) return "resource-constraint";
    const outcome = await this.#add(jid, password);
    if (outcome === "made") {
      this.#deps.logger.info("account.registered", { jid: jid.text, peer: peer.remoteAddress });
    } else rules.made?.giveBack(key);
    return outcome;
  }

  async #add(jid: BareJid, password: string): Promise<CreationOutcome> {
    const users = this.#deps.usersOf(jid.domainpart);
    try {
      // A name that is taken costs no derivation.
      if (await users.exists(jid.localpart)) return "conflict";
      await this.#deps.add(jid, await this.#deps.derive(password));
      return "made";
    } catch (thrown) {
      const code = thrown instanceof CausewayError ? thrown.code : "";
      if (code === "storage/user-exists") return "conflict"; // made at the same moment
      if (code === "sasl/password-unusable") return "not-acceptable";
      if (code === "storage/pool-full") return "resource-constraint";
      this.#deps.logger.warn("account.not-registered", { error: describeError(thrown) });
      return "internal-server-error";
    }
  }
}
