import { CausewayError } from "../base/mod.ts";
import type { Logger, Metrics } from "../observe/mod.ts";
import type { ScramCredentials } from "../xmpp/sasl/mod.ts";
import type { DataKind } from "./catalogue/catalogue.ts";
import { backendRow } from "./catalogue/catalogue.ts";
import type { DataStores } from "./data_stores.ts";
import { InternalStore } from "./internal_store.ts";
import type { LdapPoolOptions } from "./ldap/ldap_directory.ts";
import { LdapStores } from "./ldap/ldap_stores.ts";
import type { LdapPlace, SharedRosterPlace } from "./ldap/ldap_stores.ts";
import { serverKindOf } from "./server_kinds.ts";
import type { ServerBackendId, ServerPoolOptions } from "./server_pools.ts";
import { MSSQL } from "./sql/engines/mssql.ts";
import { MYSQL } from "./sql/engines/mysql.ts";
import { POSTGRES } from "./sql/engines/postgres.ts";
import type { PoolBounds, PoolFigures } from "./sql/connection_pool.ts";
import { sqlServerDatabase } from "./sql/sql_server.ts";
import type { SqlAddress, SqlEngine, SqlServerOptions } from "./sql/sql_server.ts";
import { SqlStores } from "./sql/sql_stores.ts";
import { archiveKeyOf, roomArchiveKeyOf } from "./archive_store.ts";
import type { ArchiveStore } from "./archive_store.ts";
import type { LastStore } from "./last_store.ts";
import type { MucStore } from "./muc_store.ts";
import type { PrivacyStore } from "./privacy_store.ts";
import type { OfflineStore } from "./offline_store.ts";
import type { PepStore } from "./pep_store.ts";
import type { PrivateStore } from "./private_store.ts";
import type { RequestBounds, SubscriptionRequestStore } from "./subscription_request_store.ts";
import type { RoomOutbox } from "./room_outbox.ts";
import type { RoomStore } from "./room_store.ts";
import type { RosterStore } from "./roster_store.ts";
import type { UserStore } from "./user_store.ts";
import type { VcardStore } from "./vcard_store.ts";

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

/** Options of all stores of a node. */
export interface StoresOptions {
  readonly internal: { readonly path: string };
  /** Pools of SQL databases, by tag. */
  readonly pools: ReadonlyMap<string, SqlPoolOptions>;
  /** Places of accounts, by host. */
  readonly users: ReadonlyMap<string, DataPlace>;
  /**
   * Places of other data, by kind and host. @default where the host's accounts are, and the built-in
   * store for accounts in a directory
   */
  readonly data?: ReadonlyMap<DataKind, ReadonlyMap<string, DataPlace>>;
  /** Pools of directories, by tag. @default none */
  readonly ldapPools?: ReadonlyMap<string, LdapPoolOptions>;
  /**
   * Pools of databases that are neither SQL nor LDAP, by the kind of pool and the tag, such as
   * `elastic.default`. @default none
   */
  readonly serverPools?: ReadonlyMap<string, ServerPoolOptions>;
  /** Contacts that a directory gives all people of a host, by host. @default none */
  readonly sharedRosters?: ReadonlyMap<string, SharedRosterPlace>;
}

/** A database that could not be used when it was first asked. */
export interface StoreFailure {
  readonly pool: string;
  readonly error: CausewayError;
}

/** A database that a node uses, and its connections. */
export interface DatabaseState extends PoolFigures {
  /** `internal`, or the kind of the pool and its tag: `rdbms.default`. */
  readonly pool: string;
  /** `sqlite`, `pgsql`, `mysql`, `mssql`, `ldap`, `elasticsearch`, `cassandra` or `riak`. */
  readonly kind: string;
  /** Name of the database in messages, without its password. */
  readonly place: string;
  /** Failure of the last attempt to connect; undefined while the database can be reached. */
  readonly lastFailure: Error | undefined;
}

/** A place in a pool of connections that is no directory. */
type DatabasePlace = Exclude<DataPlace, { readonly backend: "internal" } | LdapPlace>;

/** Returns the name of the pool of a place: the kind of the pool and the tag. */
function nameOf({ backend, pool }: DatabasePlace): string {
  return `${backendRow(backend).poolKind}.${pool}`;
}

/** Returns a store of a kind that its database holds. The checks of the configuration see to that. */
function held<T>(store: T | undefined): T {
  if (store === undefined) {
    throw new TypeError("Cannot open a store: its database has no such kind");
  }
  return store;
}

