import { CausewayError, describeError } from "../base/mod.ts";

/** Message and retry advice of one kind of failure. */
interface FailureKind {
  readonly reason: string;
  readonly retryable: boolean;
  /** Second half of the error's code, if it is not the failure's name. */
  readonly code?: string;
  /** True when the driver's own message says more: it is added to the reason. */
  readonly hasDetail?: true;
}

/**
 * Failures that operators can do something about. The name is usually the second half of the error's
 * code, such as `storage/read-only`.
 */
const FAILURES = {
  "busy": { reason: "another process holds it locked", retryable: true },
  "cannot-open": { reason: "it cannot be opened", retryable: false },
  "closed": { reason: "it is closed", retryable: false },
  "conflict": { reason: "other changes at the same time were in the way", retryable: true },
  "corrupt": { reason: "it is damaged", retryable: false },
  "denied": { reason: "it denies access", retryable: false, hasDetail: true },
  "full": { reason: "the disk is full", retryable: true },
  "garbled": { reason: "its answer makes no sense", retryable: true, hasDetail: true },
  "io": { reason: "the disk failed", retryable: true },
  "managed-elsewhere": {
    reason: "it is managed elsewhere, and only read here",
    retryable: false,
  },
  "no-base": { reason: "it has no such base", retryable: false, hasDetail: true },
  "no-database": { reason: "there is no such database", retryable: false },
  "no-quorum": {
    reason: "too few of its replicas can be reached",
    retryable: true,
    hasDetail: true,
  },
  "not-a-database": { reason: "it is not a database", retryable: false, code: "corrupt" },
  "no-tls": { reason: "it offers no TLS", retryable: false },
  "overloaded": { reason: "it is busy or being stopped", retryable: true },
  "pool-full": { reason: "too many requests wait for a connection", retryable: true },
  "read-only": { reason: "it is read-only", retryable: false },
  "referral": {
    reason: "it refers to another directory, and referrals are not followed",
    retryable: false,
  },
  "schema-missing": {
    reason: "its tables are missing; run `causeway backends prepare`",
    retryable: false,
  },
  "too-large": { reason: "its answer is too large", retryable: false, hasDetail: true },
  "timeout": { reason: "it did not answer in time", retryable: true },
  "too-many-connections": { reason: "it accepts no more connections", retryable: true },
  "value-too-large": {
    reason: "it takes no value of this size",
    retryable: false,
    hasDetail: true,
  },
  "untrusted": { reason: "its certificate is not trusted", retryable: false, hasDetail: true },
  "wrong-server": { reason: "another server answers there", retryable: false },
  "unreachable": { reason: "it cannot be reached", retryable: true, hasDetail: true },
} as const satisfies Record<string, FailureKind>;

/** Name of a failure. */
export type StorageFailure = keyof typeof FAILURES;

/** Circumstances of a failure, for its message. */
export interface FailureContext {
  /** Begins with a verb and ends with a preposition: `add an account to`. */
  readonly action: string;
  /** The store, such as `the built-in store /var/lib/causeway/causeway.sqlite`. */
  readonly place: string;
}

/** Makes the error of a failure; `reason` replaces the usual one. */
export function storageError(
  failure: StorageFailure,
  { action, place }: FailureContext,
  options: { readonly reason?: string; readonly cause?: unknown } = {},
): CausewayError {
  const kind: FailureKind = FAILURES[failure];
  const detail = kind.hasDetail === true && options.cause !== undefined
    ? ` (${withMeaning(describeError(options.cause).trim())})`
    : "";
  return new CausewayError(
    `storage/${kind.code ?? failure}`,
    `Cannot ${action} ${place}: ${options.reason ?? kind.reason}${detail}`,
    { cause: options.cause, retryable: kind.retryable },
  );
}

/** Adds what the runtime leaves open: it says the same of a certificate whose time is another. */
function withMeaning(text: string): string {
  const isUnclear = text.includes("unable to verify the first certificate");
  return isUnclear
    ? `${text}: no known authority has issued it, or it has expired, or is not valid yet`
    : text;
}

/** Makes the error of a failure that has no name of its own: its message is the driver's. */
export function unnamedStorageError(
  thrown: unknown,
  { action, place }: FailureContext,
): CausewayError {
  const message = `Cannot ${action} ${place}: ${describeError(thrown)}`;
  return new CausewayError("storage/failed", message, { cause: thrown });
}

/** Codes of connections that fail, as the runtime's sockets report them. */
const NETWORK_CODES: ReadonlySet<string> = new Set([
  ...["ECONNREFUSED", "ECONNRESET", "EPIPE", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH"],
  ...["ENETUNREACH", "ETIMEDOUT", "ENOENT", "ECONNABORTED", "EHOSTDOWN", "EADDRNOTAVAIL"],
]);

/** Codes and messages of certificates that are refused: OpenSSL's names and those of rustls. */
const CERTIFICATE_CODE = /CERT|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)|HOSTNAME_MISMATCH|ALTNAME/;
const CERTIFICATE_MESSAGE = /certificate|UnknownIssuer|NotValidForName|altnames/i;
/** Messages of the drivers about a server without TLS. */
const NO_TLS_MESSAGE = /does not support (SSL connections|secure connection)/;

/** Names a failure of the connection, as opposed to an answer of the server. */
export function connectionFailureOf(thrown: unknown): StorageFailure | undefined {
  const code = codeOf(thrown);
  const message = thrown instanceof Error ? thrown.message : "";
  if (NO_TLS_MESSAGE.test(message)) return "no-tls";
  if (typeof code === "string") {
    if (NETWORK_CODES.has(code)) return "unreachable";
    if (CERTIFICATE_CODE.test(code)) return "untrusted";
  }
  return CERTIFICATE_MESSAGE.test(message) ? "untrusted" : undefined;
}

/** Returns the property `code` of anything that was thrown. */
export function codeOf(thrown: unknown): unknown {
  return typeof thrown === "object" && thrown !== null && "code" in thrown
    ? thrown.code
    : undefined;
}
