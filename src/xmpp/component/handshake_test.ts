import assert from "node:assert/strict";
import { handshakeDigest, isRightHandshake } from "./handshake.ts";

Deno.test("handshakeDigest() equals the digest of XEP-0114", () => {
  // printf '%s' 3BF96D32test | sha1sum
  assert.equal(
    handshakeDigest("3BF96D32", "test"),
    "aaee83c26aeeafcbabeabfcbcd50df997e0a2a1e",
  );
});

Deno.test("isRightHandshake() refuses a shorter, longer or different text", () => {
  const digest = handshakeDigest("id", "secret");
  assert(isRightHandshake(` ${digest}\n`, "id", "secret"));
  for (
    const text of [
      "",
      digest.slice(1),
      `${digest}0`,
      handshakeDigest("id", "other"),
      "é".repeat(40),
    ]
  ) {
    assert(!isRightHandshake(text, "id", "secret"), text);
  }
});
