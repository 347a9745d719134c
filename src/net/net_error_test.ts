import assert from "node:assert/strict";
import { CausewayError } from "../base/mod.ts";
import { toNetError } from "./net_error.ts";

Deno.test("toNetError() maps codes of the system and TLS, and marks which are retryable", () => {
  const cases: [string, string, boolean][] = [
    ["ECONNREFUSED", "net/refused", true],
    ["ECONNRESET", "net/reset", true],
    ["EPIPE", "net/reset", true],
    ["ETIMEDOUT", "net/timeout", true],
    ["EHOSTUNREACH", "net/unreachable", true],
    ["ENOTFOUND", "net/name-not-found", true],
    ["EADDRINUSE", "net/address-in-use", true],
    ["EADDRNOTAVAIL", "net/address-unavailable", false],
    ["EACCES", "net/address-forbidden", false],
    ["EMFILE", "net/too-many-files", true],
    ["CERT_HAS_EXPIRED", "net/tls-untrusted", false],
    ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "net/tls-untrusted", false],
    ["DEPTH_ZERO_SELF_SIGNED_CERT", "net/tls-untrusted", false],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "net/tls-name-mismatch", false],
    ["ERR_SSL_NO_APPLICATION_PROTOCOL", "net/tls-protocol-unknown", false],
    ["ERR_SSL_WRONG_VERSION_NUMBER", "net/tls-failed", true],
    ["EWHATEVER", "net/failed", true],
  ];
  for (const [systemCode, code, retryable] of cases) {
    const thrown = Object.assign(new Error("it went wrong"), { code: systemCode });
    const error = toNetError("Cannot connect to 127.0.0.1:1", thrown);
    assert.equal(error.code, code, systemCode);
    assert.equal(error.retryable, retryable, systemCode);
    assert.equal(error.message, "Cannot connect to 127.0.0.1:1: it went wrong");
    assert.equal(error.cause, thrown);
  }
});

Deno.test("toNetError() keeps an error of ours and wraps anything else", () => {
  const ours = new CausewayError("x/y", "ours");
  assert.equal(toNetError("Cannot", ours), ours);
  assert.equal(toNetError("Cannot", "text").code, "net/failed");
  assert.equal(toNetError("Cannot", undefined).code, "net/failed");
});
