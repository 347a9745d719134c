import type { DatabaseSync, StatementSync } from "node:sqlite";
import { CausewayError } from "../base/mod.ts";
import type { ScramCredentials, ScramSecret } from "../xmpp/sasl/mod.ts";
import { isConstraintError, wrapSqliteError } from "./storage_error.ts";
import type { ListPage, UserStore } from "./user_store.ts";
import { DEFAULT_PAGE_LIMIT } from "./user_store.ts";

const SECRET_COLUMNS = [
  "sha1_salt",
  "sha1_iterations",
  "sha1_stored_key",
  "sha1_server_key",
  "sha256_salt",
  "sha256_iterations",
  "sha256_stored_key",
  "sha256_server_key",
].join(", ");

/**
 * Selects the account, or else the next row after its place. A row is thus found, read and
 * converted in the same steps whether or not the account exists: a stranger may measure the time. A
 * row without a domain sorts behind all others (`MIGRATIONS`).
 */
const CREDENTIALS_SQL = `SELECT domainpart, localpart, ${SECRET_COLUMNS} FROM users
  WHERE (domainpart, localpart) >= (?, ?) ORDER BY domainpart, localpart LIMIT 1`;

/** Accounts that are sampled for their round counts. Reading them takes a few milliseconds. */
const SAMPLE_ACCOUNTS = 10_000;

type Row = Readonly<Record<string, unknown>>;

/** The accounts of one domain in the built-in store. */
export class SqliteUserStore implements UserStore {
  readonly #domainpart: string;
  readonly #path: string;
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();

  constructor(database: DatabaseSync, domainpart: string, path: string) {
    this.#database = database;
    this.#domainpart = domainpart;
    this.#path = path;
  }

  // The interface makes the methods asynchronous. SQLite answers at once, and its errors become
  // rejections.

  // deno-lint-ignore require-await
  async add(localpart: string, credentials: ScramCredentials): Promise<void> {
    const sql = `INSERT INTO users (domainpart, localpart, ${SECRET_COLUMNS})
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
    try {
      this.#prepare(sql).run(this.#domainpart, localpart, ...valuesOf(credentials));
    } catch (thrown) {
      if (!isConstraintError(thrown)) throw this.#wrap(thrown, "add an account to");
      const jid = `${localpart}@${this.#domainpart}`;
      throw new CausewayError("storage/user-exists", `Cannot add ${jid}: the account exists`, {
        cause: thrown,
      });
    }
  }

  // deno-lint-ignore require-await
  async remove(localpart: string): Promise<boolean> {
    return this.#attempt("remove an account from", () => {
      const sql = "DELETE FROM users WHERE domainpart = ? AND localpart = ?";
      return Number(this.#prepare(sql).run(this.#domainpart, localpart).changes) > 0;
    });
  }

  // deno-lint-ignore require-await
  async setPassword(localpart: string, credentials: ScramCredentials): Promise<boolean> {
    return this.#attempt("change an account in", () => {
      const sql = `UPDATE users SET (${SECRET_COLUMNS}) = (?, ?, ?, ?, ?, ?, ?, ?)
        WHERE domainpart = ? AND localpart = ?`;
      const result = this.#prepare(sql).run(
        ...valuesOf(credentials),
        this.#domainpart,
        localpart,
      );
      return Number(result.changes) > 0;
    });
  }

  // deno-lint-ignore require-await
  async exists(localpart: string): Promise<boolean> {
    return this.#attempt("read an account from", () => {
      const sql = "SELECT 1 FROM users WHERE domainpart = ? AND localpart = ?";
      return this.#prepare(sql).get(this.#domainpart, localpart) !== undefined;
    });
  }

  // deno-lint-ignore require-await
  async credentials(localpart: string): Promise<ScramCredentials | undefined> {
    return this.#attempt("read an account from", () => {
      const row: Row = this.#prepare(CREDENTIALS_SQL).get(this.#domainpart, localpart)!; // CREDENTIALS_SQL always finds a row
      const sha1 = this.#secretIn(row, "sha1");
      const sha256 = this.#secretIn(row, "sha256");
      const isLocalpart = row["localpart"] === localpart;
      const isDomainpart = row["domainpart"] === this.#domainpart;
      return isLocalpart && isDomainpart ? { sha1, sha256 } : undefined;
    });
  }

  // deno-lint-ignore require-await
  async scramRounds(): Promise<ReadonlyMap<number, number>> {
    return this.#attempt("read the accounts in", () => {
      const sql = `SELECT rounds, COUNT(*) AS accounts FROM (
          SELECT sha256_iterations AS rounds FROM users WHERE domainpart = ? LIMIT ${SAMPLE_ACCOUNTS}
        ) GROUP BY rounds`;
      const rows: Row[] = this.#prepare(sql).all(this.#domainpart);
      return new Map(rows.map((row) => [Number(row["rounds"]), Number(row["accounts"])]));
    });
  }

  // deno-lint-ignore require-await
  async list(page: ListPage = {}): Promise<readonly string[]> {
    const { after, limit = DEFAULT_PAGE_LIMIT } = page;
    if (!Number.isSafeInteger(limit) || limit < 1) {
      throw new RangeError(`Cannot list ${limit} accounts: the limit is at least 1`);
    }
    return this.#attempt("list the accounts in", () => {
      const sql = `SELECT localpart FROM users WHERE domainpart = ? AND localpart > ?
        ORDER BY localpart LIMIT ?`;
      // No localpart is empty, so the empty text stands before all of them.
      const rows = this.#prepare(sql).all(this.#domainpart, after ?? "", limit);
      return rows.map((row) => String(row["localpart"]));
    });
  }

  #secretIn(row: Row, hash: "sha1" | "sha256"): ScramSecret {
    const bytes = (column: string): Uint8Array => {
      const value = row[`${hash}_${column}`];
      if (value instanceof Uint8Array) return value;
      throw new CausewayError(
        "storage/corrupt",
        `Cannot read an account from the built-in store ${this.#path}: ${hash}_${column} is no bytes`,
      );
    };
    return {
      salt: bytes("salt"),
      iterations: Number(row[`${hash}_iterations`]),
      storedKey: bytes("stored_key"),
      serverKey: bytes("server_key"),
    };
  }

  /** Compiles each statement once. SQLite recompiles it by itself when the schema changes. */
  #prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  #attempt<T>(action: string, work: () => T): T {
    try {
      return work();
    } catch (thrown) {
      throw this.#wrap(thrown, action);
    }
  }

  #wrap(thrown: unknown, action: string): CausewayError {
    return wrapSqliteError(thrown, action, this.#path);
  }
}

/** Returns the values in the order of `SECRET_COLUMNS`. */
function valuesOf({ sha1, sha256 }: ScramCredentials): (Uint8Array | number)[] {
  return [
    sha1.salt,
    sha1.iterations,
    sha1.storedKey,
    sha1.serverKey,
    sha256.salt,
    sha256.iterations,
    sha256.storedKey,
    sha256.serverKey,
  ];
}
