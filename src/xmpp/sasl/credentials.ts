/** The hash functions of the SCRAM mechanisms on offer, as RFC 5802 §4 names them. */
export type ScramHash = "SHA-1" | "SHA-256";

/** Data that a server stores about a password for one hash function (RFC 5802 §3). */
export interface ScramSecret {
  readonly salt: Uint8Array;
  /** PBKDF2 rounds; at least 1, 4 096 by RFC 5802, 10 000 by default here. */
  readonly iterations: number;
  /** 20 bytes for SHA-1, 32 for SHA-256. */
  readonly storedKey: Uint8Array;
  readonly serverKey: Uint8Array;
}

/** Data that a server stores about an account's password: one secret for each hash function. */
export interface CompleteCredentials {
  readonly sha1: ScramSecret;
  readonly sha256: ScramSecret;
}

/**
 * Data about the password of an account as a store has it. At least one secret is there. Accounts that
 * were moved from another server have those that it had, because nobody can compute the other one
 * without the password.
 */
export type ScramCredentials =
  | CompleteCredentials
  | { readonly sha1: ScramSecret; readonly sha256: undefined }
  | { readonly sha1: undefined; readonly sha256: ScramSecret };

/** Credentials of an account, with what tells it from an earlier account of the same name. */
export type AccountCredentials = ScramCredentials & {
  /**
   * Random text that the account got when it was made. Sessions remember it, so that those of an
   * account that was deleted and made again end. @default empty: made by an earlier version
   */
  readonly creation?: string;
};

/** An account whose password its source has checked. */
export type CheckedAccount = Pick<AccountCredentials, "creation">;

/** Source of the accounts of one host; the user store implements it. */
export interface CredentialSource {
  /**
   * Returns the credentials of an account, undefined when there is none. Both cases take the same steps
   * and the same time, because strangers may ask (RFC 5802 §9).
   * @param localpart normalised (RFC 7622 §3.3)
   * @throws when the store cannot be asked; the login then fails with `temporary-auth-failure`
   */
  credentials(localpart: string): Promise<AccountCredentials | undefined>;
  /**
   * Adds the secret that an account lacks. Does nothing when the account has another password by now,
   * or has both secrets.
   * @param credentials the secret that the account has, and the new one
   * @default the account stays as it is
   */
  complete?(localpart: string, credentials: CompleteCredentials): Promise<void>;
  /**
   * Checks a password by the source's own means. A source that has this method keeps no keys, so that
   * its host offers PLAIN alone. Accounts that do not exist take the same steps.
   * @param localpart normalised; empty for a name that no account can have
   * @param password prepared (RFC 4013), not empty
   * @throws when it cannot be checked; the login then fails with `temporary-auth-failure`
   * @returns facts about the account whose password it is; undefined for a wrong password
   * @default passwords are compared with `credentials`
   */
  checkPassword?(localpart: string, password: string): Promise<CheckedAccount | undefined>;
}

/** Returns the secret for one hash function. */
export function secretFor(credentials: CompleteCredentials, hash: ScramHash): ScramSecret {
  return hash === "SHA-1" ? credentials.sha1 : credentials.sha256;
}
