import { CausewayError } from "../../base/mod.ts";
import type { FailureContext, StorageFailure } from "../storage_error.ts";
import { connectionFailureOf, storageError, unnamedStorageError } from "../storage_error.ts";
import type { CassandraDriver } from "./cassandra_driver.ts";
import { loadedCassandraDriver } from "./cassandra_driver.ts";
import { ERROR_CODES as codes } from "./cql_protocol.ts";

type Errors = CassandraDriver["errors"];

/** Answers of the server that have a name. */
const FAILURES: ReadonlyMap<number, StorageFailure> = new Map([
  [codes.badCredentials, "denied"],
  [codes.unauthorized, "denied"],
  [codes.unavailableException, "no-quorum"],
  [codes.overloaded, "overloaded"],
  [codes.isBootstrapping, "overloaded"],
  [codes.writeTimeout, "timeout"],
  [codes.readTimeout, "timeout"],
  [codes.readFailure, "io"],
  [codes.writeFailure, "io"],
]);

/** Messages of the server about a mutation, a batch or a value that is too large. */
const TOO_LARGE = /too large|maximum (size|allowed)|must be less than/i;

/** The driver gives these no codes of their own. */
const NO_TABLE = /^(unconfigured table|table .* does not exist)/i;
const NO_KEYSPACE = /^keyspace .* does not exist/i;

/**
 * True when a lightweight transaction may have been carried out although it failed: nobody answered
 * in time, or the connection was lost.
 */
export function isAmbiguous(thrown: unknown): boolean {
  if (isError(thrown, "OperationTimedOutError")) return true;
  if (isError(thrown, "NoHostAvailableError")) {
    return innerErrorsOf(thrown).some((inner) => inner === thrown ? false : isAmbiguous(inner));
  }
  if (isError(thrown, "ResponseError")) {
    return thrown.code === codes.writeTimeout || thrown.code === codes.writeFailure ||
      thrown.code === codes.readTimeout || thrown.code === codes.serverError;
  }
  return !(thrown instanceof CausewayError);
}

/** True when replicas did not agree in time, as happens while others change the same rows. */
export function isContention(thrown: unknown): boolean {
  return isError(thrown, "ResponseError") &&
    (thrown.code === codes.writeTimeout || thrown.code === codes.readTimeout);
}

/** Names what the driver throws. Errors of ours stay as they are. */
export function cassandraError(thrown: unknown, context: FailureContext): CausewayError {
  if (thrown instanceof CausewayError) return thrown;
  const failure = failureOf(thrown);
  return failure === undefined
    ? unnamedStorageError(thrown, context)
    : storageError(failure, context, { cause: detailOf(thrown) });
}

/** True when no server could be asked at all. */
export function isDisconnection(thrown: unknown): boolean {
  const failure = failureOf(thrown);
  return failure === "unreachable" || failure === "untrusted" || failure === "no-tls";
}

function failureOf(thrown: unknown): StorageFailure | undefined {
  if (isError(thrown, "NoHostAvailableError")) {
    const inner = innerErrorsOf(thrown).map(failureOf).filter((each) => each !== undefined);
    // A server that refuses says more than those that are silent.
    return inner.find((each) => each !== "unreachable") ?? "unreachable";
  }
  if (isError(thrown, "AuthenticationError")) return "denied";
  if (isError(thrown, "OperationTimedOutError")) return "timeout";
  if (isError(thrown, "BusyConnectionError")) return "pool-full";
  if (isError(thrown, "ResponseError")) {
    if (NO_TABLE.test(thrown.message)) return "schema-missing";
    if (NO_KEYSPACE.test(thrown.message)) return "no-database";
    if (thrown.code === codes.invalid && TOO_LARGE.test(thrown.message)) return "value-too-large";
    return FAILURES.get(thrown.code);
  }
  return connectionFailureOf(thrown);
}

/** True for an error of the driver that has this class. */
function isError<K extends keyof Errors>(
  thrown: unknown,
  name: K,
): thrown is InstanceType<Errors[K]> {
  const driver = loadedCassandraDriver();
  return driver !== undefined && thrown instanceof driver.errors[name];
}

/** Returns the failures of the servers that were tried. */
function innerErrorsOf({ innerErrors }: { readonly innerErrors: unknown }): readonly unknown[] {
  return typeof innerErrors === "object" && innerErrors !== null ? Object.values(innerErrors) : [];
}

/** Returns the failure of one server rather than that of all of them. */
function detailOf(thrown: unknown): unknown {
  if (!(isError(thrown, "NoHostAvailableError"))) return thrown;
  const inner = innerErrorsOf(thrown);
  return inner.find((each) => failureOf(each) !== "unreachable") ?? inner[0] ?? thrown;
}
