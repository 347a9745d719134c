import type { BareJid } from "../jid/jid.ts";
import {
  MAX_JID_PART_BYTES,
  parseJid,
  tryParseJid,
  tryPrepareLocalpart,
} from "../jid/jid_parser.ts";
import type {
  AccountCredentials,
  CheckedAccount,
  CredentialSource,
  ScramCredentials,
  ScramHash,
} from "./credentials.ts";
import { secretFor } from "./credentials.ts";
import type { FakeCredentials, LoginSecrets } from "./fake_credentials.ts";
import type { SaslMechanism } from "./mechanism.ts";
import { bindsChannel, scramHashOf } from "./mechanism.ts";
import type { PlainMessage } from "./plain.ts";
import { deriveLike, tryParsePlain, verifyPassword } from "./plain.ts";
import { tryPreparePassword } from "./prepare_password.ts";
import type { SaslCondition } from "./sasl_condition.ts";
import { encodeSaslText, tryDecodeSaslText } from "./sasl_text.ts";
import type { ChannelBinding, ScramChallenge } from "./scram.ts";
import { challengeScram, parseScramFirst, verifyScramFinal } from "./scram.ts";

/** Count of password guesses by account, whether or not the account exists. */
export interface LoginAttempts {
  /** Counts a guess before it is checked; false when the account has had too many wrong ones. */
  begin(account: string): boolean;
  /** Reports that the guess that began was right. */
  succeeded(account: string): void;
}

/** Dependencies of an exchange: the host of the login, its accounts, and checks. */
export interface SaslExchangeDeps {
  /** Host of the login. */
  readonly domain: string;
  readonly source: CredentialSource;
  readonly fake: FakeCredentials;
  /** Channel binding that the client was offered on its connection. @default none */
  readonly channelBinding?: ChannelBinding | undefined;
  /** Account that the client has named before; a login as another one fails. @default any may follow */
  readonly claimed?: string | undefined;
  /** @default every guess is let through */
  readonly attempts?: LoginAttempts;
  /** Hashes a password and compares it. @default `verifyPassword` */
  readonly verify?: typeof verifyPassword;
  /** Returns a fresh nonce: printable ASCII without a comma, worth at least 18 random bytes. */
  nonce(): string;
}

/** Next reply of the server. `text` is base64 as it stands in the element. */
export type SaslReply =
  | { readonly kind: "challenge"; readonly text: string }
  | {
    readonly kind: "success";
    readonly account: BareJid;
    readonly text: string | undefined;
    /** See `AccountCredentials.creation`. @default empty */
    readonly creation?: string;
  }
  | { readonly kind: "failure"; readonly condition: SaslCondition };

type Expecting =
  | { readonly kind: "first" }
  | {
    readonly kind: "final";
    readonly challenge: ScramChallenge;
    readonly found: Found;
  }
  | { readonly kind: "nothing" };

/** Account that a user name stands for. */
interface Found {
  /** False when there is no such account; `secrets` are fake then. */
  readonly isAccount: boolean;
  readonly secrets: LoginSecrets;
  /** Credentials of the account as its store has them; undefined without an account. */
  readonly stored: AccountCredentials | undefined;
  readonly localpart: string;
  /** Key by which its attempts are counted: the bare JID of the account, if there can be one. */
  readonly name: string;
}

/**
 * Longest message in base64 units; a longer one is refused unread. The longest message that can succeed
 * has a JID, a name and a password, or a JID and a name with each comma written as three characters.
 */
export const MAX_SASL_TEXT_UNITS = 16_384;

/**
 * One authentication attempt, server side: takes the client's messages, and returns the replies.
 *
 * For a nonexistent account it takes the same steps and the same time as for a wrong password, and ends
 * in the same `not-authorized`. Calls must not overlap.
 */
export class SaslExchange {
  readonly mechanism: SaslMechanism;
  readonly #deps: SaslExchangeDeps;
  #expecting: Expecting = { kind: "first" };

  constructor(mechanism: SaslMechanism, deps: SaslExchangeDeps) {
    this.mechanism = mechanism;
    this.#deps = deps;
  }

  /**
   * @param text base64 as it stood in `<auth/>` or `<response/>`; undefined for an `<auth/>` without an
   * initial response, which an empty challenge answers
   */
  async respond(text: string | undefined): Promise<SaslReply> {
    const expecting = this.#expecting;
    if (text === undefined && expecting.kind === "first") return { kind: "challenge", text: "" };
    this.#expecting = { kind: "nothing" };
    if (text !== undefined && text.length > MAX_SASL_TEXT_UNITS) {
      return failure("malformed-request");
    }
    const message = tryDecodeSaslText(text ?? "");
    if (message === undefined) return failure("incorrect-encoding");
    switch (expecting.kind) {
      case "first": {
        const hash = scramHashOf(this.mechanism);
        return hash === undefined
          ? await this.#plain(message)
          : await this.#scramFirst(hash, message);
      }
      case "final":
        return this.#scramFinal(expecting.challenge, expecting.found, message);
      case "nothing":
        return failure("malformed-request");
      default:
        return expecting satisfies never;
    }
  }

  async #plain(message: string): Promise<SaslReply> {
    const plain = tryParsePlain(message);
    const password = plain && tryPreparePassword(plain.password);
    if (plain === undefined || password === undefined) return failure("malformed-request");
    if (this.#deps.source.checkPassword !== undefined) {
      return await this.#plainBySource(plain, password);
    }
    const found = await this.#lookUp(plain.username);
    if (found === undefined) return failure("temporary-auth-failure");
    if (!this.#mayGuess(found)) return failure("temporary-auth-failure");
    const verify = this.#deps.verify ?? verifyPassword;
    const { plainHash } = found.secrets;
    const isRight = await verify(secretFor(found.secrets, plainHash), password, plainHash);
    if (!isRight || !found.isAccount) return failure("not-authorized");
    this.#deps.attempts?.succeeded(found.name);
    await this.#complete(found, password);
    return this.#authorize(found, plain.authzid, undefined);
  }

