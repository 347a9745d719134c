import type { Buffer } from "node:buffer";
import { createHash } from "node:crypto";

/** Bytes of a key. */
export type Key = Buffer;

/** Returns the key of a text: its SHA-256. Keys have one length, and their order says nothing. */
export function keyOf(text: string): Key {
  return createHash("sha256").update(text).digest();
}

/** Returns the key of an account, by which the tables of all data kinds find its rows. */
export function accountKey(localpart: string, domainpart: string): Key {
  return keyOf(`${localpart}@${domainpart}`);
}
