import { randomBytes } from "node:crypto";
import { closeSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { CausewayError, describeError } from "../base/mod.ts";
import { migrate, runSql } from "./sqlite_schema.ts";
import { SqliteSubscriptionRequestStore } from "./sqlite_subscription_request_store.ts";
import { SqliteUserStore } from "./sqlite_user_store.ts";
import { wrapSqliteError } from "./storage_error.ts";
import type { RequestBounds, SubscriptionRequestStore } from "./subscription_request_store.ts";
import type { UserStore } from "./user_store.ts";

const SECRET_BYTES = 32;

/** Options of the built-in store. */
export interface InternalStoreOptions {
  /** Path of the file. A missing file is created, readable by its owner alone. */
  readonly path: string;
  /**
   * Milliseconds to wait while another process writes. The event loop stands still meanwhile.
   * @default 2000
   */
  readonly busyTimeoutMs?: number;
}

/**
 * The built-in store: one SQLite file. Several processes may have it open, such as a node and
 * `causeway users`. Each process sees the other's writes with its next read.
 */
export class InternalStore {
  readonly path: string;
  readonly #database: DatabaseSync;

  /**
   * @throws CausewayError with a code `storage/…` when the file cannot be opened or is not a
   * Causeway store
   */
  constructor(options: InternalStoreOptions) {
    this.path = options.path;
    createPrivately(options.path);
    this.#database = openDatabase(options.path, options.busyTimeoutMs ?? 2000);
  }

  /** Returns the accounts of one domain. */
  users(domainpart: string): UserStore {
    return new SqliteUserStore(this.#database, domainpart, this.path);
  }

  /** Returns the subscription requests that wait for their contacts, of all domains. */
  subscriptionRequests(bounds?: RequestBounds): SubscriptionRequestStore {
    return new SqliteSubscriptionRequestStore(this.#database, this.path, bounds);
  }

  /**
   * Returns random bytes that stay the same as long as the file exists. The first call makes them.
   * @throws CausewayError with a code `storage/…`
   */
  secret(name: string): Uint8Array {
    try {
      this.#database.prepare("INSERT OR IGNORE INTO secrets (name, value) VALUES (?, ?)")
        .run(name, randomBytes(SECRET_BYTES));
      const row = this.#database.prepare("SELECT value FROM secrets WHERE name = ?").get(name);
      return row!["value"] as Uint8Array; // STRICT: a BLOB, and the row is there
    } catch (thrown) {
      throw wrapSqliteError(thrown, "use", this.path);
    }
  }

  /** Closes the file. Stores obtained from it reject from then on. */
  close(): void {
    if (this.#database.isOpen) this.#database.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/**
 * Creates the file for its owner alone. SQLite would make it readable by everyone, and its side
 * files take over the mode of the main one.
 */
function createPrivately(path: string): void {
  try {
    closeSync(openSync(path, "a", 0o600));
  } catch (thrown) {
    throw new CausewayError(
      "storage/cannot-open",
      `Cannot open the built-in store ${path}: ${describeError(thrown)}`,
      { cause: thrown },
    );
  }
}

function openDatabase(path: string, busyTimeoutMs: number): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { timeout: busyTimeoutMs });
    runSql(database, "PRAGMA journal_mode = WAL");
    // FULL: a change that was reported as done survives a power failure.
    runSql(database, "PRAGMA synchronous = FULL");
    migrate(database, path);
    return database;
  } catch (thrown) {
    database?.close();
    throw wrapSqliteError(thrown, "open", path);
  }
}
