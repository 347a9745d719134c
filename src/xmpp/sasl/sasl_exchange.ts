import type { BareJid } from "../jid.ts";
import { MAX_JID_PART_BYTES, parseJid, tryParseJid, tryPrepareLocalpart } from "../jid_parser.ts";
import type { CredentialSource, ScramCredentials, ScramHash } from "./credentials.ts";
import { secretFor } from "./credentials.ts";
import type { FakeCredentials } from "./fake_credentials.ts";
import type { SaslMechanism } from "./mechanism.ts";
import { scramHashOf } from "./mechanism.ts";
import { tryParsePlain, verifyPassword } from "./plain.ts";
import { tryPreparePassword } from "./prepare_password.ts";
import type { SaslCondition } from "./sasl_condition.ts";
import { encodeSaslText, tryDecodeSaslText } from "./sasl_text.ts";
import type { ScramChallenge } from "./scram.ts";
import { challengeScram, parseScramFirst, verifyScramFinal } from "./scram.ts";

/** Guesses at passwords, counted by account, whether or not it exists. */
export interface LoginAttempts {
  /** A guess is made; false when the account has had too many wrong ones. */
  begin(account: string): boolean;
  /** The guess that began was right. */
  succeeded(account: string): void;
}

/** What an exchange needs to know of the host that is logged in to. */
export interface SaslHost {
  readonly domain: string;
  readonly source: CredentialSource;
  readonly fake: FakeCredentials;
  /** @default every guess is let through */
  readonly attempts?: LoginAttempts;
  /** Hashes a password and compares it. @default `verifyPassword` */
  readonly verify?: typeof verifyPassword;
  /** A fresh nonce: printable ASCII without a comma, at least 18 random bytes' worth. */
  nonce(): string;
}

/** What the server says next. `text` is base64 as it stands in the element. */
export type SaslReply =
  | { readonly kind: "challenge"; readonly text: string }
  | { readonly kind: "success"; readonly account: BareJid; readonly text: string | undefined }
  | { readonly kind: "failure"; readonly condition: SaslCondition };

type Expecting =
  | { readonly kind: "first" }
  | {
    readonly kind: "final";
    readonly challenge: ScramChallenge;
    readonly found: Found;
  }
  | { readonly kind: "nothing" };

/** Whom a user name stands for. */
interface Found {
  /** False when there is no such account; `credentials` are fake then. */
  readonly isAccount: boolean;
  readonly credentials: ScramCredentials;
  /** What its attempts are counted by: the bare JID of the account, if there can be one. */
  readonly name: string;
}

/**
 * Base64 units of one message; more are refused before they are looked at. The longest message that can
 * succeed has a JID, a name and a password, or a JID and a name with each comma written in three.
 */
export const MAX_SASL_TEXT_UNITS = 16_384;

/**
 * One authentication attempt, server side: what the client says goes in, what to answer comes out.
 *
 * An account that does not exist takes the same steps, the same time and ends in the same
 * `not-authorized` as a wrong password. Calls must not overlap.
 */
export class SaslExchange {
  readonly mechanism: SaslMechanism;
  readonly #host: SaslHost;
  #expecting: Expecting = { kind: "first" };

  constructor(mechanism: SaslMechanism, host: SaslHost) {
    this.mechanism = mechanism;
    this.#host = host;
  }

  /**
   * @param text base64 as it stood in `<auth/>` or `<response/>`; undefined for an `<auth/>` without
   * an initial response, which is answered by an empty challenge
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
    const found = await this.#lookUp(plain.username);
    if (found === undefined) return failure("temporary-auth-failure");
    if (!this.#mayGuess(found)) return failure("temporary-auth-failure");
    const verify = this.#host.verify ?? verifyPassword;
    const isRight = await verify(found.credentials.sha256, password);
    if (!isRight || !found.isAccount) return failure("not-authorized");
    this.#host.attempts?.succeeded(found.name);
    return authorize(found.name, plain.authzid, undefined);
  }

  async #scramFirst(hash: ScramHash, message: string): Promise<SaslReply> {
    const first = parseScramFirst(message);
    if (!first.ok) return failure(first.condition);
    const found = await this.#lookUp(first.value.username);
    if (found === undefined) return failure("temporary-auth-failure");
    const challenge = challengeScram(first.value, {
      hash,
      secret: secretFor(found.credentials, hash),
      serverNonce: this.#host.nonce(),
    });
    this.#expecting = { kind: "final", challenge, found };
    return { kind: "challenge", text: encodeSaslText(challenge.message) };
  }

  /** Synchronous, so that guesses side by side are counted one after another. */
  #scramFinal(challenge: ScramChallenge, found: Found, message: string): SaslReply {
    if (!this.#mayGuess(found)) return failure("temporary-auth-failure");
    const verified = verifyScramFinal(challenge, message);
    if (!verified.ok) return failure(verified.condition);
    if (!found.isAccount) return failure("not-authorized");
    this.#host.attempts?.succeeded(found.name);
    return authorize(found.name, challenge.first.authzid, encodeSaslText(verified.value));
  }

  #mayGuess(found: Found): boolean {
    return this.#host.attempts?.begin(found.name) ?? true;
  }

  /**
   * The account's credentials, or fake ones without an account; undefined when the store fails. Who asks
   * is a stranger with a clock: every name takes the same steps, which depend on the name alone.
   */
  async #lookUp(username: string): Promise<Found | undefined> {
    const prepared = tryPreparePassword(username) ?? username.slice(0, MAX_JID_PART_BYTES);
    const localpart = tryPrepareLocalpart(prepared);
    // Made for those who exist too, so that both take as long.
    const fake = this.#host.fake.credentialsOf(localpart ?? prepared);
    try {
      // Names that no account can have are asked for too, so that they take as long.
      const credentials = await this.#host.source.credentials(localpart ?? "");
      return {
        isAccount: credentials !== undefined && localpart !== undefined,
        credentials: credentials ?? fake,
        name: localpart === undefined ? prepared : `${localpart}@${this.#host.domain}`,
      };
    } catch {
      return undefined; // the store reports its own failures; the client is told to try again
    }
  }
}

/**
 * RFC 6120 §6.3.8: nobody may act for another account.
 * @param account its bare JID
 */
function authorize(
  account: string,
  authzid: string | undefined,
  text: string | undefined,
): SaslReply {
  const { bare } = parseJid(account);
  if (authzid !== undefined && tryParseJid(authzid)?.text !== bare.text) {
    return failure("invalid-authzid");
  }
  return { kind: "success", account: bare, text };
}

function failure(condition: SaslCondition): SaslReply {
  return { kind: "failure", condition };
}
