import { CausewayError } from "../../base/mod.ts";
import type { FailureContext, StorageFailure } from "../storage_error.ts";
import {
  codeOf,
  connectionFailureOf,
  storageError,
  unnamedStorageError,
} from "../storage_error.ts";
import { NoTlsError } from "./ldap_socket.ts";
import { FramingError } from "./message_framing.ts";

/** Result codes (RFC 4511 appendix A) that have a name here. */
const RESULTS: ReadonlyMap<number, StorageFailure> = new Map([
  [3, "timeout"], // timeLimitExceeded
  [4, "too-large"], // sizeLimitExceeded
  [8, "denied"], // strongerAuthRequired
  [10, "referral"],
  [11, "too-large"], // adminLimitExceeded
  [13, "denied"], // confidentialityRequired
  [32, "no-base"], // noSuchObject
  [34, "no-base"], // invalidDNSyntax
  [48, "denied"], // inappropriateAuthentication
  [49, "denied"], // invalidCredentials
  [50, "denied"], // insufficientAccessRights
  [51, "overloaded"], // busy
  [52, "overloaded"], // unavailable
]);

/**
 * Results of a bind that say no more than that this password does not let its owner in: the entry has
 * another one or none, or is locked, expired or gone.
 */
const REFUSALS: ReadonlySet<number> = new Set([19, 32, 34, 48, 49, 50, 53]);

/** Returns the result code of an answer; undefined for another error. */
export function resultCodeOf(thrown: unknown): number | undefined {
  const code = codeOf(thrown);
  return typeof code === "number" ? code : undefined;
}

/** True when a bind was refused, as opposed to one that could not be tried. */
export function isRefusedBind(thrown: unknown): boolean {
  const code = resultCodeOf(thrown);
  return code !== undefined && REFUSALS.has(code);
}

/** Names what the driver or a socket threw during `context.action`. */
export function ldapError(thrown: unknown, context: FailureContext): CausewayError {
  if (thrown instanceof CausewayError) return thrown;
  const failure = failureOf(thrown);
  if (failure === undefined) return unnamedStorageError(thrown, context);
  return storageError(failure, context, { cause: thrown });
}

function failureOf(thrown: unknown): StorageFailure | undefined {
  if (thrown instanceof FramingError) return thrown.kind;
  if (thrown instanceof NoTlsError) return "no-tls";
  const code = resultCodeOf(thrown);
  if (code !== undefined) return RESULTS.get(code);
  const connection = connectionFailureOf(thrown);
  if (connection !== undefined) return connection;
  const message = thrown instanceof Error ? thrown.message : "";
  if (/timed out|in time|timeout/i.test(message)) return "timeout";
  // The driver's words for a connection that was lost.
  return /closed|Socket (error|connection)/i.test(message) ? "unreachable" : undefined;
}
