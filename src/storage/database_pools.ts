import type { Logger, Metrics } from "../observe/mod.ts";
import { backendRow } from "./catalogue/catalogue.ts";
import type { DataStores } from "./data_stores.ts";
import { Exchange } from "./exchange.ts";
import type { InternalStore } from "./internal_store.ts";
import type { LdapPoolOptions } from "./ldap/ldap_directory.ts";
import { LdapStores } from "./ldap/ldap_stores.ts";
import type { LdapPlace } from "./ldap/ldap_stores.ts";
import { serverKindOf } from "./server_kinds.ts";
import type { ServerBackendId, ServerPoolOptions } from "./server_pools.ts";
import { MSSQL } from "./sql/engines/mssql.ts";
import { MYSQL } from "./sql/engines/mysql.ts";
import { POSTGRES } from "./sql/engines/postgres.ts";
import type { PoolBounds, PoolFigures } from "./sql/connection_pool.ts";
import { sqlServerDatabase } from "./sql/sql_server.ts";
import type { SqlAddress, SqlEngine, SqlServerOptions } from "./sql/sql_server.ts";
import { SqlStores } from "./sql/sql_stores.ts";

/** SQL engines that are reached over the network, as `driver` and `rdbms_server_type` name them. */
export type SqlDriver = "pgsql" | "mysql" | "mssql";

const ENGINES: Readonly<Record<SqlDriver, SqlEngine>> = {
  pgsql: POSTGRES,
  mysql: MYSQL,
  mssql: MSSQL,
};

/** One pool of connections to an SQL database: `outgoing_pools.rdbms.TAG`. */
export interface SqlPoolOptions {
  /**
   * Hosts that share its connections: all of them (`global`), each host with connections of its own
   * (`host`), or one host alone (`single_host`).
   */
  readonly scope: "global" | "host" | "single_host";
  /** The host of the scope `single_host`. */
  readonly host?: string | undefined;
  readonly driver: SqlDriver;
  readonly address: SqlAddress;
  readonly bounds: PoolBounds;
}

/** Place of one kind of data of a host. */
export type DataPlace =
  | { readonly backend: "internal" }
  /** `pool` is a tag. */
  | { readonly backend: "rdbms" | ServerBackendId; readonly pool: string }
  | LdapPlace;

/** Pools of connections of a node's databases. */
export interface PoolsOptions {
  /** Pools of SQL databases, by tag. */
  readonly pools: ReadonlyMap<string, SqlPoolOptions>;
  /** Pools of directories, by tag. @default none */
  readonly ldapPools?: ReadonlyMap<string, LdapPoolOptions>;
  /**
   * Pools of databases that are neither SQL nor LDAP, by the kind of pool and the tag, such as
   * `elastic.default`. @default none
   */
  readonly serverPools?: ReadonlyMap<string, ServerPoolOptions>;
}

/** Engine or product of a database. */
export type DatabaseKind = "sqlite" | SqlDriver | "ldap" | ServerBackendId;

/** A database that a node uses, and its connections. */
export interface DatabaseState extends PoolFigures {
  /** `internal`, or the kind of the pool and its tag: `rdbms.default`. */
  readonly pool: string;
  readonly kind: DatabaseKind;
  /** Name of the database in messages, without its password. */
  readonly place: string;
  /** Failure of the last attempt to connect; undefined while the database can be reached. */
  readonly lastFailure: Error | undefined;
  /** Newest version of the schema that an SQL database has; absent until it was reached. */
  readonly schemaVersion?: number;
}

/** A place in a pool of connections that is no directory. */
export type DatabasePlace = Exclude<DataPlace, { readonly backend: "internal" } | LdapPlace>;

/** Returns the name of the pool of a place: the kind of the pool and the tag. */
export function poolNameOf({ backend, pool }: DatabasePlace): string {
  return `${backendRow(backend).poolKind}.${pool}`;
}

function stateOf(
  stores: Pick<DataStores, "place" | "figures" | "checkFailure" | "schemaVersion">,
): Omit<DatabaseState, "pool" | "kind"> {
  const { place, figures, schemaVersion } = stores;
  return {
    place,
    ...figures,
    lastFailure: stores.checkFailure(),
    ...(schemaVersion === undefined ? {} : { schemaVersion }),
  };
}

/** Returns the engine behind a driver. */
export function sqlEngineOf(driver: SqlDriver): SqlEngine {
  return ENGINES[driver];
}

