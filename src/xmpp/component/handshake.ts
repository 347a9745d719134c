import { Buffer } from "node:buffer";
import { createHash, timingSafeEqual } from "node:crypto";

/** Returns the proof of a component's secret (XEP-0114 §3): 40 hexadecimal digits. */
export function handshakeDigest(streamId: string, secret: string): string {
  return createHash("sha1").update(streamId, "utf8").update(secret, "utf8").digest("hex");
}

/**
 * True when `text` proves `secret` for a stream. The time it takes does not depend on the first
 * difference.
 */
export function isRightHandshake(text: string, streamId: string, secret: string): boolean {
  const given = Buffer.from(text.trim().toLowerCase(), "utf8");
  const right = Buffer.from(handshakeDigest(streamId, secret), "utf8");
  return given.length === right.length && timingSafeEqual(given, right);
}
