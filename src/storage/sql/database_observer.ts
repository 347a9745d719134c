import { describeError } from "../../base/mod.ts";
import type { Counter, Histogram, Logger, Metrics } from "../../observe/mod.ts";
import type { PoolFigures } from "./connection_pool.ts";

/** Figures of a database that its observer reads when they are shown. */
export interface ObservedDatabase {
  readonly figures: PoolFigures;
  /**
   * Returns the failure of the last attempt to connect; undefined while the database can be reached. Where
   * that is in doubt, it may begin a new attempt, of which the next call tells.
   */
  checkFailure(): Error | undefined;
}

/** Metrics and log lines of one database. */
export class DatabaseObserver {
  readonly #pool: string;
  readonly #metrics: Metrics;
  readonly #logger: Logger;
  readonly #statementUs: Histogram;
  readonly #failures = new Map<string, Counter>();

  /** @param pool `internal`, or `rdbms.` and the tag of the pool */
  constructor(
    pool: string,
    database: ObservedDatabase,
    { metrics, logger }: { readonly metrics: Metrics; readonly logger: Logger },
  ) {
    this.#pool = pool;
    this.#metrics = metrics;
    this.#logger = logger;
    const labels = { pool };
    metrics.gauge({
      name: "causeway_storage_up",
      help: "Could the database be reached at the last attempt to connect (1), or not (0)?",
      labels,
    }, () => database.checkFailure() === undefined ? 1 : 0);
    metrics.gauge({
      name: "causeway_storage_connections",
      help: "How many connections to the database are open or being opened?",
      labels,
    }, () => database.figures.connections);
    metrics.gauge({
      name: "causeway_storage_waiting",
      help: "How many requests wait for a connection to the database?",
      labels,
    }, () => database.figures.waiting);
    this.#statementUs = metrics.histogramUs({
      name: "causeway_storage_statement_time_seconds",
      help: "How long did statements of the database take, those that failed included?",
      labels,
    });
  }

  /** Counts a statement that took `forMs` milliseconds. */
  took(forMs: number): void {
    this.#statementUs.observe(forMs * 1000);
  }

  /** Counts a failed request by its code, such as `storage/pool-full`. */
  failed(code: string): void {
    let counter = this.#failures.get(code);
    if (counter === undefined) {
      counter = this.#metrics.counter({
        name: "causeway_storage_failures_total",
        help: "How many requests to the database failed, by the code of their error?",
        labels: { pool: this.#pool, code },
      });
      this.#failures.set(code, counter);
    }
    counter.inc();
  }

  /** Logs that the database cannot be reached any more, or can again. */
  changed(failure: Error | undefined): void {
    const pool = this.#pool;
    if (failure === undefined) this.#logger.info("storage.up", { pool });
    else this.#logger.warn("storage.down", { pool, error: describeError(failure) });
  }
}