  /** Lets the source check the password. A guess is counted before anybody is asked. */
  async #plainBySource(plain: PlainMessage, password: string): Promise<SaslReply> {
    const { source, attempts } = this.#deps;
    const { localpart, name } = this.#nameOf(plain.username);
    if (attempts?.begin(name) === false) return failure("temporary-auth-failure");
    let checked: CheckedAccount | undefined;
    try {
      checked = await source.checkPassword?.(localpart ?? "", password);
    } catch {
      return failure("temporary-auth-failure"); // the store counts its own failures
    }
    if (checked === undefined || localpart === undefined) return failure("not-authorized");
    attempts?.succeeded(name);
    return this.#authorize({ name, stored: checked }, plain.authzid, undefined);
  }

  async #scramFirst(hash: ScramHash, message: string): Promise<SaslReply> {
    const first = parseScramFirst(message, {
      offered: this.#deps.channelBinding,
      isRequired: bindsChannel(this.mechanism),
    });
    if (!first.ok) return failure(first.condition);
    const found = await this.#lookUp(first.value.username);
    if (found === undefined) return failure("temporary-auth-failure");
    const challenge = challengeScram(first.value, {
      hash,
      secret: secretFor(found.secrets, hash),
      serverNonce: this.#deps.nonce(),
    });
    this.#expecting = { kind: "final", challenge, found };
    return { kind: "challenge", text: encodeSaslText(challenge.message) };
  }

  /** Checks the proof. Synchronous, so that parallel guesses are counted one after another. */
  #scramFinal(challenge: ScramChallenge, found: Found, message: string): SaslReply {
    if (!this.#mayGuess(found)) return failure("temporary-auth-failure");
    const verified = verifyScramFinal(challenge, message);
    if (!verified.ok) return failure(verified.condition);
    if (!found.isAccount) return failure("not-authorized");
    this.#deps.attempts?.succeeded(found.name);
    return this.#authorize(found, challenge.first.authzid, encodeSaslText(verified.value));
  }

  /**
   * Adds the key that an account lacks, now that its password is known. It gets the salt and the rounds
   * that strangers have been shown for it, so that they see no change.
   */
  async #complete({ stored, secrets, localpart }: Found, password: string): Promise<void> {
    const { source } = this.#deps;
    const lacked = lackOf(stored);
    if (lacked === undefined || source.complete === undefined) return;
    const secret = await deriveLike(secretFor(secrets, lacked), password, lacked);
    const { sha1, sha256 } = secrets;
    const added = lacked === "SHA-1" ? { sha1: secret, sha256 } : { sha1, sha256: secret };
    try {
      await source.complete(localpart, added);
    } catch {
      // The store logs its own failures. The password is right, and the next login tries again.
    }
  }

  #mayGuess(found: Found): boolean {
    return this.#deps.attempts?.begin(found.name) ?? true;
  }

  /** Refuses an authorization identity other than the account itself (RFC 6120 §6.3.8). */
  #authorize(
    { name, stored }: Pick<Found, "name"> & { readonly stored: CheckedAccount | undefined },
    authzid: string | undefined,
    text: string | undefined,
  ): SaslReply {
    const { bare } = parseJid(name);
    const { claimed } = this.#deps;
    const isOther = (authzid !== undefined && tryParseJid(authzid)?.text !== bare.text) ||
      (claimed !== undefined && tryParseJid(claimed)?.bare.text !== bare.text);
    if (isOther) return failure("invalid-authzid");
    const { creation } = stored ?? {};
    return {
      kind: "success",
      account: bare,
      text,
      ...(creation === undefined ? {} : { creation }),
    };
  }

  /**
   * Returns the account's credentials, or fake ones without an account; undefined when the store fails.
   * A stranger with a clock may be asking, so every name takes the same steps, which depend on the name
   * alone.
   */
  async #lookUp(username: string): Promise<Found | undefined> {
    const { localpart, name, prepared } = this.#nameOf(username);
    try {
      // Look up names that no account can have too, so that they take the same time.
      const stored = await this.#deps.source.credentials(localpart ?? "");
      // Fake credentials are made for existing accounts too, so that both cases take the same time.
      const { domain, fake } = this.#deps;
      return {
        isAccount: stored !== undefined && localpart !== undefined,
        secrets: fake.secretsOf(localpart ?? prepared, domain, stored),
        stored,
        localpart: localpart ?? "",
        name,
      };
    } catch {
      return undefined; // the store logs its own failures; the client may try again
    }
  }

  /** Returns the localpart of a user name, if it can be one, and the name by which guesses count. */
  #nameOf(username: string) {
    const prepared = tryPreparePassword(username) ?? username.slice(0, MAX_JID_PART_BYTES);
    const localpart = tryPrepareLocalpart(prepared);
    const name = localpart === undefined ? prepared : `${localpart}@${this.#deps.domain}`;
    return { prepared, localpart, name };
  }
}

/** Returns the hash function for which an account has no key. */
function lackOf(stored: ScramCredentials | undefined): ScramHash | undefined {
  if (stored === undefined) return undefined;
  if (stored.sha1 === undefined) return "SHA-1";
  return stored.sha256 === undefined ? "SHA-256" : undefined;
}

function failure(condition: SaslCondition): SaslReply {
  return { kind: "failure", condition };
}
