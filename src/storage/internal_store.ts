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

/** How the built-in store is opened. */
export interface InternalStoreOptions {
  /** The file; made, for its owner alone, where there is none. */
  readonly path: string;
  /**
   * Milliseconds to wait for another process that writes; the event loop stands still meanwhile.
   * @default 2000
   */
  readonly busyTimeoutMs?: number;
}

/**
 * The built-in store: one SQLite file. Several processes may have it open, such as a node and
 * `causeway users`; what one writes the other sees with its next read.
 */
export class InternalStore {
  readonly path: string;
  readonly #database: DatabaseSync;

  /** @throws CausewayError with a code `storage/…` when it cannot be opened or is not ours */
  constructor(options: InternalStoreOptions) {
    this.path = options.path;
    createPrivately(options.path);
    this.#database = openDatabase(options.path, options.busyTimeoutMs ?? 2000);
  }

  /** The accounts of one domain. */
  users(domainpart: string): UserStore {
    return new SqliteUserStore(this.#database, domainpart, this.path);
  }

  /** Requests for subscriptions that wait for their contacts, of all domains. */
  subscriptionRequests(bounds?: RequestBounds): SubscriptionRequestStore {
    return new SqliteSubscriptionRequestStore(this.#database, this.path, bounds);
  }

  /**
   * Random bytes that stay the same as long as the file does; made when they are first asked for.
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

  /** Closes the file; the stores that were taken from it reject from then on. */
  close(): void {
    if (this.#database.isOpen) this.#database.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/** SQLite makes files that anyone may read; its side files take over the mode of the main one. */
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
    // FULL: what was reported as done is there after the power failed, too.
    runSql(database, "PRAGMA synchronous = FULL");
    migrate(database, path);
    return database;
  } catch (thrown) {
    database?.close();
    throw wrapSqliteError(thrown, "open", path);
  }
}
