import { timingSafeEqual } from "node:crypto";
import type { ScramSecret } from "./credentials.ts";
import { deriveSecret } from "./derive_credentials.ts";
import { HashGate } from "./hash_gate.ts";

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

/** True when a prepared password belongs to a SHA-256 secret; hashes off the event loop. */
export async function verifyPassword(secret: ScramSecret, password: string): Promise<boolean> {
  const derived = await GATE.run(() =>
    deriveSecret("SHA-256", password, secret.salt, secret.iterations)
  );
  return derived.storedKey.length === secret.storedKey.length &&
    timingSafeEqual(derived.storedKey, secret.storedKey);
}
