import { CausewayError } from "../../base/mod.ts";
import type { FailureContext, StorageFailure } from "../storage_error.ts";
import { connectionFailureOf, storageError, unnamedStorageError } from "../storage_error.ts";

/** Longest reason of a server that an error repeats. */
const MAX_REASON_UNITS = 300;

/** An error as servers describe it. */
interface ErrorBody {
  readonly type?: unknown;
  readonly reason?: unknown;
  readonly root_cause?: readonly { readonly type?: unknown; readonly reason?: unknown }[];
}

/** An answer that is an error. */
export class ElasticAnswer extends Error {
  readonly status: number;
  /** Such as `index_not_found_exception`; empty when the server gives none. */
  readonly type: string;

  /** @param error `error` of the answer: an object, a text, or nothing */
  constructor(status: number, error: unknown) {
    const { type = "", reason = "", root_cause: causes = [] }: ErrorBody =
      typeof error === "object" && error !== null ? error : { reason: error };
    const [cause] = Array.isArray(causes) ? causes : [];
    const texts = [type, reason, cause?.reason === reason ? "" : cause?.reason ?? ""];
    const shown = texts.filter((text) => typeof text === "string" && text !== "").join(": ");
    super(`HTTP status ${status}: ${shown}`.slice(0, MAX_REASON_UNITS));
    this.status = status;
    this.type = typeof type === "string" ? type : "";
  }
}

/** An answer that did not come in time, or is no answer. */
export class ElasticSilence extends Error {
  readonly failure: "timeout" | "garbled" | "too-large" | "closed";

  constructor(failure: ElasticSilence["failure"], message: string) {
    super(message);
    this.failure = failure;
  }
}

/** Reasons of failures for which `storage_error.ts` has a name, but another reason. */
const REASONS: Partial<Record<StorageFailure, string>> = {
  "schema-missing": "its indices are missing; run `causeway backends prepare`",
};

/** Names what was thrown during `context.action`. */
export function elasticError(thrown: unknown, context: FailureContext): CausewayError {
  if (thrown instanceof CausewayError) return thrown;
  const failure = failureOf(thrown);
  if (failure === undefined) return unnamedStorageError(thrown, context);
  if (thrown instanceof ElasticAnswer && failure === "unreachable") {
    // The server is there. What it cannot reach is some of its data.
    const reason = `some of its data cannot be reached now (${thrown.message})`;
    return storageError(failure, context, { reason, cause: thrown });
  }
  const reason = thrown instanceof ElasticAnswer && failure === "overloaded" && thrown.status >= 500
    ? `it failed (${thrown.message})`
    : REASONS[failure];
  return storageError(failure, context, {
    cause: thrown,
    ...(reason === undefined ? {} : { reason }),
  });
}

/** Names a failure; undefined for one that has no name. */
export function failureOf(thrown: unknown): StorageFailure | undefined {
  if (thrown instanceof ElasticSilence) return thrown.failure;
  if (thrown instanceof ElasticAnswer) return failureOfAnswer(thrown);
  const failure = connectionFailureOf(thrown);
  if (failure !== undefined) return failure;
  return thrown instanceof TypeError ? "unreachable" : undefined; // as `fetch` reports it
}

function failureOfAnswer({ status, type, message }: ElasticAnswer): StorageFailure | undefined {
  if (type === "index_not_found_exception") return "schema-missing";
  if (type === "cluster_block_exception") {
    // The server sets this block itself once its disk is nearly full.
    if (/read-only-allow-delete|read-only \/ allow delete|flood-stage/.test(message)) return "full";
    return /read-only|write/.test(message) ? "read-only" : "unreachable";
  }
  if (status === 401 || status === 403) return "denied";
  if (status === 413) return "value-too-large";
  if (status === 429) return "overloaded";
  if (status === 408 || status === 504) return "timeout";
  if (status === 503 || status === 502) return "unreachable";
  // The server failed, and not at what it was asked: the same request may succeed later.
  return status >= 500 ? "overloaded" : undefined;
}
