import type { Logger, Metrics } from "../observe/mod.ts";
import type { ArchiveStore } from "./archive_store.ts";
import type { LastStore } from "./last_store.ts";
import type { MucStore } from "./muc_store.ts";
import type { OfflineStore } from "./offline_store.ts";
import type { PepStore } from "./pep_store.ts";
import type { PrivacyStore } from "./privacy_store.ts";
import type { PrivateStore } from "./private_store.ts";
import type { RoomKind, RoomNames } from "./room_outbox.ts";
import type { RoomStore } from "./room_store.ts";
import type { RosterStore } from "./roster_store.ts";
import type { PoolFigures } from "./sql/connection_pool.ts";
import type { UserStore } from "./user_store.ts";
import type { VcardStore } from "./vcard_store.ts";

/**
 * One database and the stores in it. A database has a method for each kind of data that it may hold
 * (`CATALOGUE`). It opens connections at need.
 */
export interface DataStores {
  /** Name of the database in messages, without its password. */
  readonly place: string;
  /** Numbers of its pool of connections. */
  readonly figures: PoolFigures;
  /**
   * Returns the failure of the last attempt to connect; undefined while the database can be reached. Where
   * that is in doubt, it may begin a new attempt, of which the next call tells.
   */
  checkFailure(): Error | undefined;
  /** Newest version of the schema that the database has; undefined until it was reached. */
  readonly schemaVersion?: number | undefined;
  /** Brings `schemaVersion` up to date, as far as the database answers soon. Never rejects. */
  refreshSchemaVersion?(): Promise<void>;
  /**
   * Connects, to see whether that can be done.
   *
   * @throws CausewayError with a code `storage/…`
   */
  probe(): Promise<void>;
  /**
   * Returns a text that no other database of this kind has, whatever address leads there; undefined
   * where nothing tells two databases apart. It may change when the servers change.
   *
   * @throws CausewayError with a code `storage/…`
   */
  identity?(): Promise<string | undefined>;
  /** Measures and logs from now on, under the name of the database's pool. */
  observe(pool: string, to: { readonly metrics: Metrics; readonly logger: Logger }): void;
  /** Closes the connections. Stores obtained from here reject from then on. */
  close(): Promise<void>;

  /** Returns the accounts of one domain. A database of accounts has `secret` too. */
  users?(domainpart: string): UserStore;
  /**
   * Returns random bytes that stay the same as long as the database exists. The first call makes
   * them.
   *
   * @param moved 32 bytes that the first call takes in place of new ones: those of another database
   * @throws CausewayError with a code `storage/…`
   */
  secret?(name: string, moved?: Uint8Array): Promise<Uint8Array>;
  /** Returns the rosters of all accounts. */
  rosters?(): RosterStore;
  /** Returns the private storage of the accounts of one domain. */
  privateStorage?(domainpart: string): PrivateStore;
  /** Returns the vCards of the accounts of one domain. */
  vcards?(domainpart: string): VcardStore;
  /** Returns the last logouts of the accounts of one domain. */
  lastLogouts?(domainpart: string): LastStore;
  /** Returns the privacy lists of the accounts of one domain. */
  privacyLists?(domainpart: string): PrivacyStore;
  /** Returns the messages that wait for the accounts of one domain. */
  offlineMessages?(domainpart: string): OfflineStore;
  /** Returns the personal eventing of the accounts of one domain. */
  pep?(domainpart: string): PepStore;
  /** Returns the MUC Light rooms of one domain. */
  rooms?(domainpart: string): RoomStore;
  /** Returns the Multi-User Chat rooms of one domain. */
  muc?(domainpart: string): MucStore;
  /** Returns the names of all rooms of a kind, whatever their domains. A database of rooms has it. */
  roomNames?(kind: RoomKind): RoomNames;
  /** Returns the archives of all accounts: the same object each time. */
  archives?(): ArchiveStore;
  /** Returns the archives of all rooms, where they are not in `archives`: the same object each time. */
  roomArchives?(): ArchiveStore;
}
