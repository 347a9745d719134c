import type { DatabaseSync, StatementSync } from "node:sqlite";
import { runSql } from "./sqlite_schema.ts";
import { wrapSqliteError } from "./storage_error.ts";
import type {
  RequestBounds,
  RequestPair,
  SubscriptionRequest,
  SubscriptionRequestStore,
} from "./subscription_request_store.ts";
import { resolveRequestBounds } from "./subscription_request_store.ts";

/** Subscription requests in the built-in store. Ids grow, so that the lowest is the oldest. */
export class SqliteSubscriptionRequestStore implements SubscriptionRequestStore {
  readonly #database: DatabaseSync;
  readonly #path: string;
  readonly #bounds: Required<RequestBounds>;
  readonly #statements = new Map<string, StatementSync>();

  constructor(database: DatabaseSync, path: string, bounds: RequestBounds = {}) {
    this.#database = database;
    this.#path = path;
    this.#bounds = resolveRequestBounds(bounds);
  }

  // The methods are asynchronous by contract; SQLite answers at once, and what it throws rejects.

  // deno-lint-ignore require-await
  async keep(requests: readonly SubscriptionRequest[]): Promise<number> {
    return this.#write("keep a subscription request in", () => {
      let displaced = 0;
      for (const { requester, contact, sender, stanza } of requests) {
        this.#run(
          `INSERT OR REPLACE INTO subscription_requests (requester, contact, sender, stanza)
            VALUES (?, ?, ?, ?)`,
          [requester, contact, sender, stanza],
        );
        displaced += this.#trim("sender", sender, this.#bounds.maxPerSender);
        displaced += this.#trim("contact", contact, this.#bounds.maxPerContact);
      }
      return displaced + this.#trimAll();
    });
  }

  // deno-lint-ignore require-await
  async remove(pairs: readonly RequestPair[]): Promise<void> {
    this.#write("remove a subscription request from", () => {
      const sql = "DELETE FROM subscription_requests WHERE contact = ? AND requester = ?";
      for (const { requester, contact } of pairs) this.#run(sql, [contact, requester]);
    });
  }

  // deno-lint-ignore require-await
  async removeSame(requests: readonly SubscriptionRequest[]): Promise<void> {
    this.#write("remove a subscription request from", () => {
      const sql =
        "DELETE FROM subscription_requests WHERE contact = ? AND requester = ? AND stanza = ?";
      for (const { requester, contact, stanza } of requests) {
        this.#run(sql, [contact, requester, stanza]);
      }
    });
  }

  // deno-lint-ignore require-await
  async ofContact(contact: string): Promise<readonly SubscriptionRequest[]> {
    return this.#read(() => {
      const sql = `SELECT requester, sender, stanza FROM subscription_requests
        WHERE contact = ? ORDER BY id`;
      return this.#prepare(sql).all(contact).map((row) => ({
        requester: String(row["requester"]),
        contact,
        sender: String(row["sender"]),
        stanza: row["stanza"] as Uint8Array, // STRICT: a BLOB
      }));
    });
  }

  // deno-lint-ignore require-await
  async contacts(): Promise<readonly string[]> {
    return this.#read(() => {
      const sql = "SELECT DISTINCT contact FROM subscription_requests ORDER BY contact";
      return this.#prepare(sql).all().map((row) => String(row["contact"]));
    });
  }

  // deno-lint-ignore require-await
  async count(): Promise<number> {
    return this.#read(() => this.#count());
  }

  /** Removes the oldest with this value in `column` past the newest `max`; gives their number. */
  #trim(column: "sender" | "contact", value: string, max: number): number {
    return this.#run(
      `DELETE FROM subscription_requests WHERE ${column} = ? AND id <= (
        SELECT id FROM subscription_requests WHERE ${column} = ?
          ORDER BY id DESC LIMIT 1 OFFSET ?)`,
      [value, value, max],
    );
  }

  #trimAll(): number {
    const surplus = this.#count() - this.#bounds.maxRequests;
    if (surplus <= 0) return 0;
    return this.#run(
      `DELETE FROM subscription_requests WHERE id IN (
        SELECT id FROM subscription_requests ORDER BY id LIMIT ?)`,
      [surplus],
    );
  }

  #count(): number {
    const row = this.#prepare("SELECT COUNT(*) AS requests FROM subscription_requests").get();
    return Number(row!["requests"]); // an aggregate has a row
  }

  /** Runs a statement that changes rows; gives their number. */
  #run(sql: string, values: readonly (string | number | Uint8Array)[]): number {
    return Number(this.#prepare(sql).run(...values).changes);
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  /** All that `work` changes reaches the disk once, or not at all. */
  #write<T>(action: string, work: () => T): T {
    try {
      runSql(this.#database, "BEGIN IMMEDIATE");
      const result = work();
      runSql(this.#database, "COMMIT");
      return result;
    } catch (thrown) {
      // A full disk has ended the transaction already, and a closed database has none.
      if (this.#database.isOpen && this.#database.isTransaction) runSql(this.#database, "ROLLBACK");
      throw wrapSqliteError(thrown, action, this.#path);
    }
  }

  #read<T>(work: () => T): T {
    try {
      return work();
    } catch (thrown) {
      throw wrapSqliteError(thrown, "read subscription requests from", this.#path);
    }
  }
}
