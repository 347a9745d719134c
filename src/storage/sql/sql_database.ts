import { Kysely, sql } from "kysely";
import type { Transaction } from "kysely";
import type { BackoffOptions, Clock } from "../../base/mod.ts";
import { backoffMs, CausewayError, SystemClock } from "../../base/mod.ts";
import type { FailureContext } from "../storage_error.ts";
import { storageError, unnamedStorageError } from "../storage_error.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import { ConnectionPool, resolvePoolBounds } from "./connection_pool.ts";
import type { PoolBounds, PoolFigures } from "./connection_pool.ts";
import { DatabaseObserver } from "./database_observer.ts";
import { PooledDialect } from "./pooled_dialect.ts";
import { VERSIONS_TABLE } from "./schema.ts";
import type { SqlConnection } from "./sql_connection.ts";
import type { SqlDialect } from "./sql_dialect.ts";
import type { TextSearch } from "./text_search.ts";
import type { Tables } from "./tables.ts";

/** Reads and writes of one request. */
export type Queries = Kysely<Tables> | Transaction<Tables>;

/** Connections and bounds of a database. */
export interface SqlDatabaseDeps {
  readonly dialect: SqlDialect;
  /** Name of the database in messages, such as `the built-in store causeway.sqlite`. */
  readonly place: string;
  /** Opens one connection, logged in, with its settings made and its schema checked. */
  connect(): Promise<SqlConnection>;
  readonly bounds?: PoolBounds;
  readonly clock?: Clock;
}

/** Attempts at a transaction that other transactions get in the way of. */
const MAX_ATTEMPTS = 8;
/** Milliseconds for which a schema version that was read counts as the present one. */
const VERSION_AGE_MS = 5_000;
/** Milliseconds that a question for the schema version may take. The reading goes on after them. */
const VERSION_WAIT_MS = 1_000;
/** Pauses between them. Their length is random, so that two transactions meet only once. */
const CONFLICT_PAUSES: BackoffOptions = { firstMs: 5, maxMs: 200, jitter: 1 };

/** One database through a bounded pool of connections. The stores of all data kinds use it. */
export class SqlDatabase {
  readonly dialect: SqlDialect;
  readonly place: string;
  /** Newest version of the schema, as it was read last; undefined before the first connection. */
  schemaVersion: number | undefined;
  #versionReadAtMs = -Infinity;
  #versionReading: Promise<void> | undefined;
  readonly #pool: ConnectionPool;
  readonly #kysely: Kysely<Tables>;
  readonly #clock: Clock;
  #observer: DatabaseObserver | undefined;
  /** True when the connection that was opened last has found the index of words. */
  #hasTextIndex = true;

