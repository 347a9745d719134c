import { CausewayError, describeError } from "../base/mod.ts";

/** Codes of the operating system and of TLS, as `node:net` and `node:tls` name them. */
const CODES: Readonly<Record<string, string>> = {
  ECONNREFUSED: "net/refused",
  ECONNRESET: "net/reset",
  ECONNABORTED: "net/reset",
  EPIPE: "net/reset",
  ETIMEDOUT: "net/timeout",
  EHOSTUNREACH: "net/unreachable",
  ENETUNREACH: "net/unreachable",
  ENETDOWN: "net/unreachable",
  ENOTFOUND: "net/name-not-found",
  EAI_AGAIN: "net/name-not-found",
  EADDRINUSE: "net/address-in-use",
  EADDRNOTAVAIL: "net/address-unavailable",
  EINVAL: "net/address-unavailable",
  EACCES: "net/address-forbidden",
  EPERM: "net/address-forbidden",
  EMFILE: "net/too-many-files",
  ENFILE: "net/too-many-files",
  ERR_TLS_CERT_ALTNAME_INVALID: "net/tls-name-mismatch",
  ERR_SSL_NO_APPLICATION_PROTOCOL: "net/tls-protocol-unknown",
};

const UNTRUSTED = /CERT|LEAF|ISSUER|SELF_SIGNED|UNKNOWN_CA/;

/** Codes that a retry of the same call would meet again. */
const LASTING: ReadonlySet<string> = new Set([
  "net/address-unavailable",
  "net/address-forbidden",
  "net/tls-name-mismatch",
  "net/tls-protocol-unknown",
  "net/tls-untrusted",
]);

/** Turns the error of a socket into one of ours; `what` says what we tried. */
export function toNetError(what: string, thrown: unknown): CausewayError {
  if (thrown instanceof CausewayError) return thrown;
  const code = classify(thrown);
  return new CausewayError(code, `${what}: ${describeError(thrown)}`, {
    cause: thrown,
    retryable: !LASTING.has(code),
  });
}

function classify(thrown: unknown): string {
  const systemCode = errorCode(thrown);
  const known = CODES[systemCode];
  if (known !== undefined) return known;
  if (UNTRUSTED.test(systemCode)) return "net/tls-untrusted";
  if (systemCode.startsWith("ERR_SSL") || systemCode.startsWith("ERR_TLS")) return "net/tls-failed";
  return "net/failed";
}

function errorCode(thrown: unknown): string {
  if (typeof thrown !== "object" || thrown === null || !("code" in thrown)) return "";
  return String(thrown.code);
}
