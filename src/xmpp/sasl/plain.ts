import { timingSafeEqual } from "node:crypto";
import type { ScramHash, ScramSecret } from "./credentials.ts";
import { deriveSecret } from "./derive_credentials.ts";
import { HashGate } from "./hash_gate.ts";
import { tryPreparePassword } from "./prepare_password.ts";

/**
 * Gate for the passwords that the process hashes at once. The limits on connections bound the number
 * that wait.
 */
const GATE = new HashGate(2);

/** Content of a PLAIN message (RFC 4616 §2). */
export interface PlainMessage {
  readonly authzid: string | undefined;
  /** Name as the client sent it, not yet prepared. */
  readonly username: string;
  readonly password: string;
}

/** Reads `[authzid] NUL authcid NUL passwd`; undefined for any other message. */
export function tryParsePlain(message: string): PlainMessage | undefined {
  const parts = message.split("\0", 4);
  if (parts.length !== 3) return undefined;
  const [authzid, username, password] = parts as [string, string, string];
  if (username === "" || password === "") return undefined;
  return { authzid: authzid === "" ? undefined : authzid, username, password };
}

/**
 * Derives the secret of a password with the salt and the rounds of another one, to compare the two.
 * Undefined for a password that nobody can have.
 */
export async function derivePasswordLike(
  secret: Pick<ScramSecret, "salt" | "iterations">,
  password: string,
  hash: ScramHash,
): Promise<ScramSecret | undefined> {
  const prepared = tryPreparePassword(password);
  return prepared === undefined ? undefined : await deriveLike(secret, prepared, hash);
}

/** Derives the secret of a prepared password with a salt and rounds that are given. */
export async function deriveLike(
  { salt, iterations }: Pick<ScramSecret, "salt" | "iterations">,
  password: string,
  hash: ScramHash,
): Promise<ScramSecret> {
  return await GATE.run(() => deriveSecret(hash, password, salt, iterations));
}

/** True when a prepared password belongs to a secret for `hash`; hashes off the event loop. */
export async function verifyPassword(
  secret: ScramSecret,
  password: string,
  hash: ScramHash,
): Promise<boolean> {
  const derived = await deriveLike(secret, password, hash);
  return derived.storedKey.length === secret.storedKey.length &&
    timingSafeEqual(derived.storedKey, secret.storedKey);
}
