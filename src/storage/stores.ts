import { CausewayError } from "../base/mod.ts";
import type { Logger, Metrics } from "../observe/mod.ts";
import type { ScramCredentials } from "../xmpp/sasl/mod.ts";
import type { DataKind } from "./catalogue/catalogue.ts";
import type { DataStores } from "./data_stores.ts";
import type { DatabaseState, DataPlace, PoolsOptions, PreparedPools } from "./database_pools.ts";
import { DatabasePools, poolNameOf } from "./database_pools.ts";
import type { Exchange } from "./exchange.ts";
import { InternalStore } from "./internal_store.ts";
import type { SharedRosterPlace } from "./ldap/ldap_stores.ts";
import { archiveKeyOf, roomArchiveKeyOf } from "./archive_store.ts";
import type { ArchiveStore } from "./archive_store.ts";
import type { LastStore } from "./last_store.ts";
import type { MucStore } from "./muc_store.ts";
import type { PrivacyStore } from "./privacy_store.ts";
import type { OfflineStore } from "./offline_store.ts";
import type { PepStore } from "./pep_store.ts";
import type { PrivateStore } from "./private_store.ts";
import type { RequestBounds, SubscriptionRequestStore } from "./subscription_request_store.ts";
import type { RoomKind, RoomNames, RoomOutbox } from "./room_outbox.ts";
import type { RoomStore } from "./room_store.ts";
import type { RosterStore } from "./roster_store.ts";
import { removeUnownedMessages } from "./unowned_messages.ts";
import type { UserStore } from "./user_store.ts";
import type { VcardStore } from "./vcard_store.ts";

/** Options of all stores of a node. */
export interface StoresOptions extends PoolsOptions {
  readonly internal: { readonly path: string };
  /** Places of accounts, by host. */
  readonly users: ReadonlyMap<string, DataPlace>;
  /**
   * Places of other data, by kind and host. @default where the host's accounts are, and the built-in
   * store for accounts in a directory
   */
  readonly data?: ReadonlyMap<DataKind, ReadonlyMap<string, DataPlace>>;
  /** Contacts that a directory gives all people of a host, by host. @default none */
  readonly sharedRosters?: ReadonlyMap<string, SharedRosterPlace>;
}

/** A database that could not be used when it was first asked. */
export interface StoreFailure {
  readonly pool: string;
  readonly error: CausewayError;
}

/** Returns a store of a kind that its database holds. The checks of the configuration see to that. */
function held<T>(store: T | undefined): T {
  if (store === undefined) {
    throw new TypeError("Cannot open a store: its database has no such kind");
  }
  return store;
}

/** The stores of a node: the built-in one, and the databases that hold accounts. */
export class Stores implements AsyncDisposable {
  readonly #options: Omit<StoresOptions, keyof PoolsOptions>;
  readonly #internal: InternalStore;
  readonly #pools: DatabasePools;

  private constructor(options: StoresOptions, internal: InternalStore) {
    this.#options = options;
    this.#internal = internal;
    this.#pools = new DatabasePools(options, internal);
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
      const pool = poolNameOf(place);
      if (probed.has(pool)) continue;
      probed.add(pool);
      try {
        await this.#pools.databaseAt(place, host).current.probe();
      } catch (error) {
        if (!(error instanceof CausewayError) || !error.retryable) throw error;
        failures.push({ pool, error });
      }
    }
    return [...failures, ...await this.#pools.ldap.current.probe(directories)];
  }

  /**
   * Connects to each database in use whose pool differs in `options`. Nothing else happens before
   * `use`. Other options than those of pools are not looked at.
   *
   * @throws CausewayError with a code `storage/…` for the first database that cannot be reached or
   * used; then all is as before
   */
  async prepare(options: PoolsOptions): Promise<PreparedPools> {
    return await this.#pools.prepare(options);
  }

  /** Measures and logs all databases from now on. */
  observe(observers: { readonly metrics: Metrics; readonly logger: Logger }): void {
    this.#pools.observe(observers);
  }

