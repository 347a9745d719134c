import { createHash, createHmac, pbkdf2, randomBytes } from "node:crypto";
import { CausewayError } from "../../base/mod.ts";
import type { CompleteCredentials, ScramHash, ScramSecret } from "./credentials.ts";
import { tryPreparePassword } from "./prepare_password.ts";

/** Default number of PBKDF2 rounds for new passwords. */
export const DEFAULT_SCRAM_ITERATIONS = 10_000;

/** Bytes of salt made for a new password. */
export const SCRAM_SALT_BYTES = 16;

const NODE_DIGEST = { "SHA-1": "sha1", "SHA-256": "sha256" } as const;

/** Bytes in the output of a hash function. */
export const HASH_BYTES: Readonly<Record<ScramHash, number>> = { "SHA-1": 20, "SHA-256": 32 };

/**
 * Derives the stored data of a new password: fresh salts, and keys for both hash functions. The
 * expensive part runs off the event loop.
 *
 * @throws CausewayError `sasl/password-unusable` when SASLprep refuses the password
 */
export async function deriveScramCredentials(
  password: string,
  iterations: number = DEFAULT_SCRAM_ITERATIONS,
): Promise<CompleteCredentials> {
  const prepared = tryPreparePassword(password);
  if (prepared === undefined) {
    throw new CausewayError(
      "sasl/password-unusable",
      "Cannot use the password: it is empty, too long, or holds characters that SASLprep prohibits",
    );
  }
  const [sha1, sha256] = await Promise.all([
    deriveSecret("SHA-1", prepared, randomBytes(SCRAM_SALT_BYTES), iterations),
    deriveSecret("SHA-256", prepared, randomBytes(SCRAM_SALT_BYTES), iterations),
  ]);
  return { sha1, sha256 };
}

/** Derives the keys of a prepared password for one hash function (RFC 5802 §3). */
export async function deriveSecret(
  hash: ScramHash,
  preparedPassword: string,
  salt: Uint8Array,
  iterations: number,
): Promise<ScramSecret> {
  const salted = await saltPassword(hash, preparedPassword, salt, iterations);
  return {
    salt: new Uint8Array(salt),
    iterations,
    storedKey: digest(hash, hmac(hash, salted, "Client Key")),
    serverKey: hmac(hash, salted, "Server Key"),
  };
}

function saltPassword(
  hash: ScramHash,
  password: string,
  salt: Uint8Array,
  iterations: number,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    pbkdf2(password, salt, iterations, HASH_BYTES[hash], NODE_DIGEST[hash], (error, key) => {
      if (error === null) resolve(new Uint8Array(key));
      else reject(error);
    });
  });
}

/** HMAC of RFC 5802 §2.2. */
export function hmac(hash: ScramHash, key: Uint8Array, data: string): Uint8Array {
  return new Uint8Array(createHmac(NODE_DIGEST[hash], key).update(data, "utf8").digest());
}

/** H of RFC 5802 §2.2. */
export function digest(hash: ScramHash, data: Uint8Array): Uint8Array {
  return new Uint8Array(createHash(NODE_DIGEST[hash]).update(data).digest());
}
