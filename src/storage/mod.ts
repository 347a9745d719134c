export type {
  BackendId,
  BackendRow,
  DataKind,
  ServerProduct,
  ServerProductId,
} from "./catalogue/catalogue.ts";
export {
  backendRow,
  CATALOGUE,
  DATA_KINDS,
  describeKinds,
  kindProblem,
  serverProduct,
  versionProblem,
} from "./catalogue/catalogue.ts";
export { removeUnownedMessages } from "./unowned_messages.ts";
export type { ListPage, UserStore } from "./user_store.ts";
export { DEFAULT_PAGE_LIMIT, listUsers } from "./user_store.ts";
export type { PrivateBounds, PrivateChange, PrivateName, PrivateStore } from "./private_store.ts";
export type {
  PrivacyStore,
  PrivacyWrite,
  StoredPrivacy,
  StoredPrivacyList,
} from "./privacy_store.ts";
export type { AccountLogout, LastLogout, LastStore } from "./last_store.ts";
export type {
  ArchiveAge,
  ArchivedMessage,
  ArchiveEnd,
  ArchiveFilter,
  ArchiveId,
  ArchiveOutcome,
  ArchivePage,
  ArchivePageRequest,
  ArchivePeer,
  ArchivePreferences,
  ArchiveStore,
  StoredMessage,
} from "./archive_store.ts";
export {
  archiveKeyOf,
  bareJidOfArchive,
  DEFAULT_ARCHIVE_PREFERENCES,
  MAX_ARCHIVE_IDS,
  roomArchiveKeyOf,
} from "./archive_store.ts";
export { ENCRYPTED, roomPeerIn, searchableText } from "./archive_content.ts";
export type { SqlAddress, SqlTls } from "./sql/sql_server.ts";
export { readTls } from "./sql/sql_server.ts";
export type {
  HeldClaim,
  OfflineBounds,
  OfflineClaim,
  OfflineMessage,
  OfflineStore,
  WaitingMessage,
} from "./offline_store.ts";
export { importMarkName } from "./offline_store.ts";
export type { FoundPerson, SearchField, SearchOptions, SearchTerm } from "./vcard_search.ts";
export { SEARCH_FIELDS } from "./vcard_search.ts";
export type { VcardStore } from "./vcard_store.ts";
export type {
  LastItemsQuery,
  LastPepItem,
  PepBounds,
  PepItem,
  PepNode,
  PepPublication,
  PepStore,
} from "./pep_store.ts";
export type { RoomListPage } from "./room_list_page.ts";
export type {
  ListedMucRoom,
  MucAffiliate,
  MucAffiliation,
  MucRoomChange,
  MucStore,
  NewMucMessage,
  NewMucRoom,
  StoredMucRoom,
} from "./muc_store.ts";
export type {
  ListedRoom,
  NumberedMessage,
  RoomAffiliation,
  RoomBlock,
  RoomChange,
  RoomOccupant,
  RoomStore,
  StoredRoom,
} from "./room_store.ts";
export { successorIn } from "./room_store.ts";
export type {
  NewRoomMessage,
  OverdueRooms,
  RoomKind,
  RoomMessage,
  RoomOutbox,
  UnarchivedMessage,
  UnarchivedMessages,
} from "./room_outbox.ts";
export { MAX_UNARCHIVED } from "./room_outbox.ts";
export type { InternalStoreOptions } from "./internal_store.ts";
export { InternalStore } from "./internal_store.ts";
export type {
  RequestBounds,
  RequestChange,
  RequestPair,
  SubscriptionRequest,
  SubscriptionRequestStore,
} from "./subscription_request_store.ts";
export { resolveRequestBounds } from "./subscription_request_store.ts";
export type {
  DatabaseKind,
  DatabaseState,
  DataPlace,
  PreparedPools,
  SqlDriver,
  SqlPoolOptions,
} from "./database_pools.ts";
export type { StoreFailure, StoresOptions } from "./stores.ts";
export { Stores } from "./stores.ts";
export type {
  CassandraPoolOptions,
  ElasticPoolOptions,
  RiakPoolOptions,
  ServerAddress,
  ServerBackendId,
  ServerPoolOptions,
} from "./server_pools.ts";
export { ForeignDatabase } from "./foreign_database.ts";
export type { Backend, BackendReport, PrepareStep } from "./backend.ts";
export { backendsOf, DUMP_VARIANTS, mssqlDump, SCHEMA_NAMES, schemaFiles } from "./backends.ts";
export type {
  Roster,
  RosterContact,
  RosterEntry,
  RosterItem,
  RosterStore,
  RosterWrite,
  Subscription,
  VersionedItem,
} from "./roster_store.ts";
export { isSeen, seesPresence, subscriptionOf } from "./roster_store.ts";
export type { CopiedKind, CopyOptions, CopyReport } from "./copy_data.ts";
export {
  copiableKinds,
  COPIED_KIND_NAMES,
  copyData,
  inCopyOrder,
  refuseEmptySource,
} from "./copy_data.ts";
export type { LdapAccountsOptions, LdapUid } from "./ldap/ldap_accounts.ts";
export type { LdapPoolOptions } from "./ldap/ldap_directory.ts";
export type { LdapPlace, SharedRosterPlace } from "./ldap/ldap_stores.ts";
export { filterProblem } from "./ldap/ldap_text.ts";
export type { VcardMapping } from "./ldap/ldap_vcard.ts";
export { DEFAULT_VCARD_MAP, VCARD_FIELDS } from "./ldap/ldap_vcard.ts";
export type { SharedRosterOptions } from "./ldap/shared_roster.ts";
