import type { BackoffOptions, Clock } from "../../base/mod.ts";
import { SystemClock } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import type { PoolBounds, PoolFigures } from "../sql/connection_pool.ts";
import { ConnectionPool, resolvePoolBounds } from "../sql/connection_pool.ts";
import { DatabaseObserver } from "../sql/database_observer.ts";
import type { SqlPassword, SqlTls } from "../sql/sql_server.ts";
import { readTls } from "../sql/sql_server.ts";
import type { LdapSearch } from "./ldap_connection.ts";
import { LdapConnection } from "./ldap_connection.ts";
import type { LdapEntry } from "./ldap_entry.ts";
import { ldapError } from "./ldap_failure.ts";
import type { LdapEncryption } from "./ldap_socket.ts";

/** One pool of connections to a directory: `outgoing_pools.ldap.TAG`. */
export interface LdapPoolOptions {
  /** Servers with the same content; the first that answers is used. At least one. */
  readonly servers: readonly string[];
  readonly port: number;
  readonly encryption: LdapEncryption;
  readonly tls: SqlTls;
  /** Login for searches; empty: anonymous. */
  readonly rootDn: string;
  readonly password: SqlPassword;
  /** Longest pause between attempts to connect. */
  readonly connectIntervalMs: number;
  readonly bounds: PoolBounds;
}

/** Options of a directory. */
export interface LdapDirectoryOptions {
  /** Name of the pool, such as `ldap.default`. */
  readonly pool: string;
  readonly options: LdapPoolOptions;
  /** `people`: connections for the logins of people, which log in as nobody themselves. */
  readonly use: "searches" | "people";
  readonly clock?: Clock;
}

/** A directory through a bounded pool of connections. */
export class LdapDirectory {
  /** Name for messages, without secrets. */
  readonly place: string;
  readonly pool: string;
  readonly #options: LdapPoolOptions;
  readonly #isForPeople: boolean;
  readonly #bounds: Required<PoolBounds>;
  readonly #connections: ConnectionPool<LdapConnection>;
  readonly #clock: Clock;
  #observer: DatabaseObserver | undefined;

  constructor({ pool, options, use, clock = new SystemClock() }: LdapDirectoryOptions) {
    this.pool = pool;
    this.place = placeOf(pool, options);
    this.#options = options;
    this.#isForPeople = use === "people";
    this.#bounds = resolvePoolBounds(options.bounds);
    this.#clock = clock;
    const { connectIntervalMs } = options;
    const retries: BackoffOptions = {
      firstMs: Math.min(250, connectIntervalMs),
      maxMs: connectIntervalMs,
    };
    this.#connections = new ConnectionPool<LdapConnection>({
      place: this.place,
      connect: () => this.#connect(),
      bounds: this.#bounds,
      retries,
      clock,
      changed: (failure) => this.#observer?.changed(failure),
    });
  }

  /**
   * Returns the failure of the last attempt to connect; undefined while the directory can be reached. Where
   * that is in doubt, it may begin a new attempt, of which the next call tells.
   */
  checkFailure(): Error | undefined {
    return this.#connections.checkFailure();
  }

  /** Numbers of its pool of connections. */
  get figures(): PoolFigures {
    return this.#connections.figures;
  }

  /** Measures and logs from now on. */
  observe(to: { readonly metrics: Metrics; readonly logger: Logger }): void {
    this.#observer = new DatabaseObserver(this.pool, this.#connections, to);
  }

  /**
   * Opens a first connection, to see whether it can be done.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async probe(): Promise<void> {
    this.#connections.release(await this.#connections.acquire());
  }

  /**
   * Returns the entries that a search finds.
   *
   * @param action for messages: begins with a verb and ends with a preposition
   * @throws CausewayError with a code `storage/…`
   */
  async search(action: string, search: LdapSearch): Promise<readonly LdapEntry[]> {
    return await this.#run(action, (connection) => connection.search(search));
  }

  /**
   * True when a password lets the entry in.
   *
   * @throws CausewayError with a code `storage/…` when it cannot be tried
   */
  async accepts(dn: string, password: string): Promise<boolean> {
    return await this.#run("log in to", (connection) => connection.bind(dn, password));
  }

  /** Closes the connections once they come back. Requests are refused from now on. */
  async close(): Promise<void> {
    await this.#connections.close();
  }

  async #run<T>(action: string, work: (connection: LdapConnection) => Promise<T>): Promise<T> {
    try {
      try {
        return await this.#once(work);
      } catch (thrown) {
        // An idle connection may have been lost behind our back, and reading twice does no harm.
        const error = ldapError(thrown, { action, place: this.place });
        if (error.code !== "storage/unreachable" || this.checkFailure() !== undefined) throw error;
        return await this.#once(work);
      }
    } catch (thrown) {
      const error = ldapError(thrown, { action, place: this.place });
      this.#observer?.failed(error.code);
      throw error;
    }
  }

  async #once<T>(work: (connection: LdapConnection) => Promise<T>): Promise<T> {
    const connection = await this.#connections.acquire();
    const beganMs = this.#clock.monotonicMs();
    try {
      return await work(connection);
    } finally {
      this.#observer?.took(this.#clock.monotonicMs() - beganMs);
      this.#connections.release(connection);
    }
  }

  /** Connects to the first server that answers. */
  async #connect(): Promise<LdapConnection> {
    const { servers, port, encryption, rootDn, password } = this.#options;
    const { connectTimeoutMs, statementTimeoutMs } = this.#bounds;
    const login = this.#isForPeople || rootDn === ""
      ? undefined
      : { dn: rootDn, password: password.reveal() };
    let failure: unknown;
    for (const host of servers) {
      try {
        const tls = encryption === "none" ? {} : await readTls(this.#options.tls);
        return await LdapConnection.open({ host, port, encryption, tls }, {
          login,
          connectTimeoutMs: Math.ceil(connectTimeoutMs / servers.length),
          requestTimeoutMs: statementTimeoutMs,
        });
      } catch (thrown) {
        failure = thrown;
      }
    }
    throw ldapError(failure, { action: "connect to", place: this.place });
  }
}

function placeOf(pool: string, { servers, port }: LdapPoolOptions): string {
  return `the directory ${pool} (LDAP at ${servers.map((host) => `${host}:${port}`).join(", ")})`;
}
