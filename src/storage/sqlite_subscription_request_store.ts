import type { DatabaseSync, StatementSync } from "node:sqlite";
import { runSql } from "./sqlite_schema.ts";
import { wrapSqliteError } from "./storage_error.ts";
import type {
  RequestBounds,
  RequestChange,
  SubscriptionRequest,
  SubscriptionRequestStore,
} from "./subscription_request_store.ts";
import { resolveRequestBounds } from "./subscription_request_store.ts";

/**
 * Subscription requests in the built-in store. Ids grow, so the request with the lowest id is the
 * oldest.
 */
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

  // The interface makes the methods asynchronous. SQLite answers at once, and its errors become
  // rejections.

  // deno-lint-ignore require-await
  async change(changes: readonly RequestChange[]): Promise<number> {
    return this.#write(() => {
      let displaced = 0;
      for (const change of changes) displaced += this.#apply(change);
      return displaced + this.#trimAll();
    });
  }

  // deno-lint-ignore require-await
  async ofContact(contact: string): Promise<readonly SubscriptionRequest[]> {
    return this.#read(() => {
      const sql = `SELECT requester, sender, stanza, origin, process, sequence
        FROM subscription_requests
        WHERE contact = ? ORDER BY id`;
      return this.#prepare(sql).all(contact).map((row) => ({
        requester: String(row["requester"]),
        contact,
        sender: String(row["sender"]),
        stanza: row["stanza"] as Uint8Array, // STRICT: a BLOB
        origin: String(row["origin"]),
        process: Number(row["process"]),
        sequence: Number(row["sequence"]),
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

  /** Applies one change, and returns the number of requests that were displaced. */
  #apply(change: RequestChange): number {
    switch (change.kind) {
      case "keep":
        return this.#keep(change.request);
      case "remove": {
        const sql = "DELETE FROM subscription_requests WHERE contact = ? AND requester = ?";
        this.#run(sql, [change.pair.contact, change.pair.requester]);
        return 0;
      }
      case "remove-same": {
        const { requester, contact, stanza } = change.request;
        const sql =
          "DELETE FROM subscription_requests WHERE contact = ? AND requester = ? AND stanza = ?";
        this.#run(sql, [contact, requester, stanza]);
        return 0;
      }
      default:
        return change satisfies never;
    }
  }

  #keep(request: SubscriptionRequest): number {
    const { requester, contact, sender, stanza, origin, process, sequence } = request;
    const sql = `INSERT OR REPLACE INTO subscription_requests
      (requester, contact, sender, stanza, origin, process, sequence) VALUES (?, ?, ?, ?, ?, ?, ?)`;
    this.#run(sql, [requester, contact, sender, stanza, origin, process, sequence]);
    return this.#trimSender(sender) + this.#trimContact(contact);
  }

  /**
   * Keeps as many of this sender's newest requests as it may have, removes the older ones and
   * returns their number.
   */
  #trimSender(sender: string): number {
    return this.#run(
      `DELETE FROM subscription_requests WHERE sender = ? AND id <= (
        SELECT id FROM subscription_requests WHERE sender = ?
          ORDER BY id DESC LIMIT 1 OFFSET ?)`,
      [sender, sender, this.#bounds.maxPerSender],
    );
  }

  /**
   * Removes requests above the bound for this contact: each time the oldest of the sender that has
   * most of them, so that a sender that speaks for many takes no room from the others. Returns
   * their number.
   */
  #trimContact(contact: string): number {
    // Usually at most one is removed. More are removed only after the bound was lowered.
    for (let removed = 0;; removed++) if (this.#trimContactOnce(contact) === 0) return removed;
  }

  #trimContactOnce(contact: string): number {
    return this.#run(
      `DELETE FROM subscription_requests WHERE id = (
        SELECT MIN(id) FROM subscription_requests WHERE contact = ?1
          GROUP BY sender HAVING (
            SELECT COUNT(*) FROM subscription_requests WHERE contact = ?1) > ?2
          ORDER BY COUNT(*) DESC, MIN(id) LIMIT 1)`,
      [contact, this.#bounds.maxPerContact],
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

  /** Runs a statement that changes rows, and returns their number. */
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

  /** Runs `work` in one transaction: its changes reach the disk together, or not at all. */
  #write<T>(work: () => T): T {
    try {
      runSql(this.#database, "BEGIN IMMEDIATE");
      const result = work();
      runSql(this.#database, "COMMIT");
      return result;
    } catch (thrown) {
      // A full disk has ended the transaction already, and a closed database has none.
      if (this.#database.isOpen && this.#database.isTransaction) runSql(this.#database, "ROLLBACK");
      throw wrapSqliteError(thrown, "change the subscription requests in", this.#path);
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
