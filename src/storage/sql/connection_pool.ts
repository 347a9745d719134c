import type { BackoffOptions, CancelTimer, Clock } from "../../base/mod.ts";
import { backoffMs, SystemClock } from "../../base/mod.ts";
import { storageError } from "../storage_error.ts";
import type { SqlConnection } from "./sql_connection.ts";

/** Bounds of a pool of connections. */
export interface PoolBounds {
  /** Most connections at once; at least 1. @default 10 */
  readonly workers?: number;
  /** Most requests that wait for a connection; one more is refused. @default 1000 */
  readonly maxWaiting?: number;
  /** Milliseconds that a request waits for a connection. @default 5000 */
  readonly waitTimeoutMs?: number;
  /** Milliseconds that opening a connection may take, its login included. @default 5000 */
  readonly connectTimeoutMs?: number;
  /** Milliseconds that a statement may take; then its connection is cut. @default 5000 */
  readonly statementTimeoutMs?: number;
}

/** Fills in the defaults. */
export function resolvePoolBounds(bounds: PoolBounds = {}): Required<PoolBounds> {
  const { workers = 10, maxWaiting = 1000 } = bounds;
  const { waitTimeoutMs = 5000, connectTimeoutMs = 5000, statementTimeoutMs = 5000 } = bounds;
  return Object.freeze({
    workers,
    maxWaiting,
    waitTimeoutMs,
    connectTimeoutMs,
    statementTimeoutMs,
  });
}

/** One connection of a pool, whatever it is used for. */
export type PooledConnection = Pick<SqlConnection, "isOpen" | "close" | "destroy">;

/** Dependencies of a pool. */
export interface ConnectionPoolDeps<C extends PooledConnection = SqlConnection> {
  /** Name of the database in messages: `the database rdbms.default (PostgreSQL at …)`. */
  readonly place: string;
  /** Opens one connection, logged in and ready for statements. */
  connect(): Promise<C>;
  readonly bounds?: PoolBounds;
  /** Pauses between attempts to connect to a server that cannot be reached. @default 250 ms to 5 s */
  readonly retries?: BackoffOptions;
  readonly clock?: Clock;
  /**
   * Called when connecting fails for the first time, with the failure, and when it succeeds again.
   */
  changed?(failure: Error | undefined): void;
}

/** Numbers of a pool, for metrics. */
export interface PoolFigures {
  /** Open connections, those being opened included. */
  readonly connections: number;
  readonly idle: number;
  readonly waiting: number;
  /** Most connections at once, and most requests that wait for one. */
  readonly maxConnections: number;
  readonly maxWaiting: number;
}

interface Waiter<C> {
  readonly resolve: (connection: C) => void;
  readonly reject: (error: Error) => void;
  readonly cancelTimer: CancelTimer;
}

/** Pauses between attempts to connect, by default. */
const RETRIES: BackoffOptions = { firstMs: 250, maxMs: 5_000 };

/**
 * A bounded pool of connections to one database.
 *
 * A request that finds no connection waits, for a bounded time and with a bounded number of others.
 * While no connection at all can be opened, requests do not wait: each gets the failure of the last
 * attempt, and a new attempt is made after a pause that grows up to five seconds. A database that is
 * gone thus costs its requests one error, and nobody a long wait.
 */
export class ConnectionPool<C extends PooledConnection = SqlConnection> {
  readonly #options: ConnectionPoolDeps<C>;
  readonly #bounds: Required<PoolBounds>;
  readonly #clock: Clock;
  readonly #idle: C[] = [];
  /**
   * Connections that are lent. An array: a `Set` that loses an entry with each request takes new
   * tables again and again, which outlive minor garbage collections.
   */
  readonly #used: C[] = [];
  /** Connections that the closed pool takes leave of. */
  readonly #ending = new Set<C>();
  readonly #waiting: Waiter<C>[] = [];
  #connecting = 0;
  /** Attempts to connect that failed since the last success. */
  #failures = 0;
  #lastFailure: Error | undefined;
  /** A connection was lost since the last attempt to connect: the database may be gone. */
  #hasLost = false;
  #retryAtMs = 0;
  #isClosed = false;
  #closed = Promise.withResolvers<void>();

  constructor(options: ConnectionPoolDeps<C>) {
    this.#options = options;
    this.#bounds = resolvePoolBounds(options.bounds);
    this.#clock = options.clock ?? new SystemClock();
  }

  get figures(): PoolFigures {
    return {
      connections: this.#open,
      idle: this.#idle.length,
      waiting: this.#waiting.length,
      maxConnections: this.#bounds.workers,
      maxWaiting: this.#bounds.maxWaiting,
    };
  }

  /**
   * Returns the failure of the last attempt to connect; undefined while the database can be reached.
   * If that is in doubt, it begins a new attempt, of which the next call tells: a node that serves
   * no requests would never connect otherwise. It obeys the pauses between attempts.
   */
  checkFailure(): Error | undefined {
    this.#connectInDoubt();
    return this.#lastFailure;
  }

