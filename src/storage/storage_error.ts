import { CausewayError } from "../base/mod.ts";

/** SQLite's primary result codes that operators can do something about. */
const KINDS: ReadonlyMap<number, { code: string; reason: string; retryable: boolean }> = new Map([
  [5, { code: "storage/busy", reason: "another process holds it locked", retryable: true }],
  [6, { code: "storage/busy", reason: "another process holds it locked", retryable: true }],
  [8, { code: "storage/read-only", reason: "it is read-only", retryable: false }],
  [10, { code: "storage/io", reason: "the disk failed", retryable: true }],
  [11, { code: "storage/corrupt", reason: "it is damaged", retryable: false }],
  [13, { code: "storage/full", reason: "the disk is full", retryable: true }],
  [14, { code: "storage/cannot-open", reason: "it cannot be opened", retryable: false }],
  [26, { code: "storage/corrupt", reason: "it is not a database", retryable: false }],
]);

/** SQLite: a constraint, such as a primary key, forbids the change. */
const SQLITE_CONSTRAINT = 19;

function resultCodeOf(thrown: unknown): number | undefined {
  if (typeof thrown !== "object" || thrown === null || !("errcode" in thrown)) return undefined;
  // Extended codes keep the primary one in their low byte.
  return typeof thrown.errcode === "number" ? thrown.errcode & 0xff : undefined;
}

/** Returns true when a row with that key exists already. */
export function isConstraintError(thrown: unknown): boolean {
  return resultCodeOf(thrown) === SQLITE_CONSTRAINT;
}

/** Wraps an error that SQLite threw during `action`, such as `read accounts from`. */
export function wrapSqliteError(thrown: unknown, action: string, path: string): CausewayError {
  if (thrown instanceof CausewayError) return thrown;
  const resultCode = resultCodeOf(thrown);
  const kind = resultCode === undefined ? undefined : KINDS.get(resultCode);
  const reason = kind?.reason ?? (thrown instanceof Error ? thrown.message : String(thrown));
  return new CausewayError(
    kind?.code ?? "storage/failed",
    `Cannot ${action} the built-in store ${path}: ${reason}`,
    { cause: thrown, retryable: kind?.retryable ?? false },
  );
}
