import { timingSafeEqual } from "node:crypto";
import type { ScramSecret } from "./credentials.ts";
import { deriveSecret } from "./derive_credentials.ts";
import { HashGate } from "./hash_gate.ts";

/** Passwords that the process hashes at once; how many may wait is bound by who may connect. */
const GATE = new HashGate(2);

/** What a PLAIN message says (RFC 4616 §2). */
export interface PlainMessage {
  readonly authzid: string | undefined;
  /** As sent; not yet prepared. */
  readonly username: string;
  readonly password: string;
}

/** Reads `[authzid] NUL authcid NUL passwd`; undefined when it is not that. */
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