/** Returns the server behind a pool. */
export function sqlServerOf(tag: string, pool: SqlPoolOptions): SqlServerOptions {
  const { driver, address, bounds } = pool;
  return { engine: ENGINES[driver], address, pool: `rdbms.${tag}`, bounds };
}

/** Databases with other pools of connections than those in use, which are connected already. */
export interface PreparedPools {
  /** Names of the pools, as in `DatabaseState`. */
  readonly pools: readonly string[];
  /** Uses them from now on. Each former database is closed once its last request has ended. */
  use(): void;
  /** Closes them instead. */
  discard(): Promise<void>;
}

interface PreparedPool {
  use(): void;
  close(): Promise<void>;
}

/** The databases of a node, and their connections. Databases are connected at need. */
export class DatabasePools {
  readonly builtIn: Exchange<DataStores>;
  readonly ldap: Exchange<LdapStores>;
  #options: PoolsOptions;
  readonly #internal: InternalStore;
  /** SQL databases by tag, or by tag and host where each host has connections of its own. */
  readonly #databases = new Map<string, Exchange<DataStores>>();
  /** Databases that are neither SQL nor LDAP, by the names of their pools. */
  readonly #servers = new Map<string, Exchange<DataStores>>();
  #observers: { readonly metrics: Metrics; readonly logger: Logger } | undefined;

  constructor(options: PoolsOptions, internal: InternalStore) {
    this.#options = options;
    this.#internal = internal;
    this.builtIn = new Exchange<DataStores>(internal);
    this.ldap = new Exchange(new LdapStores(options.ldapPools));
  }

  /** Returns the database of a place. It is connected at need. */
  databaseAt(place: DatabasePlace, host: string): Exchange<DataStores> {
    return place.backend === "rdbms" ? this.#database(place.pool, host) : this.#server(place);
  }

  #server(place: DatabasePlace): Exchange<DataStores> {
    const name = poolNameOf(place);
    let server = this.#servers.get(name);
    if (server === undefined) {
      const options = this.#options.serverPools?.get(name);
      if (options === undefined) throw new TypeError(`Cannot use the pool ${name}: there is none`);
      server = new Exchange(serverKindOf(options).open({ name, options }));
      this.#servers.set(name, server);
      if (this.#observers !== undefined) server.current.observe(name, this.#observers);
    }
    return server;
  }

