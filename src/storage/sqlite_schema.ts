import type { DatabaseSync } from "node:sqlite";
import { CausewayError } from "../base/mod.ts";

/**
 * Steps from an empty database to the present one, one statement each. A released step never
 * changes: changes are added as new steps at the end. The number of steps done is the schema's
 * version.
 */
export const MIGRATIONS: readonly string[] = [
  `CREATE TABLE users (
    domainpart TEXT NOT NULL,
    localpart TEXT NOT NULL,
    sha1_salt BLOB NOT NULL,
    sha1_iterations INTEGER NOT NULL,
    sha1_stored_key BLOB NOT NULL,
    sha1_server_key BLOB NOT NULL,
    sha256_salt BLOB NOT NULL,
    sha256_iterations INTEGER NOT NULL,
    sha256_stored_key BLOB NOT NULL,
    sha256_server_key BLOB NOT NULL,
    PRIMARY KEY (domainpart, localpart)
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE secrets (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE subscription_requests (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    requester TEXT NOT NULL,
    contact TEXT NOT NULL,
    sender TEXT NOT NULL,
    stanza BLOB NOT NULL,
    origin TEXT NOT NULL,
    process INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    UNIQUE (contact, requester)
  ) STRICT`,
  "CREATE INDEX subscription_requests_by_sender ON subscription_requests (sender)",
  // A row that sorts behind every account, so that there is always a row to read for a name without
  // an account.
  `INSERT INTO users VALUES (
    char(0x10ffff), '',
    zeroblob(16), 1, zeroblob(20), zeroblob(20),
    zeroblob(16), 1, zeroblob(32), zeroblob(32)
  )`,
];

/**
 * Brings a database to the present schema, all steps in one transaction. Two processes that start
 * at the same time take turns, because the version is read inside the transaction.
 *
 * @throws CausewayError `storage/schema-too-new` when a newer version of the program made it
 */
export function migrate(
  database: DatabaseSync,
  path: string,
  migrations: readonly string[] = MIGRATIONS,
): void {
  runSql(database, "BEGIN IMMEDIATE");
  try {
    runSql(database, "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL) STRICT");
    const row = database.prepare("SELECT version FROM schema_version").get();
    const version = Number(row?.["version"] ?? 0);
    if (version > migrations.length) {
      throw new CausewayError(
        "storage/schema-too-new",
        `Cannot use the built-in store ${path}: its schema has version ${version}, and this ` +
          `program knows versions up to ${migrations.length}`,
      );
    }
    if (version < migrations.length) {
      for (const step of migrations.slice(version)) runSql(database, step);
      runSql(database, "DELETE FROM schema_version");
      database.prepare("INSERT INTO schema_version (version) VALUES (?)").run(migrations.length);
    }
    runSql(database, "COMMIT");
  } catch (thrown) {
    // A full disk has ended the transaction already.
    if (database.isTransaction) runSql(database, "ROLLBACK");
    throw thrown;
  }
}

/** Runs one statement. Unlike what `exec` throws, its errors carry SQLite's result code. */
export function runSql(database: DatabaseSync, sql: string): void {
  database.prepare(sql).run();
}