  /** Brings the schema versions of `databases()` up to date, and returns them. Never rejects. */
  async refreshedDatabases(): Promise<readonly DatabaseState[]> {
    return await this.#pools.refreshedDatabases();
  }

  /** Returns the databases in use and their connections: the built-in store is always the first. */
  databases(): readonly DatabaseState[] {
    return this.#pools.databases();
  }

  /** Returns the accounts of one domain. */
  users(domainpart: string): UserStore {
    const place = this.#options.users.get(domainpart);
    if (place?.backend === "ldap") {
      return this.#pools.ldap.store((ldap) => ldap.users(place, domainpart));
    }
    return this.#storesOf(domainpart).store((stores) => held(stores.users?.(domainpart)));
  }

  /** Returns the rosters of the accounts of one domain. */
  rosters(domainpart: string): RosterStore {
    const own = this.#storesOf(domainpart, "roster")
      .store((stores) => held(stores.rosters?.()));
    const shared = this.#options.sharedRosters?.get(domainpart);
    if (shared === undefined) return own;
    const users = this.users(domainpart);
    return this.#pools.ldap.store((ldap) => ldap.rosters(shared, { own, users, domainpart }));
  }

  /** True when the rosters of both domains lie in one database. */
  shareRosters(one: string, other: string): boolean {
    return this.#storesOf(one, "roster") === this.#storesOf(other, "roster");
  }

  /** Returns the private storage of the accounts of one domain. */
  privateStorage(domainpart: string): PrivateStore {
    return this.#storesOf(domainpart, "private")
      .store((stores) => held(stores.privateStorage?.(domainpart)));
  }

  /** Returns the vCards of the accounts of one domain. */
  vcards(domainpart: string): VcardStore {
    const place = this.#options.data?.get("vcard")?.get(domainpart);
    if (place?.backend === "ldap") {
      return this.#pools.ldap.store((ldap) => ldap.vcards(place, domainpart));
    }
    return this.#storesOf(domainpart, "vcard")
      .store((stores) => held(stores.vcards?.(domainpart)));
  }

  /** Returns the last logouts of the accounts of one domain. */
  lastLogouts(domainpart: string): LastStore {
    return this.#storesOf(domainpart, "last")
      .store((stores) => held(stores.lastLogouts?.(domainpart)));
  }

  /** Returns the privacy lists of the accounts of one domain. */
  privacyLists(domainpart: string): PrivacyStore {
    return this.#storesOf(domainpart, "privacy")
      .store((stores) => held(stores.privacyLists?.(domainpart)));
  }

  /** Returns the messages that wait for the accounts of one domain. */
  offlineMessages(domainpart: string): OfflineStore {
    return this.#storesOf(domainpart, "offline")
      .store((stores) => held(stores.offlineMessages?.(domainpart)));
  }

  /** Returns the personal eventing of the accounts of one domain. */
  pep(domainpart: string): PepStore {
    return this.#storesOf(domainpart, "pep")
      .store((stores) => held(stores.pep?.(domainpart)));
  }

  /**
   * Returns MUC Light rooms.
   *
   * @param host host whose rooms they are
   * @param domainpart domain of the rooms
   */
  rooms(host: string, domainpart: string): RoomStore {
    return this.#storesOf(host, "muc_light")
      .store((stores) => held(stores.rooms?.(domainpart)));
  }

  /**
   * Returns Multi-User Chat rooms.
   *
   * @param host host whose rooms they are
   * @param domainpart domain of the rooms
   */
  muc(host: string, domainpart: string): MucStore {
    return this.#storesOf(host, "muc")
      .store((stores) => held(stores.muc?.(domainpart)));
  }

