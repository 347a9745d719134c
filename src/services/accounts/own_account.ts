import { CausewayError } from "../../base/mod.ts";
import type { Logger } from "../../observe/mod.ts";
import type { UserStore } from "../../storage/mod.ts";
import type { BareJid, ScramCredentials } from "../../xmpp/mod.ts";
import { element, tryMakeJid } from "../../xmpp/mod.ts";
import type { IqAnswer, IqRequest, IqService } from "../iq_service.ts";
import { passwordBits } from "./password_strength.ts";

const NAMESPACE = "jabber:iq:register";

/** Objects behind the services for one's own account. */
export interface OwnAccountDeps {
  /** Returns the accounts of a host. */
  usersOf(host: string): UserStore;
  /** Derives the keys of a new password. Rejects with `sasl/password-unusable` for a bad one. */
  derive(password: string): Promise<ScramCredentials>;
  /** Returns the bits that a new password has at least at a host (`passwordBits`); 0: any password. */
  passwordStrengthOf(host: string): number;
  /** Returns true if people of a host may delete their accounts. */
  mayRemove(host: string): boolean;
  /**
   * Deletes an account with all its data, and keeps its sessions. False when the name belongs to
   * another account by now.
   * @param creation `AccountCredentials.creation` of the account
   */
  remove(account: BareJid, creation: string): Promise<boolean>;
  /** Ends the sessions here that belong to the account of this creation. */
  endSessions(account: BareJid, creation: string): void;
  /** Tells other nodes of the deletion, and deletes what sessions have stored since `remove`. */
  cleanUp(account: BareJid): Promise<void>;
  readonly logger: Logger;
}

/**
 * Makes the services by which people change their password and delete their account (XEP-0077
 * §3.2, §3.3). They take requests from the account's own client at this node alone: no other
 * datacenter can send one in its name.
 */
export function ownAccount(deps: OwnAccountDeps): readonly IqService[] {
  return [new RegisterGet(deps), new RegisterSet(deps)];
}

/** Properties that both services share. */
abstract class RegisterService {
  readonly namespace = NAMESPACE;
  readonly name = "query";
  readonly module = "mod_register";
  readonly targets = ["host", "account"] as const;
  readonly features = [NAMESPACE];
  readonly isOrdered = true;
  protected readonly deps: OwnAccountDeps;

  constructor(deps: OwnAccountDeps) {
    this.deps = deps;
  }
}

/** Tells people that they have an account, and which. */
class RegisterGet extends RegisterService implements IqService {
  readonly type = "get";

  answer({ stanza, client }: IqRequest): IqAnswer {
    const { from, to } = stanza;
    if (client === undefined || from.domainpart !== to.domainpart) return { error: "forbidden" };
    const children = [
      element("registered"),
      element("username", {}, from.localpart),
      element("password"),
    ];
    return { payload: element("query", { xmlns: NAMESPACE }, ...children) };
  }
}

class RegisterSet extends RegisterService implements IqService {
  readonly type = "set";
  readonly isForFormerOwners = true; // it names the account that it means

  answer({ stanza, client, payload }: IqRequest): IqAnswer | Promise<IqAnswer> {
    const { from, to } = stanza;
    if (client === undefined || from.domainpart !== to.domainpart) return { error: "forbidden" };
    // The name may have a new owner, whom the session must not touch.
    const { creation = "" } = client;
    if (payload.child("remove") !== undefined) {
      if (payload.elements.length > 1) return { error: "bad-request" };
      return this.#remove(from.bare, creation);
    }
    const [username, ...moreNames] = textsOf(payload, "username");
    const [password, ...morePasswords] = textsOf(payload, "password");
    if (username === undefined || password === undefined) return { error: "bad-request" };
    if (moreNames.length > 0 || morePasswords.length > 0) return { error: "bad-request" };
    if (tryMakeJid(username, to.domainpart)?.text !== from.bare.text) {
      return { error: "not-allowed" };
    }
    // XEP-0077 §3.3: whoever listens between must not learn the new password.
    if (!client.isConfidential) return { error: "not-authorized" };
    return this.#setPassword(from.bare, creation, password);
  }

  async #setPassword(account: BareJid, creation: string, password: string): Promise<IqAnswer> {
    const isWeak = passwordBits(password) < this.deps.passwordStrengthOf(account.domainpart);
    if (isWeak) return { error: "not-acceptable" };
    let credentials;
    try {
      credentials = await this.deps.derive(password);
    } catch (thrown) {
      const isRefused = thrown instanceof CausewayError && thrown.code === "sasl/password-unusable";
      if (isRefused) return { error: "not-acceptable" };
      throw thrown;
    }
    const users = this.deps.usersOf(account.domainpart);
    if (!await users.setPassword(account.localpart, credentials, { creation })) {
      return { error: "registration-required" };
    }
    this.deps.logger.info("account.password-changed", { jid: account.text });
    return "empty";
  }

  async #remove(account: BareJid, creation: string): Promise<IqAnswer> {
    if (!this.deps.mayRemove(account.domainpart)) return { error: "not-allowed" };
    if (!await this.deps.remove(account, creation)) return { error: "registration-required" };
    this.deps.logger.info("account.removed", { jid: account.text });
    return {
      farewell: {
        endSessions: () => this.deps.endSessions(account, creation),
        cleanUp: () => this.deps.cleanUp(account),
      },
    };
  }
}

function textsOf(payload: IqRequest["payload"], name: string): readonly string[] {
  return payload.elements.filter((each) => each.name === name && each.namespace === NAMESPACE)
    .map(({ text }) => text);
}
