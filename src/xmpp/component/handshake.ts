import { Buffer } from "node:buffer";
import { createHash, timingSafeEqual } from "node:crypto";

/** What a component proves its secret with (XEP-0114 §3): 40 hexadecimal digits. */
export function handshakeDigest(streamId: string, secret: string): string {
  return createHash("sha1").update(streamId, "utf8").update(secret, "utf8").digest("hex");
}

/** True when `text` proves `secret` for a stream; takes as long wherever it differs. */
export function isRightHandshake(text: string, streamId: string, secret: string): boolean {
  const given = Buffer.from(text.trim().toLowerCase(), "utf8");
  const right = Buffer.from(handshakeDigest(streamId, secret), "utf8");
  return given.length === right.length && timingSafeEqual(given, right);
}