  /** Returns the names of the rooms of a kind, one object for each database that may hold some. */
  roomNames(kind: RoomKind): readonly RoomNames[] {
    const hosts = [...this.#options.users.keys(), ...this.#options.data?.get(kind)?.keys() ?? []];
    const databases = new Set(hosts.map((host) => this.#storesOf(host, kind)));
    return [...databases].filter(({ current }) => current.roomNames !== undefined)
      .map((database) => database.store((stores) => held(stores.roomNames?.(kind))));
  }

  /** Returns the archives of a domain's accounts: the same object for all domains of a database. */
  archives(domainpart: string): ArchiveStore {
    return archivesOf(this.#storesOf(domainpart, "mam"));
  }

  /**
   * Returns the archives of rooms: in most databases those of accounts too.
   *
   * @param host host whose rooms they are
   */
  roomArchives(host: string): ArchiveStore {
    const database = this.#storesOf(host, "mam");
    if (database.current.roomArchives === undefined) return archivesOf(database);
    return database.shared("roomArchives", (stores) => held(stores.roomArchives?.()));
  }

  /**
   * Deletes an account with all its data. Resolves to false when there was no account. Data goes
   * first: the account is there until everything else is gone, so that a removal that failed can be
   * repeated. Data that others have written until the account was gone, such as messages for it, goes
   * afterwards: whoever writes later finds no account.
   *
   * @param options `creation` of the account that is meant, as for `UserStore.remove`
   * @throws CausewayError `storage/managed-elsewhere` for an account in a directory, `storage/…`
   */
  async removeAccount(
    localpart: string,
    domainpart: string,
    options?: { readonly creation: string },
  ): Promise<boolean> {
    if (this.#isInDirectory("users", domainpart)) {
      return await this.users(domainpart).remove(localpart); // refuses before any data goes
    }
    const users = this.users(domainpart);
    const creation = (await users.existing([localpart])).get(localpart);
    const isAnother = creation !== undefined && options !== undefined &&
      creation !== options.creation;
    if (isAnother) return false; // its data are those of the name's next owner
    await this.removeData(localpart, domainpart);
    const wasThere = await users.remove(localpart, options);
    const isGone = wasThere && !await users.exists(localpart); // or has a new owner already
    if (isGone) await this.removeData(localpart, domainpart, { isGone });
    return wasThere;
  }

  /**
   * Makes an account. It does not get an archive of that name which no account has taken
   * since version 0.1.0, nor messages for an earlier owner of the name. A node that dies as it keeps one
   * of those cannot remove it any more.
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
      const messages = this.offlineMessages(domainpart);
      await removeUnownedMessages(localpart, { users, messages });
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
    for (const database of this.#everywhere("muc_light", domainpart)) {
      const rooms = database.store((stores) => held(stores.rooms?.(domainpart)));
      for (const room of await rooms.removeUser(`${localpart}@${domainpart}`)) {
        await this.#removeRoomArchive(room, rooms);
      }
    }
    for (const database of this.#everywhere("muc", domainpart)) {
      const rooms = database.store((stores) => held(stores.muc?.(domainpart)));
      await rooms.removeUser(`${localpart}@${domainpart}`);
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
    const stores = this.#storesOf(domainpart).store<DataStores>((database) => database);
    return await held(stores.secret?.(name));
  }

  async close(): Promise<void> {
    await this.#pools.close();
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
  #everywhere(kind: "muc_light" | "muc", domainpart: string): ReadonlySet<Exchange<DataStores>> {
    const hosts = [...this.#options.data?.get(kind)?.keys() ?? [], domainpart];
    return new Set(hosts.map((host) => this.#storesOf(host, kind)));
  }

  #storesOf(domainpart: string, kind: DataKind = "users"): Exchange<DataStores> {
    const place = this.#options.data?.get(kind)?.get(domainpart) ??
      this.#options.users.get(domainpart);
    if (place === undefined || place.backend === "internal" || place.backend === "ldap") {
      return this.#pools.builtIn;
    }
    return this.#pools.databaseAt(place, domainpart);
  }

  #isInDirectory(kind: "users" | "vcard", domainpart: string): boolean {
    const { users, data } = this.#options;
    const places = kind === "users" ? users : data?.get(kind);
    return places?.get(domainpart)?.backend === "ldap";
  }
}

/** Returns the archives of all accounts in a database. */
function archivesOf(database: Exchange<DataStores>): ArchiveStore {
  return database.shared("archives", (stores) => held(stores.archives?.()));
}