function stateOf(
  { place, figures, lastFailure }: Pick<DataStores, "place" | "figures" | "lastFailure">,
): Omit<DatabaseState, "pool" | "kind"> {
  return { place, ...figures, lastFailure };
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

/** The stores of a node: the built-in one, and the databases that hold accounts. */
export class Stores implements AsyncDisposable {
  readonly #options: StoresOptions;
  readonly #internal: InternalStore;
  readonly #ldap: LdapStores;
  /** SQL databases by tag, or by tag and host where each host has connections of its own. */
  readonly #databases = new Map<string, SqlStores>();
  /** Databases that are neither SQL nor LDAP, by the names of their pools. */
  readonly #servers = new Map<string, DataStores>();
  #observers: { readonly metrics: Metrics; readonly logger: Logger } | undefined;

  private constructor(options: StoresOptions, internal: InternalStore) {
    this.#options = options;
    this.#internal = internal;
    this.#ldap = new LdapStores(options.ldapPools);
  }

  /**
   * Opens the built-in store. Databases are connected at need.
   *
   * @throws CausewayError `storage/…` when the built-in store cannot be opened
   */
  static async open(options: StoresOptions): Promise<Stores> {
    return new Stores(options, await InternalStore.open(options.internal));
  }

  /**
   * Connects to each database that a host uses, and returns the failures that may pass by
   * themselves.
   *
   * @throws CausewayError `storage/…` for a failure that stays, such as a wrong password or schema
   */
  async probe(): Promise<readonly StoreFailure[]> {
    const failures: StoreFailure[] = [];
    const probed = new Set<string>();
    const { users, data = new Map(), sharedRosters = new Map() } = this.#options;
    const directories = [...sharedRosters.values()].map(({ pool }) => pool);
    for (const [host, place] of [users, ...data.values()].flatMap((places) => [...places])) {
      if (place.backend === "ldap") directories.push(place.pool);
      if (place.backend === "internal" || place.backend === "ldap") continue;
      const pool = nameOf(place);
      if (probed.has(pool)) continue;
      probed.add(pool);
      try {
        await this.#databaseAt(place, host).probe();
      } catch (error) {
        if (!(error instanceof CausewayError) || !error.retryable) throw error;
        failures.push({ pool, error });
      }
    }
    return [...failures, ...await this.#ldap.probe(directories)];
  }

  /** Measures and logs all databases from now on. */
  observe(observers: { readonly metrics: Metrics; readonly logger: Logger }): void {
    this.#observers = observers;
    this.#internal.observe("internal", observers);
    this.#ldap.observe(observers);
    for (const [key, database] of this.#databases) {
      database.observe(`rdbms.${key}`, observers);
    }
    for (const [name, server] of this.#servers) server.observe(name, observers);
  }

  /** Returns the databases that could not be reached at the last attempt to connect. */
  failures(): readonly { readonly pool: string; readonly error: Error }[] {
    const failed = [...this.#databases].flatMap(([key, { lastFailure: error }]) =>
      error === undefined ? [] : [{ pool: `rdbms.${key}`, error }]
    );
    const servers = [...this.#servers].flatMap(([pool, { lastFailure: error }]) =>
      error === undefined ? [] : [{ pool, error }]
    );
    return [...failed, ...servers, ...this.#ldap.failures()];
  }

  /** Returns the databases in use and their connections: the built-in store is always the first. */
  databases(): readonly DatabaseState[] {
    const internal = { pool: "internal", kind: "sqlite", ...stateOf(this.#internal) };
    const sql = [...this.#databases].map(([key, database]) => ({
      pool: `rdbms.${key}`,
      kind: this.#options.pools.get(key.split(" ", 1)[0]!)!.driver,
      ...stateOf(database),
    }));
    const directories = this.#ldap.inUse.map((directory) => ({
      pool: directory.pool,
      kind: "ldap",
      ...stateOf(directory),
    }));
    const servers = [...this.#servers].map(([pool, server]) => ({
      pool,
      kind: this.#options.serverPools!.get(pool)!.backend,
      ...stateOf(server),
    }));
    return [internal, ...sql, ...directories, ...servers];
  }

  /** Returns the accounts of one domain. */
  users(domainpart: string): UserStore {
    const place = this.#options.users.get(domainpart);
    if (place?.backend === "ldap") return this.#ldap.users(place, domainpart);
    return held(this.#storesOf(domainpart).users?.(domainpart));
  }

  /** Returns the rosters of the accounts of one domain. */
  rosters(domainpart: string): RosterStore {
    const own = held(this.#storesOf(domainpart, "roster").rosters?.());
    const shared = this.#options.sharedRosters?.get(domainpart);
    if (shared === undefined) return own;
    return this.#ldap.rosters(shared, { own, users: this.users(domainpart), domainpart });
  }

  /** True when the rosters of both domains lie in one database. */
  shareRosters(one: string, other: string): boolean {
    return this.#storesOf(one, "roster") === this.#storesOf(other, "roster");
  }

  /** Returns the private storage of the accounts of one domain. */
  privateStorage(domainpart: string): PrivateStore {
    return held(this.#storesOf(domainpart, "private").privateStorage?.(domainpart));
  }

  /** Returns the vCards of the accounts of one domain. */
  vcards(domainpart: string): VcardStore {
    const place = this.#options.data?.get("vcard")?.get(domainpart);
    if (place?.backend === "ldap") return this.#ldap.vcards(place, domainpart);
    return held(this.#storesOf(domainpart, "vcard").vcards?.(domainpart));
  }

  /** Returns the last logouts of the accounts of one domain. */
  lastLogouts(domainpart: string): LastStore {
    return held(this.#storesOf(domainpart, "last").lastLogouts?.(domainpart));
  }

  /** Returns the privacy lists of the accounts of one domain. */
  privacyLists(domainpart: string): PrivacyStore {
    return held(this.#storesOf(domainpart, "privacy").privacyLists?.(domainpart));
  }

  /** Returns the messages that wait for the accounts of one domain. */
  offlineMessages(domainpart: string): OfflineStore {
    return held(this.#storesOf(domainpart, "offline").offlineMessages?.(domainpart));
  }

  /** Returns the personal eventing of the accounts of one domain. */
  pep(domainpart: string): PepStore {
    return held(this.#storesOf(domainpart, "pep").pep?.(domainpart));
  }

  /**
   * Returns MUC Light rooms.
   *
   * @param host host whose rooms they are
   * @param domainpart domain of the rooms
   */
  rooms(host: string, domainpart: string): RoomStore {
    return held(this.#storesOf(host, "muc_light").rooms?.(domainpart));
  }

  /**
   * Returns Multi-User Chat rooms.
   *
   * @param host host whose rooms they are
   * @param domainpart domain of the rooms
   */
  muc(host: string, domainpart: string): MucStore {
    return held(this.#storesOf(host, "muc").muc?.(domainpart));
  }

  /** Returns the archives of a domain's accounts: the same object for all domains of a database. */
  archives(domainpart: string): ArchiveStore {
    return held(this.#storesOf(domainpart, "mam").archives?.());
  }

  /**
   * Returns the archives of rooms: in most databases those of accounts too.
   *
   * @param host host whose rooms they are
   */
  roomArchives(host: string): ArchiveStore {
    const stores = this.#storesOf(host, "mam");
    return stores.roomArchives?.() ?? held(stores.archives?.());
  }

  /**
   * Deletes an account with all its data. Resolves to false when there was no account. Data goes
   * first: the account is there until everything else is gone, so that a removal that failed can be
   * repeated. Data that others have written until the account was gone, such as messages for it, goes
   * afterwards: whoever writes later finds no account.
   *
   * @throws CausewayError `storage/managed-elsewhere` for an account in a directory, `storage/…`
   */
  async removeAccount(localpart: string, domainpart: string): Promise<boolean> {
    if (this.#isInDirectory("users", domainpart)) {
      return await this.users(domainpart).remove(localpart); // refuses before any data goes
    }
    await this.removeData(localpart, domainpart);
    const users = this.users(domainpart);
    const wasThere = await users.remove(localpart);
    const isGone = wasThere && !await users.exists(localpart); // or has a new owner already
    if (isGone) await this.removeData(localpart, domainpart, { isGone });
    return wasThere;
  }

  /**
   * Makes an account. It does not get an archive of that name which no account has taken
   * since version 0.1.0.
   *
   * @throws CausewayError as `UserStore.add`
   */
  async addAccount(
    localpart: string,
    domainpart: string,
    credentials: ScramCredentials,
  ): Promise<void> {
    const users = this.users(domainpart);
    if (!this.#isInDirectory("users", domainpart) && !await users.exists(localpart)) {
      await this.archives(domainpart).closeUnowned?.(`${localpart}@${domainpart}`);
    }
    await users.add(localpart, credentials);
  }

  /**
   * Deletes the data of an account, and keeps the account. Its subscriptions end in the rosters of
   * its contacts at all hosts, in whichever database these are.
   *
   * @param isGone true for an account that is deleted. Another one may take its name at any moment,
   * and keeps its archive
   * @throws CausewayError with a code `storage/…`
   */
  async removeData(
    localpart: string,
    domainpart: string,
    { isGone = false }: { readonly isGone?: boolean } = {},
  ): Promise<void> {
    await this.#partElsewhere(`${localpart}@${domainpart}`, domainpart);
    await this.rosters(domainpart).removeAll(`${localpart}@${domainpart}`);
    await this.privateStorage(domainpart).removeAll(localpart);
    if (!this.#isInDirectory("vcard", domainpart)) await this.vcards(domainpart).remove(localpart);
    await this.lastLogouts(domainpart).remove(localpart);
    await this.privacyLists(domainpart).removeAll(localpart);
    await this.offlineMessages(domainpart).removeAll(localpart);
    await this.pep(domainpart).removeAll(localpart);
    const owner = async () => {
      const creation = (await this.users(domainpart).existing([localpart])).get(localpart);
      return creation === undefined
        ? undefined
        : archiveKeyOf(`${localpart}@${domainpart}`, creation);
    };
    await this.archives(domainpart).removeAll(
      `${localpart}@${domainpart}`,
      isGone ? owner : undefined,
    );
    for (const stores of this.#everywhere("muc_light", domainpart)) {
      const rooms = held(stores.rooms?.(domainpart));
      for (const room of await rooms.removeUser(`${localpart}@${domainpart}`)) {
        await this.#removeRoomArchive(room, rooms);
      }
    }
    for (const stores of this.#everywhere("muc", domainpart)) {
      await held(stores.muc?.(domainpart)).removeUser(`${localpart}@${domainpart}`);
    }
  }

  /** Returns the subscription requests that this node keeps. */
  subscriptionRequests(bounds: RequestBounds): SubscriptionRequestStore {
    return this.#internal.subscriptionRequests(bounds);
  }

  /**
   * Returns random bytes that are the same for all who share the accounts of this domain. The first
   * call makes them.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async secret(name: string, domainpart: string): Promise<Uint8Array> {
    return await held(this.#storesOf(domainpart).secret?.(name));
  }

  async close(): Promise<void> {
    const databases = [...this.#databases.values(), ...this.#servers.values()];
    const all = [...databases, this.#ldap, this.#internal];
    await Promise.all(all.map((each) => each.close()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Ends what an account shares with contacts whose rosters lie in other databases than its own. */
  async #partElsewhere(account: string, domainpart: string): Promise<void> {
    const isElsewhere = (host: string) => !this.shareRosters(host, domainpart);
    const hosts = new Set([...this.#options.users.keys()].filter(isElsewhere));
    if (hosts.size === 0) return;
    const contacts = await this.rosters(domainpart).contacts(account, { withRequests: true });
    for (const { jid } of contacts) {
      const host = jid.slice(jid.indexOf("@") + 1);
      if (hosts.has(host)) await this.rosters(host).part(jid, account);
    }
  }

  /** Removes the archive of a room that is gone, wherever archives of rooms may lie. */
  async #removeRoomArchive(room: string, rooms: RoomOutbox): Promise<void> {
    const hosts = [...this.#options.users.keys(), ...this.#options.data?.get("mam")?.keys() ?? []];
    for (const archives of new Set(hosts.map((host) => this.roomArchives(host)))) {
      await archives.removeAll(room, async () => {
        const found = await rooms.unarchived(room, 1); // it may have been made again
        return found && roomArchiveKeyOf(room, found);
      });
    }
  }

  /** Returns all databases that may hold rooms with an account of `domainpart` in them. */
  #everywhere(kind: "muc_light" | "muc", domainpart: string): ReadonlySet<DataStores> {
    const hosts = [...this.#options.data?.get(kind)?.keys() ?? [], domainpart];
    return new Set(hosts.map((host) => this.#storesOf(host, kind)));
  }

  #storesOf(domainpart: string, kind: DataKind = "users"): DataStores {
    const place = this.#options.data?.get(kind)?.get(domainpart) ??
      this.#options.users.get(domainpart);
    if (place === undefined || place.backend === "internal" || place.backend === "ldap") {
      return this.#internal;
    }
    return this.#databaseAt(place, domainpart);
  }

  #databaseAt(place: DatabasePlace, host: string): DataStores {
    return place.backend === "rdbms" ? this.#database(place.pool, host) : this.#server(place);
  }

  #server(place: DatabasePlace): DataStores {
    const name = nameOf(place);
    let server = this.#servers.get(name);
    if (server === undefined) {
      const options = this.#options.serverPools?.get(name);
      if (options === undefined) throw new TypeError(`Cannot use the pool ${name}: there is none`);
      server = serverKindOf(options).open({ name, options });
      this.#servers.set(name, server);
      if (this.#observers !== undefined) server.observe(name, this.#observers);
    }
    return server;
  }

  #isInDirectory(kind: "users" | "vcard", domainpart: string): boolean {
    const { users, data } = this.#options;
    const places = kind === "users" ? users : data?.get(kind);
    return places?.get(domainpart)?.backend === "ldap";
  }

  #database(tag: string, host: string): SqlStores {
    const pool = this.#options.pools.get(tag);
    if (pool === undefined) throw new TypeError(`Cannot use the pool ${tag}: there is none`);
    const key = pool.scope === "host" ? `${tag} ${host}` : tag;
    let database = this.#databases.get(key);
    if (database === undefined) {
      database = new SqlStores(sqlServerDatabase(sqlServerOf(tag, pool)));
      this.#databases.set(key, database);
      if (this.#observers !== undefined) database.observe(`rdbms.${key}`, this.#observers);
    }
    return database;
  }
}
