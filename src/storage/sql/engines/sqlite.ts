import { createHash } from "node:crypto";
import { closeSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { SQLInputValue, StatementSync } from "node:sqlite";
import { sql, SqliteQueryCompiler } from "kysely";
import { describeError } from "../../../base/mod.ts";
import type { StorageFailure } from "../../storage_error.ts";
import { storageError } from "../../storage_error.ts";
import type { SqlConnection, SqlResult } from "../sql_connection.ts";
import type { SqlDialect } from "../sql_dialect.ts";
import { schemaFiles } from "../sql_dialect.ts";
import { SQLITE_SEARCH } from "../text_search.ts";
import schema0 from "../schema/sqlite/0.sql" with { type: "text" };
import schema1 from "../schema/sqlite/1.sql" with { type: "text" };
import schema2 from "../schema/sqlite/2.sql" with { type: "text" };
import schema3 from "../schema/sqlite/3.sql" with { type: "text" };
import schema4 from "../schema/sqlite/4.sql" with { type: "text" };
import schema5 from "../schema/sqlite/5.sql" with { type: "text" };
import schema6 from "../schema/sqlite/6.sql" with { type: "text" };
import schema7 from "../schema/sqlite/7.sql" with { type: "text" };
import schema8 from "../schema/sqlite/8.sql" with { type: "text" };
import schema9 from "../schema/sqlite/9.sql" with { type: "text" };
import schema10 from "../schema/sqlite/10.sql" with { type: "text" };
import schema11 from "../schema/sqlite/11.sql" with { type: "text" };
import schema12 from "../schema/sqlite/12.sql" with { type: "text" };
import schema13 from "../schema/sqlite/13.sql" with { type: "text" };
import schema14 from "../schema/sqlite/14.sql" with { type: "text" };
import schema15 from "../schema/sqlite/15.sql" with { type: "text" };
import schema16 from "../schema/sqlite/16.sql" with { type: "text" };
import schema17 from "../schema/sqlite/17.sql" with { type: "text" };

/** SQLite's primary result codes that have a name. */
const FAILURES: ReadonlyMap<number, StorageFailure | "constraint"> = new Map([
  [5, "busy"],
  [6, "busy"],
  [8, "read-only"],
  [10, "io"],
  [11, "corrupt"],
  [13, "full"],
  [14, "cannot-open"],
  [18, "value-too-large"],
  [19, "constraint"],
  [26, "not-a-database"],
]);

/** SQLite in the process. */
export const SQLITE: SqlDialect = {
  name: "sqlite",
  schema: schemaFiles([
    schema0,
    schema1,
    schema2,
    schema3,
    schema4,
    schema5,
    schema6,
    schema7,
    schema8,
    schema9,
    schema10,
    schema11,
    schema12,
    schema13,
    schema14,
    schema15,
    schema16,
    schema17,
  ]),
  hasTransactionalSchema: true,
  begin: "BEGIN IMMEDIATE",
  commit: "COMMIT",
  rollback: "ROLLBACK",
  compiler: () => new SqliteQueryCompiler(),
  // To read one row by its key takes twice as long when the limit is a parameter.
  limit: (query, count) => query.limit(count === 1 ? sql.lit(1) : count),
  clockMs: sql<number>`CAST(unixepoch('subsec') * 1000 AS INTEGER)`,
  rowLocks: "transaction",
  byteLength: "length",
  textSearch: SQLITE_SEARCH,
  text: (value) => value,

  failureOf(thrown) {
    if (typeof thrown !== "object" || thrown === null || !("errcode" in thrown)) return undefined;
    // Extended codes keep the primary one in their low byte.
    return typeof thrown.errcode === "number" ? FAILURES.get(thrown.errcode & 0xff) : undefined;
  },

  async serverVersion(connection) {
    const { rows } = await connection.execute("SELECT sqlite_version() AS version");
    return { product: "sqlite", version: String(rows[0]!["version"]) };
  },

  async tables(connection) {
    const sql = "SELECT lower(name) AS name FROM sqlite_master WHERE type = 'table'";
    return new Set((await connection.execute(sql)).rows.map((row) => String(row["name"])));
  },

  async indexes(connection) {
    const sql = "SELECT lower(name) AS name FROM sqlite_master WHERE type = 'index'";
    return new Set((await connection.execute(sql)).rows.map((row) => String(row["name"])));
  },

  lockSchema: () => Promise.resolve(), // BEGIN IMMEDIATE has the only lock that there is

  settingProblems: () => Promise.resolve([]), // every connection makes its own settings
};

/** Options of opening a file. */
export interface SqliteFileOptions {
  /** Path of the file. A missing file is created, readable by its owner alone. */
  readonly path: string;
  /** Milliseconds to wait while another process writes. The event loop stands still meanwhile. */
  readonly busyTimeoutMs: number;
}

/**
 * Opens a file.
 *
 * @throws what SQLite throws, or CausewayError `storage/cannot-open`
 */
export function openSqlite(
  { path, busyTimeoutMs }: SqliteFileOptions,
  place: string,
): SqlConnection {
  createPrivately(path, place);
  let connection: SqliteConnection | undefined;
  try {
    const database = new DatabaseSync(path, { timeout: busyTimeoutMs });
    connection = new SqliteConnection(database);
    connection.run("PRAGMA journal_mode = WAL");
    // FULL: a change that was reported as done survives a power failure.
    connection.run("PRAGMA synchronous = FULL");
    return connection;
  } catch (thrown) {
    connection?.destroy();
    throw thrown;
  }
}

/**
 * Creates the file for its owner alone. SQLite would make it readable by everyone, and its side
 * files take over the mode of the main one.
 */
function createPrivately(path: string, place: string): void {
  try {
    closeSync(openSync(path, "a", 0o600));
  } catch (cause) {
    const isFolder = cause instanceof Error && "code" in cause && cause.code === "EISDIR";
    const reason = isFolder ? "it is a folder" : describeError(cause);
    throw storageError("cannot-open", { action: "open", place }, { reason, cause });
  }
}

/** Statements that are kept compiled. The stores use fewer. */
const MAX_STATEMENTS = 256;

interface PreparedStatement {
  readonly statement: StatementSync;
  readonly hasRows: boolean;
}

/** A file, open in this process. */
export class SqliteConnection implements SqlConnection {
  readonly #database: DatabaseSync;
  /** SQLite compiles a statement again by itself when the schema changes. */
  readonly #statements = new Map<string, PreparedStatement>();

  constructor(database: DatabaseSync) {
    this.#database = database;
    database.function(
      "causeway_sha256",
      { deterministic: true },
      (text) => createHash("sha256").update(String(text)).digest(),
    );
  }

  get isOpen(): boolean {
    return this.#database.isOpen;
  }

  // SQLite answers at once. Its errors become rejections.
  // deno-lint-ignore require-await
  async execute(sql: string, values: readonly unknown[] = []): Promise<SqlResult> {
    return this.run(sql, values);
  }

  /** As `execute`, but at once. */
  run(sql: string, values: readonly unknown[] = []): SqlResult {
    // A full disk has ended the transaction already.
    if (sql === SQLITE.rollback && !this.#database.isTransaction) {
      return { rows: [], affectedRows: 0 };
    }
    const { statement, hasRows } = this.#prepare(sql);
    const parameters = values as readonly SQLInputValue[]; // others are refused by SQLite
    if (hasRows) return { rows: statement.all(...parameters), affectedRows: 0 };
    return { rows: [], affectedRows: Number(statement.run(...parameters).changes) };
  }

  close(): Promise<void> {
    this.destroy();
    return Promise.resolve();
  }

  destroy(): void {
    this.#statements.clear();
    if (this.#database.isOpen) this.#database.close();
  }

  #prepare(sql: string): PreparedStatement {
    let prepared = this.#statements.get(sql);
    if (prepared === undefined) {
      // Unlike what `exec` throws, errors of a statement carry SQLite's result code.
      const statement = this.#database.prepare(sql);
      prepared = { statement, hasRows: statement.columns().length > 0 };
      if (this.#statements.size >= MAX_STATEMENTS) this.#statements.clear();
      this.#statements.set(sql, prepared);
    }
    return prepared;
  }
}