  constructor(options: SqlDatabaseDeps) {
    const { dialect, place, clock = new SystemClock() } = options;
    this.dialect = dialect;
    this.place = place;
    this.#clock = clock;
    const bounds = resolvePoolBounds(options.bounds);
    const connect = async () => {
      try {
        const connection = await options.connect();
        await this.#lookForTextIndex(connection);
        return connection;
      } catch (thrown) {
        const action = dialect.name === "sqlite" ? "open" : "connect to";
        throw sqlError(dialect, thrown, { action, place });
      }
    };
    this.#pool = new ConnectionPool({
      place,
      connect,
      bounds,
      clock,
      changed: (failure) => this.#observer?.changed(failure),
    });
    const { statementTimeoutMs } = bounds;
    this.#kysely = new Kysely<Tables>({
      dialect: new PooledDialect(dialect, this.#pool, {
        statementTimeoutMs,
        clock,
        place,
        took: (forMs) => this.#observer?.took(forMs),
      }),
      log: [],
    });
  }

  /**
   * Finds archived messages by words. Undefined: they are not searched, as the engine does not, or the
   * database has no index. That is known when the first connection has been opened.
   */
  get textSearch(): TextSearch | undefined {
    return this.#hasTextIndex ? this.dialect.textSearch : undefined;
  }

  /**
   * Returns the failure of the last attempt to connect; undefined while the database can be reached. Where
   * that is in doubt, it may begin a new attempt, of which the next call tells.
   */
  checkFailure(): Error | undefined {
    return this.#pool.checkFailure();
  }

  /** Numbers of its pool of connections. */
  get figures(): PoolFigures {
    return this.#pool.figures;
  }

  /** Measures and logs from now on, under the name of the database's pool. */
  observe(pool: string, to: { readonly metrics: Metrics; readonly logger: Logger }): void {
    this.#observer = new DatabaseObserver(pool, this.#pool, to);
  }

  /**
   * Opens a first connection, to see whether it can be done.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async open(): Promise<void> {
    this.#pool.release(await this.#pool.acquire());
  }

  /**
   * Brings `schemaVersion` up to date, where a newer program may have changed it since. Asks the
   * database at most every five seconds, and not while requests wait or it cannot be reached. Waits
   * for at most a second. Never rejects: where there is no answer, the version stays as it was.
   */
  async refreshSchemaVersion(): Promise<void> {
    const isKnown = this.schemaVersion !== undefined && this.checkFailure() === undefined;
    const isFresh = this.#clock.monotonicMs() - this.#versionReadAtMs < VERSION_AGE_MS;
    if (this.#versionReading === undefined) {
      if (!isKnown || isFresh || this.figures.waiting > 0) return;
      this.#versionReadAtMs = this.#clock.monotonicMs();
      this.#versionReading = this.#readVersion().finally(() => {
        this.#versionReading = undefined;
      });
    }
    let cancelTimer = () => {};
    const isLate = new Promise<void>((resolve) => {
      cancelTimer = this.#clock.after(VERSION_WAIT_MS, resolve);
    });
    await Promise.race([this.#versionReading, isLate]);
    cancelTimer();
  }

  async #readVersion(): Promise<void> {
    try {
      await this.run("read the schema version of", async (queries) => {
        const { rows } = await sql<{ newest: unknown }>`
          SELECT MAX(version) AS newest FROM ${sql.table(VERSIONS_TABLE)}
        `.execute(queries);
        const newest = rows[0]?.newest;
        if (newest !== undefined && newest !== null) this.schemaVersion = Number(newest);
      });
    } catch {
      // The failure is counted. The next new connection checks the whole schema.
    }
  }

  /**
   * Runs one statement, or several that need not be done together.
   *
   * @param action for messages: begins with a verb and ends with a preposition
   * @throws CausewayError with a code `storage/…`
   */
  async run<T>(action: string, work: (queries: Queries) => Promise<T>): Promise<T> {
    try {
      return await work(this.#kysely);
    } catch (thrown) {
      throw this.#failed(thrown, action);
    }
  }

  /**
   * Runs `work` in one transaction: its changes are made together, or not at all. Transactions that
   * get in each other's way are tried again, so `work` may run several times.
   *
   * @throws CausewayError with a code `storage/…`; then nothing was changed, except that a
   * `storage/timeout` or `storage/unreachable` may have hit the very end of a transaction that was
   * carried out
   */
  async transact<T>(action: string, work: (queries: Queries) => Promise<T>): Promise<T> {
    for (let attempt = 1;; attempt++) {
      try {
        return await this.#kysely.transaction().execute(work);
      } catch (thrown) {
        const failure = this.dialect.failureOf(thrown);
        // Two transactions that insert the same row: one of them finds it at its next attempt.
        const mayPass = failure === "conflict" || failure === "constraint";
        if (!mayPass || attempt >= MAX_ATTEMPTS) throw this.#failed(thrown, action);
        await this.#pause(backoffMs(attempt, CONFLICT_PAUSES));
      }
    }
  }

  /** True when a row with that key exists already. */
  isConstraint(thrown: unknown): boolean {
    const cause = thrown instanceof CausewayError ? thrown.cause : thrown;
    return this.dialect.failureOf(cause) === "constraint";
  }

  /** Closes the connections once they come back. Requests are refused from now on. */
  async close(): Promise<void> {
    await this.#pool.close();
  }

  async #lookForTextIndex(connection: SqlConnection): Promise<void> {
    try {
      this.#hasTextIndex = await this.dialect.hasTextIndex?.(connection) ?? true;
    } catch (thrown) {
      connection.destroy();
      throw thrown;
    }
  }

  #failed(thrown: unknown, action: string): CausewayError {
    const error = sqlError(this.dialect, thrown, { action, place: this.place });
    // A row that exists already is an answer: the store makes of it what it means.
    if (!this.isConstraint(thrown)) this.#observer?.failed(error.code);
    return error;
  }

  #pause(forMs: number): Promise<void> {
    return new Promise((resolve) => this.#clock.after(forMs, resolve));
  }
}

/** Names what a driver threw during `context.action`. */
export function sqlError(
  dialect: SqlDialect,
  thrown: unknown,
  context: FailureContext,
): CausewayError {
  if (thrown instanceof CausewayError) return thrown;
  const failure = dialect.failureOf(thrown);
  if (failure === undefined) return unnamedStorageError(thrown, context);
  return storageError(failure === "constraint" ? "conflict" : failure, context, { cause: thrown });
}
