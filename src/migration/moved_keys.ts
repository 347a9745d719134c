import { createHash, timingSafeEqual } from "node:crypto";
import type { ScramCredentials, ScramSecret } from "../xmpp/mod.ts";

/**
 * Returns keys of the same shape to which no password is known, and nobody can find one. They name the
 * import that has reserved the account.
 */
export function locked({ sha1, sha256 }: ScramCredentials, importId: string): ScramCredentials {
  const lock = (secret: ScramSecret, hash: "sha1" | "sha256"): ScramSecret => ({
    ...secret,
    storedKey: new Uint8Array(secret.storedKey.length),
    serverKey: createHash(hash).update(importId).digest(),
  });
  if (sha1 === undefined) return { sha1, sha256: lock(sha256, "sha256") };
  return sha256 === undefined
    ? { sha1: lock(sha1, "sha1"), sha256 }
    : { sha1: lock(sha1, "sha1"), sha256: lock(sha256, "sha256") };
}

/** True for the keys of an account that an import has reserved and not finished yet. */
export function isLocked({ sha1, sha256 }: ScramCredentials): boolean {
  return (sha1 ?? sha256)!.storedKey.every((byte) => byte === 0); // it has one of the two
}

/** True for keys that `locked` made in one import. */
export function isLockedBy({ sha1, sha256 }: ScramCredentials, importId: string): boolean {
  const [hash, { serverKey }] = sha1 === undefined ? ["sha256", sha256] : ["sha1", sha1];
  return createHash(hash).update(importId).digest().equals(serverKey);
}

/** True when both have a key for one hash function at least, and no keys that differ. */
export function areSame(one: ScramCredentials, other: ScramCredentials): boolean {
  const pairs = [[one.sha1, other.sha1], [one.sha256, other.sha256]] as const;
  const shared = pairs.filter(([mine, theirs]) => mine !== undefined && theirs !== undefined);
  return shared.length > 0 &&
    shared.every(([mine, theirs]) => isSameKey(mine as ScramSecret, theirs as ScramSecret));
}

function isSameKey(one: ScramSecret, other: ScramSecret): boolean {
  return one.iterations === other.iterations && one.salt.length === other.salt.length &&
    timingSafeEqual(one.salt, other.salt) && timingSafeEqual(one.storedKey, other.storedKey);
}