  /**
   * Connects to each database in use whose pool differs in `options`. Nothing else happens before
   * `use`.
   *
   * @throws CausewayError with a code `storage/…` for the first database that cannot be reached or
   * used; then all is as before
   */
  async prepare(options: PoolsOptions): Promise<PreparedPools> {
    const prepared: PreparedPool[] = [];
    const pools: string[] = [];
    const add = async (name: string, pool: PreparedPool, probe: () => Promise<void>) => {
      prepared.push(pool); // before anything fails, so that it is closed again
      pools.push(name);
      await probe();
    };
    try {
      for (const [key, exchange] of this.#databases) {
        const tag = key.split(" ", 1)[0]!; // a text has a first part
        const pool = options.pools.get(tag);
        if (pool === undefined || isSame(pool, this.#options.pools.get(tag))) continue;
        const next = new SqlStores(sqlServerDatabase(sqlServerOf(tag, pool)));
        await add(
          `rdbms.${key}`,
          this.#prepared(exchange, next, `rdbms.${key}`),
          () => next.probe(),
        );
      }
      for (const [name, exchange] of this.#servers) {
        const pool = options.serverPools?.get(name);
        if (pool === undefined || isSame(pool, this.#options.serverPools?.get(name))) continue;
        const next = serverKindOf(pool).open({ name, options: pool });
        await add(name, this.#prepared(exchange, next, name), () => next.probe());
      }
      const changed = this.#changedDirectories(options);
      if (changed.length > 0) {
        const next = new LdapStores(options.ldapPools);
        const use = () => {
          if (this.#observers !== undefined) next.observe(this.#observers);
          this.ldap.replace(next);
        };
        await add(
          changed.map((tag) => `ldap.${tag}`).join(", "),
          { use, close: () => next.close() },
          async () => {
            const [failure] = await next.probe(changed);
            if (failure !== undefined) throw failure.error;
          },
        );
      }
    } catch (thrown) {
      await Promise.all(prepared.map((each) => each.close()));
      throw thrown;
    }
    return {
      pools,
      use: () => {
        const { pools: sql, ldapPools, serverPools } = options;
        this.#options = {
          ...this.#options,
          pools: sql,
          ...(ldapPools !== undefined && { ldapPools }),
          ...(serverPools !== undefined && { serverPools }),
        };
        for (const each of prepared) each.use();
      },
      discard: async () => {
        await Promise.all(prepared.map((each) => each.close()));
      },
    };
  }

  #prepared(exchange: Exchange<DataStores>, next: DataStores, name: string): PreparedPool {
    return {
      use: () => {
        if (this.#observers !== undefined) next.observe(name, this.#observers);
        exchange.replace(next);
      },
      close: () => next.close(),
    };
  }

  /** Returns the tags of directories in use whose pools differ in `options`. */
  #changedDirectories({ ldapPools }: PoolsOptions): readonly string[] {
    const tags = new Set(
      this.ldap.current.inUse.map(({ pool }) =>
        pool.replace(/^ldap\./, "").replace(/ \(logins\)$/, "")
      ),
    );
    return [...tags].filter((tag) => {
      const pool = ldapPools?.get(tag);
      return pool !== undefined && !isSame(pool, this.#options.ldapPools?.get(tag));
    });
  }

  /** Measures and logs all databases from now on. */
  observe(observers: { readonly metrics: Metrics; readonly logger: Logger }): void {
    this.#observers = observers;
    this.#internal.observe("internal", observers);
    this.ldap.current.observe(observers);
    for (const [key, { current }] of this.#databases) current.observe(`rdbms.${key}`, observers);
    for (const [name, { current }] of this.#servers) current.observe(name, observers);
  }

  /** Brings the schema versions of `databases()` up to date, and returns them. Never rejects. */
  async refreshedDatabases(): Promise<readonly DatabaseState[]> {
    const current = [...this.#databases.values()].map((exchange) => exchange.current);
    await Promise.all([this.#internal, ...current].map((each) => each.refreshSchemaVersion?.()));
    return this.databases();
  }

  /** Returns the databases in use and their connections: the built-in store is always the first. */
  databases(): readonly DatabaseState[] {
    const internal: DatabaseState = {
      pool: "internal",
      kind: "sqlite",
      ...stateOf(this.#internal),
    };
    const sql = [...this.#databases].map(([key, { current }]): DatabaseState => ({
      pool: `rdbms.${key}`,
      kind: this.#options.pools.get(key.split(" ", 1)[0]!)!.driver,
      ...stateOf(current),
    }));
    const directories = this.ldap.current.inUse.map((directory): DatabaseState => ({
      pool: directory.pool,
      kind: "ldap",
      ...stateOf(directory),
    }));
    const servers = [...this.#servers].map(([pool, { current }]): DatabaseState => ({
      pool,
      kind: this.#options.serverPools!.get(pool)!.backend,
      ...stateOf(current),
    }));
    return [internal, ...sql, ...directories, ...servers];
  }

  async close(): Promise<void> {
    const databases = [...this.#databases.values(), ...this.#servers.values()];
    const all = [...databases, this.ldap, this.builtIn];
    await Promise.all(all.map((each) => each.close()));
  }

  #database(tag: string, host: string): Exchange<DataStores> {
    const pool = this.#options.pools.get(tag);
    if (pool === undefined) throw new TypeError(`Cannot use the pool ${tag}: there is none`);
    const key = pool.scope === "host" ? `${tag} ${host}` : tag;
    let database = this.#databases.get(key);
    if (database === undefined) {
      database = new Exchange<DataStores>(new SqlStores(sqlServerDatabase(sqlServerOf(tag, pool))));
      this.#databases.set(key, database);
      if (this.#observers !== undefined) {
        database.current.observe(`rdbms.${key}`, this.#observers);
      }
    }
    return database;
  }
}

/** True when both have the same values, secrets included. */
function isSame(one: unknown, other: unknown): boolean {
  return textOf(one) === textOf(other);
}

/** Returns all values of options as text. It holds secrets, so nobody may keep it. */
function textOf(options: unknown): string | undefined {
  return JSON.stringify(options, function (this: Readonly<Record<string, unknown>>, key, value) {
    const own = this[key]; // `value` is what a secret shows of itself
    const isSecret = typeof own === "object" && own !== null && "reveal" in own;
    if (isSecret && typeof own.reveal === "function") return own.reveal();
    return value;
  });
}
