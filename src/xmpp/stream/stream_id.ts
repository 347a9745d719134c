import { randomHex } from "../../base/mod.ts";

/**
 * Returns a stream id (RFC 6120 §4.7.3). It is unpredictable, because XEP-0114 makes it part of a proof.
 */
export function newStreamId(): string {
  return randomHex(12);
}