  /**
   * Lends a connection. The borrower gives it back with `release`.
   *
   * @throws CausewayError `storage/pool-full`, `storage/timeout`, `storage/closed`, or the failure of
   * the last attempt to connect
   */
  async acquire(): Promise<C> {
    if (this.#isClosed) throw this.#error("closed");
    const idle = this.#takeIdle();
    if (idle !== undefined) return this.#lend(idle);
    if (this.#waiting.length >= this.#bounds.maxWaiting) throw this.#error("pool-full");
    const { promise, resolve, reject } = Promise.withResolvers<C>();
    const waiter: Waiter<C> = {
      resolve,
      reject,
      cancelTimer: this.#clock.after(this.#bounds.waitTimeoutMs, () => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        // A larger pool helps where all are lent, and not where the database lets nobody in.
        const isOut = this.#open === this.#connecting;
        const problem = isOut ? "it accepted no connection" : "no connection became free";
        reject(this.#error("timeout", `${problem} within ${this.#bounds.waitTimeoutMs} ms`));
      }),
    };
    this.#waiting.push(waiter);
    this.#connectMore();
    return await promise;
  }

  /** Takes a connection back. One that was lost or cut makes room for a new one. */
  release(connection: C): void {
    const place = this.#used.indexOf(connection);
    if (place < 0) return;
    this.#used[place] = this.#used.at(-1)!;
    this.#used.pop();
    if (this.#isClosed) this.#end(connection);
    else if (connection.isOpen) this.#give(connection);
    else {
      // The server may be gone. The idle connections would only find out one by one.
      this.#hasLost = true;
      for (const idle of this.#idle.splice(0)) idle.destroy();
      this.#connectMore();
    }
  }

  /**
   * Refuses new requests and closes the connections as they come back. Those that are still open
   * after `withinMs` are cut.
   */
  async close(withinMs: number = this.#bounds.waitTimeoutMs): Promise<void> {
    const cancel = this.#clock.after(withinMs, () => {
      for (const connection of [...this.#used, ...this.#ending]) connection.destroy();
      this.#closed.resolve();
    });
    if (!this.#isClosed) {
      this.#isClosed = true;
      this.#refuseAll(this.#error("closed"));
      for (const idle of this.#idle.splice(0)) this.#end(idle);
      this.#checkClosed();
    }
    await this.#closed.promise;
    cancel();
  }

  get #open(): number {
    return this.#idle.length + this.#used.length + this.#connecting;
  }

  #takeIdle(): C | undefined {
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined || connection.isOpen) return connection;
      this.#hasLost = true;
    }
  }

  /** Makes an attempt to connect for nobody, if the database may have gone or come back. */
  #connectInDoubt(): void {
    if (this.#isClosed || this.#connecting > 0) return;
    const idle = this.#idle.splice(0);
    this.#idle.push(...idle.filter(({ isOpen }) => isOpen));
    if (this.#idle.length < idle.length) this.#hasLost = true;
    if (!this.#hasLost && this.#lastFailure === undefined) return;
    if (this.#clock.monotonicMs() < this.#retryAtMs || this.#open >= this.#bounds.workers) return;
    this.#startConnecting();
  }

  #lend(connection: C): C {
    this.#used.push(connection);
    return connection;
  }

  #give(connection: C): void {
    const waiter = this.#waiting.shift();
    if (waiter === undefined) {
      this.#idle.push(connection);
      return;
    }
    waiter.cancelTimer();
    waiter.resolve(this.#lend(connection));
  }

  /**
   * Opens as many connections as there are waiting requests, within the bound. After a failed
   * attempt, opens one after the pause, and none before.
   */
  #connectMore(): void {
    const failure = this.#lastFailure;
    if (failure !== undefined && this.#clock.monotonicMs() < this.#retryAtMs) {
      if (this.#open === 0) this.#refuseAll(failure);
      return;
    }
    const most = failure === undefined ? this.#bounds.workers : 1;
    while (this.#connecting < Math.min(this.#waiting.length, most)) {
      if (this.#open >= this.#bounds.workers) return;
      this.#startConnecting();
    }
  }

  #startConnecting(): void {
    this.#connecting++;
    this.#hasLost = false;
    this.#connect()
      .then((connection) => this.#connected(connection), (thrown) => this.#failed(thrown));
  }

  async #connect(): Promise<C> {
    const { connectTimeoutMs } = this.#bounds;
    const { promise: late, reject } = Promise.withResolvers<never>();
    const cancel = this.#clock.after(connectTimeoutMs, () => {
      reject(this.#error("unreachable", `it did not answer within ${connectTimeoutMs} ms`));
    });
    const attempt = this.#options.connect();
    let isLate = true;
    try {
      const connection = await Promise.race([attempt, late]);
      isLate = false;
      return connection;
    } finally {
      cancel();
      if (isLate) attempt.then((connection) => connection.destroy(), () => {}); // it failed as well
    }
  }

  #connected(connection: C): void {
    this.#connecting--;
    this.#failures = 0;
    if (this.#lastFailure !== undefined) {
      this.#lastFailure = undefined;
      this.#options.changed?.(undefined);
    }
    if (this.#isClosed) return this.#end(connection);
    this.#give(connection);
    this.#connectMore();
  }

  #failed(thrown: unknown): void {
    this.#connecting--;
    if (this.#isClosed) return this.#checkClosed();
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    const isFirst = this.#lastFailure === undefined;
    this.#lastFailure = error;
    if (isFirst) this.#options.changed?.(error);
    const { retries = RETRIES } = this.#options;
    this.#retryAtMs = this.#clock.monotonicMs() + backoffMs(++this.#failures, retries);
    // Other connections may still serve those who wait.
    if (this.#open === 0) this.#refuseAll(error);
  }

  #refuseAll(error: Error): void {
    for (const waiter of this.#waiting.splice(0)) {
      waiter.cancelTimer();
      waiter.reject(error);
    }
  }

  /** Takes leave of a connection. A server that does not answer is left by `close`. */
  #end(connection: C): void {
    this.#ending.add(connection);
    void connection.close().then(() => {
      this.#ending.delete(connection);
      this.#checkClosed();
    });
  }

  #checkClosed(): void {
    if (this.#isClosed && this.#open === 0 && this.#ending.size === 0) this.#closed.resolve();
  }

  #error(failure: "closed" | "pool-full" | "timeout" | "unreachable", reason?: string) {
    const { place } = this.#options;
    return storageError(failure, { action: "use", place }, reason === undefined ? {} : { reason });
  }
}
