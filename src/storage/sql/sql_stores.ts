import type { Logger, Metrics } from "../../observe/mod.ts";
import type { RequestBounds, SubscriptionRequestStore } from "../subscription_request_store.ts";
import type { ArchiveStore } from "../archive_store.ts";
import type { RosterStore } from "../roster_store.ts";
import type { LastStore } from "../last_store.ts";
import type { PrivacyStore } from "../privacy_store.ts";
import type { OfflineStore } from "../offline_store.ts";
import type { PepStore } from "../pep_store.ts";
import type { MucStore } from "../muc_store.ts";
import type { RoomKind, RoomNames } from "../room_outbox.ts";
import type { RoomStore } from "../room_store.ts";
import type { PrivateStore } from "../private_store.ts";
import type { UserStore } from "../user_store.ts";
import type { VcardStore } from "../vcard_store.ts";
import type { DataStores } from "../data_stores.ts";
import { SqlArchiveStore } from "./sql_archive_store.ts";
import type { PoolFigures } from "./connection_pool.ts";
import type { SqlDatabase } from "./sql_database.ts";
import { SqlLastStore } from "./sql_last_store.ts";
import { SqlMucStore } from "./sql_muc_store.ts";
import { SqlPrivacyStore } from "./sql_privacy_store.ts";
import { SqlOfflineStore } from "./sql_offline_store.ts";
import { SqlPepStore } from "./sql_pep_store.ts";
import { SqlPrivateStore } from "./sql_private_store.ts";
import { SqlRoomNames } from "./sql_room_names.ts";
import { SqlRoomStore } from "./sql_room_store.ts";
import { SqlRosterStore } from "./sql_roster_store.ts";
import { secretOf } from "./sql_secret_store.ts";
import { SqlSubscriptionRequestStore } from "./sql_subscription_request_store.ts";
import { SqlUserStore } from "./sql_user_store.ts";
import { SqlVcardStore } from "./sql_vcard_store.ts";
import { contentIn } from "./unit_rows.ts";

/** The stores in one SQL database, whatever its engine. */
export class SqlStores implements DataStores, AsyncDisposable {
  readonly #database: SqlDatabase;
  readonly #archives: ArchiveStore;

  constructor(database: SqlDatabase) {
    this.#database = database;
    this.#archives = new SqlArchiveStore(database);
  }

  /**
   * Opens a connection, to see whether it can be done.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async probe(): Promise<void> {
    await this.#database.open();
  }

  /**
   * Returns the failure of the last attempt to connect; undefined while the database can be reached. Where
   * that is in doubt, it may begin a new attempt, of which the next call tells.
   */
  checkFailure(): Error | undefined {
    return this.#database.checkFailure();
  }

  /** Name of the database in messages, without its password. */
  get place(): string {
    return this.#database.place;
  }

  /** Numbers of its pool of connections. */
  get figures(): PoolFigures {
    return this.#database.figures;
  }

  /** Newest version of the schema that the database has; undefined until it was reached. */
  get schemaVersion(): number | undefined {
    return this.#database.schemaVersion;
  }

  /** Brings `schemaVersion` up to date, as far as the database answers soon. Never rejects. */
  refreshSchemaVersion(): Promise<void> {
    return this.#database.refreshSchemaVersion();
  }

  /** Returns what tells the database from others; undefined where its engine has nothing. */
  async identity(): Promise<string | undefined> {
    const { dialect: { identity } } = this.#database;
    if (identity === undefined) return undefined;
    return await this.#database.run("read the identity of", async (queries) => {
      const row = await queries.selectNoFrom(identity.as("identity")).executeTakeFirstOrThrow();
      return contentIn(row.identity, "text")?.toString();
    });
  }

  /** Measures and logs from now on, under the name of the database's pool. */
  observe(pool: string, to: { readonly metrics: Metrics; readonly logger: Logger }): void {
    this.#database.observe(pool, to);
  }

  /** Returns the accounts of one domain. */
  users(domainpart: string): UserStore {
    return new SqlUserStore(this.#database, domainpart);
  }

  /** Returns the rosters of all accounts. */
  rosters(): RosterStore {
    return new SqlRosterStore(this.#database);
  }

  /** Returns the private storage of the accounts of one domain. */
  privateStorage(domainpart: string): PrivateStore {
    return new SqlPrivateStore(this.#database, domainpart);
  }

  /** Returns the vCards of the accounts of one domain. */
  vcards(domainpart: string): VcardStore {
    return new SqlVcardStore(this.#database, domainpart);
  }

  /** Returns the last logouts of the accounts of one domain. */
  lastLogouts(domainpart: string): LastStore {
    return new SqlLastStore(this.#database, domainpart);
  }

  /** Returns the privacy lists of the accounts of one domain. */
  privacyLists(domainpart: string): PrivacyStore {
    return new SqlPrivacyStore(this.#database, domainpart);
  }

  /** Returns the messages that wait for the accounts of one domain. */
  offlineMessages(domainpart: string): OfflineStore {
    return new SqlOfflineStore(this.#database, domainpart);
  }

  /** Returns the personal eventing of the accounts of one domain. */
  pep(domainpart: string): PepStore {
    return new SqlPepStore(this.#database, domainpart);
  }

  /** Returns the MUC Light rooms of one domain. */
  rooms(domainpart: string): RoomStore {
    return new SqlRoomStore(this.#database, domainpart);
  }

  /** Returns the Multi-User Chat rooms of one domain. */
  muc(domainpart: string): MucStore {
    return new SqlMucStore(this.#database, domainpart);
  }

  /** Returns the names of all rooms of a kind, whatever their domains. */
  roomNames(kind: RoomKind): RoomNames {
    return new SqlRoomNames(this.#database, kind);
  }

  /** Returns the archives of all accounts: the same object each time. */
  archives(): ArchiveStore {
    return this.#archives;
  }

  /** Returns the subscription requests that wait for their contacts, of all domains. */
  subscriptionRequests(bounds?: RequestBounds): SubscriptionRequestStore {
    return new SqlSubscriptionRequestStore(this.#database, bounds);
  }

  /**
   * Returns random bytes that stay the same as long as the database exists. The first call makes
   * them, or takes those of another database.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async secret(name: string, moved?: Uint8Array): Promise<Uint8Array> {
    return await secretOf(this.#database, name, moved);
  }

  /** Closes the connections. Stores obtained from here reject from then on. */
  async close(): Promise<void> {
    await this.#database.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
