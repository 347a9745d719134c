import { DialectAdapterBase } from "kysely";
import type {
  DatabaseConnection,
  DatabaseIntrospector,
  Dialect,
  DialectAdapter,
  Driver,
  QueryCompiler,
  QueryResult,
} from "kysely";
import type { Clock } from "../../base/mod.ts";
import type { FailureContext } from "../storage_error.ts";
import { storageError } from "../storage_error.ts";
import type { ConnectionPool } from "./connection_pool.ts";
import type { NamedQuery } from "./named_query.ts";
import type { SqlConnection, SqlResult } from "./sql_connection.ts";
import type { SqlDialect } from "./sql_dialect.ts";

/** Time limit of statements. */
export interface StatementLimit {
  /** Infinity: no limit, for an engine within the process. */
  readonly statementTimeoutMs: number;
  readonly clock: Clock;
  /** Name of the database in messages. */
  readonly place: string;
  /** Called with the milliseconds that a statement took. */
  took?(forMs: number): void;
}

/** The connection between Kysely and a pool: one driver for all engines. */
export class PooledDialect implements Dialect {
  readonly #dialect: SqlDialect;
  readonly #pool: ConnectionPool;
  readonly #limit: StatementLimit;

  constructor(dialect: SqlDialect, pool: ConnectionPool, limit: StatementLimit) {
    this.#dialect = dialect;
    this.#pool = pool;
    this.#limit = limit;
  }

  createDriver(): Driver {
    return new PooledDriver(this.#dialect, this.#pool, this.#limit);
  }

  createQueryCompiler(): QueryCompiler {
    return this.#dialect.compiler();
  }

  createAdapter(): DialectAdapter {
    return new PooledAdapter();
  }

  createIntrospector(): DatabaseIntrospector {
    throw new TypeError("Cannot look at tables through Kysely: `schema.ts` does");
  }
}

/** The text of a statement, its parameters, and its name if it has one. */
type PreparedText = Pick<NamedQuery, "sql" | "name"> & Partial<Pick<NamedQuery, "parameters">>;

/** Runs a statement within the limit. Past it the connection is cut, and the outcome unknown. */
export async function executeWithin(
  limit: StatementLimit,
  connection: SqlConnection,
  { sql, parameters, name }: PreparedText,
): Promise<SqlResult> {
  const { statementTimeoutMs, clock, place } = limit;
  if (statementTimeoutMs === Infinity) return await connection.execute(sql, parameters, name);
  const { promise: late, reject } = Promise.withResolvers<never>();
  const context: FailureContext = { action: "use", place };
  const cancel = clock.after(statementTimeoutMs, () => {
    const reason = `it did not answer within ${statementTimeoutMs} ms`;
    reject(storageError("timeout", context, { reason }));
    connection.destroy();
  });
  const statement = connection.execute(sql, parameters, name);
  try {
    return await Promise.race([statement, late]);
  } finally {
    cancel();
    statement.catch(() => {}); // a statement that was cut rejects too late for the race
  }
}

/** Milliseconds for which a connection that is read-only is believed. */
const READ_ONLY_MS = 5_000;

class PooledDriver implements Driver {
  readonly #dialect: SqlDialect;
  readonly #pool: ConnectionPool;
  readonly #limit: StatementLimit;
  /** Monotonic times at which connections were lent for the first time. */
  readonly #firstLentAtMs = new WeakMap<SqlConnection, number>();

  constructor(dialect: SqlDialect, pool: ConnectionPool, limit: StatementLimit) {
    this.#dialect = dialect;
    this.#pool = pool;
    this.#limit = limit;
  }

  init(): Promise<void> {
    return Promise.resolve();
  }

  async acquireConnection(): Promise<LentConnection> {
    const inner = await this.#pool.acquire();
    const nowMs = this.#limit.clock.monotonicMs();
    const firstLentAtMs = this.#firstLentAtMs.get(inner);
    if (firstLentAtMs === undefined) this.#firstLentAtMs.set(inner, nowMs);
    return new LentConnection(inner, this.#limit, (thrown) => {
      const isOld = nowMs - (firstLentAtMs ?? nowMs) >= READ_ONLY_MS;
      // A session keeps the read-only mode with which it began, and its server may have become a
      // replica: a new connection goes to where the address leads by now.
      if (isOld && this.#dialect.failureOf(thrown) === "read-only") inner.destroy();
    });
  }

  async beginTransaction(connection: LentConnection): Promise<void> {
    await connection.run({ sql: this.#dialect.begin });
  }

  async commitTransaction(connection: LentConnection): Promise<void> {
    await connection.run({ sql: this.#dialect.commit });
  }

  /** Never rejects: the failure that made the rollback necessary is the one to report. */
  async rollbackTransaction(connection: LentConnection): Promise<void> {
    if (!connection.inner.isOpen) return;
    try {
      await connection.run({ sql: this.#dialect.rollback });
    } catch {
      connection.inner.destroy(); // the server drops the transaction with its session
    }
  }

  releaseConnection(connection: LentConnection): Promise<void> {
    this.#pool.release(connection.inner);
    return Promise.resolve();
  }

  async destroy(): Promise<void> {
    await this.#pool.close();
  }
}

class LentConnection implements DatabaseConnection {
  readonly inner: SqlConnection;
  readonly #limit: StatementLimit;
  readonly #failed: (thrown: unknown) => void;

  constructor(inner: SqlConnection, limit: StatementLimit, failed: (thrown: unknown) => void) {
    this.inner = inner;
    this.#limit = limit;
    this.#failed = failed;
  }

  async run(statement: PreparedText): Promise<SqlResult> {
    const { clock } = this.#limit;
    const startedMs = clock.monotonicMs();
    try {
      return await executeWithin(this.#limit, this.inner, statement);
    } catch (thrown) {
      this.#failed(thrown);
      throw thrown;
    } finally {
      this.#limit.took?.(clock.monotonicMs() - startedMs);
    }
  }

  async executeQuery<R>(query: NamedQuery): Promise<QueryResult<R>> {
    const { rows, affectedRows } = await this.run(query);
    // The table's types describe the rows; the conformance suites read every column.
    return { rows: [...rows] as R[], numAffectedRows: BigInt(affectedRows) };
  }

  // deno-lint-ignore require-yield
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    await Promise.reject(new TypeError("Cannot stream a query: results are paged instead"));
  }
}

/** Kysely's own migrations are not used; ours are in `schema.ts`. */
export class PooledAdapter extends DialectAdapterBase {
  override acquireMigrationLock(): Promise<void> {
    return Promise.resolve();
  }

  override releaseMigrationLock(): Promise<void> {
    return Promise.resolve();
  }
}
