import type { Generated } from "kysely";

/** Text as `SqlDialect.text` makes it and `textOf` reads it. */
export type TextColumn = string | Uint8Array;

/** An account, by the SHA-256 of its bare JID. */
export interface UsersTable {
  account_key: Uint8Array;
  domainpart: TextColumn;
  localpart: TextColumn;
  /** All columns of a hash function are null for an account without a key for it. */
  sha1_salt: Uint8Array | null;
  sha1_iterations: number | null;
  sha1_stored_key: Uint8Array | null;
  sha1_server_key: Uint8Array | null;
  sha256_salt: Uint8Array | null;
  sha256_iterations: number | null;
  sha256_stored_key: Uint8Array | null;
  sha256_server_key: Uint8Array | null;
  /** Random bytes of an account that was made by this version or a later one. */
  creation: Uint8Array | null;
}

/** A subscription request. Two requests of one pair share `pair_key`, the SHA-256 of both JIDs. */
export interface SubscriptionRequestsTable {
  /** Grows, so that the lowest is the oldest. Drivers may return it as text. */
  id: Generated<number>;
  pair_key: Uint8Array;
  contact_key: Uint8Array;
  sender_key: Uint8Array;
  requester: TextColumn;
  contact: TextColumn;
  sender: TextColumn;
  stanza: Uint8Array;
  origin: TextColumn;
  process: number;
  sequence: number;
}

/** A roster, by the SHA-256 of its owner's bare JID. */
export interface RostersTable {
  owner_key: Uint8Array;
  owner: TextColumn;
  /** Drivers may return it as text. */
  version: number;
  removed_version: number;
}

/** A contact in a roster. */
export interface RosterItemsTable {
  owner_key: Uint8Array;
  contact_key: Uint8Array;
  contact: TextColumn;
  /** Bits, see `sql_roster_store.ts`. */
  state: number;
  version: number;
  /** A JSON array: the name, then the groups. */
  details: TextColumn;
  request: Uint8Array | null;
}

/** Random bytes that a store keeps under a name. */
export interface SecretsTable {
  name: TextColumn;
  value: Uint8Array;
}

/** One element of an account's private storage. */
export interface PrivateStorageTable {
  account_key: Uint8Array;
  /** The SHA-256 of the element's name and namespace. */
  element_key: Uint8Array;
  /** The element in UTF-8. */
  content: Uint8Array;
  content_bytes: number;
}

/** The vCard of an account. */
export interface VcardsTable {
  account_key: Uint8Array;
  /** The element in UTF-8. */
  content: Uint8Array;
}

/** The last logout of an account. */
export interface LastActivityTable {
  account_key: Uint8Array;
  /** Wall-clock milliseconds. Drivers may return it as text. */
  logged_out_at: number;
  /** Text in UTF-8. */
  status: Uint8Array;
}

/** The privacy lists of an account. */
export interface PrivacyTable {
  account_key: Uint8Array;
  /** Drivers may return it as text. */
  version: number;
  /** Name of the default list, in UTF-8. */
  default_list: Uint8Array | null;
}

/** One privacy list of an account. */
export interface PrivacyListsTable {
  account_key: Uint8Array;
  /** The SHA-256 of its name. */
  list_key: Uint8Array;
  /** Text in UTF-8. */
  name: Uint8Array;
  /** The items in UTF-8. */
  content: Uint8Array;
}

/** A message that waits for its recipient. */
export interface OfflineMessagesTable {
  account_key: Uint8Array;
  /** Grows with the messages of an account. Drivers may return it as text, as the times below. */
  sequence: number;
  sender_key: Uint8Array;
  stanza: Uint8Array;
  stanza_bytes: number;
  /** Wall-clock milliseconds, as the next two. */
  sent_at: number;
  expires_at: number;
  /** Time until which the claim holds; in the past: nobody delivers the message. */
  claimed_until: number;
  claimed_by: Uint8Array;
}

/** A field of a vCard by which its owner is found. */
export interface VcardSearchTable {
  account_key: Uint8Array;
  /** See `vcard_search.ts`. */
  field: number;
  /** The SHA-256 of the domain. */
  host_key: Uint8Array;
  value: Uint8Array;
  shown: Uint8Array;
  visibility: number;
}

/** A node of an account's personal eventing. */
export interface PepNodesTable {
  account_key: Uint8Array;
  /** The SHA-256 of the node's name. */
  node_key: Uint8Array;
  /** The name in UTF-8. */
  node: Uint8Array;
  /** Text in UTF-8. */
  config: Uint8Array;
  /** Drivers may return it as text. */
  version: number;
}

/** An item of such a node. */
export interface PepItemsTable {
  account_key: Uint8Array;
  node_key: Uint8Array;
  /** The SHA-256 of the item's id. */
  item_key: Uint8Array;
  /** The id in UTF-8. */
  item: Uint8Array;
  /** Version of the node that the item came with. Drivers may return it as text. */
  sequence: number;
  /** Wall-clock milliseconds. Drivers may return it as text. */
  published_at: number;
  /** The payload in UTF-8. */
  content: Uint8Array;
  /** Bytes of id and payload. */
  content_bytes: number;
}

/** An archive of messages. */
export interface ArchivesTable {
  /** The SHA-256 of its bare JID, or of its key where another archive has that row. */
  account_key: Uint8Array;
  /** The SHA-256 of its key. Null: made by an earlier version, as the next two. */
  owner_key: Uint8Array | null;
  /** The SHA-256 of its bare JID. */
  bare_key: Uint8Array | null;
  /** The SHA-256 of the domain. */
  host_key: Uint8Array | null;
  /** Position of the newest message. Drivers may return it as text, and the next two fields. */
  last_position: number;
  /** Wall-clock milliseconds. */
  visible_at: number;
  /** Milliseconds from the sending of a message to its being visible: the most of any. */
  most_late: number;
  /** Milliseconds: at most the `sent_at` of each of its messages. Drivers may return it as text. */
  oldest_sent_at: number;
  /** JSON in UTF-8. */
  preferences: Uint8Array | null;
}

/** A message in an archive. */
export interface ArchiveMessagesTable {
  account_key: Uint8Array;
  /** Grows in the order in which messages become visible. Drivers may return numbers as text. */
  position: number;
  process: number;
  sequence: number;
  /** The SHA-256 of the bare JID of the other side. */
  peer_key: Uint8Array;
  /** Text in UTF-8. */
  peer_resource: Uint8Array;
  /** Wall-clock milliseconds, as the next one. */
  sent_at: number;
  /** Grows with `position`. */
  visible_at: number;
  stanza: Uint8Array;
}

/**
 * Words of an archived message, by which it is found. SQL Server has no such table. The column of the
 * words has another type in each engine.
 */
export interface ArchiveTextsTable {
  account_key: Uint8Array;
  /** Drivers may return it as text. */
  position: number;
}

/** A MUC Light room, by the SHA-256 of its JID. */
export interface MucLightRoomsTable {
  room_key: Uint8Array;
  /** The JID in UTF-8. */
  room: Uint8Array;
  /** JSON in UTF-8. */
  config: Uint8Array;
  /** Drivers may return it as text, as the next three. */
  version: number;
  last_number: number;
  /** 0 in rooms of earlier versions, as the next one. */
  created: Generated<number>;
  archived_number: Generated<number>;
}

/** An occupant of such a room. */
export interface MucLightOccupantsTable {
  room_key: Uint8Array;
  user_key: Uint8Array;
  /** The SHA-256 of the room's domain. */
  service_key: Uint8Array;
  /** The bare JID in UTF-8. */
  occupant: Uint8Array;
  affiliation: number;
  /** Drivers may return it as text. */
  joined: number;
}

/** A room, or a person, that may not add a user to a room. */
export interface MucLightBlocksTable {
  user_key: Uint8Array;
  service_key: Uint8Array;
  blocked_key: Uint8Array;
  is_room: number;
  /** The bare JID in UTF-8. */
  blocked: Uint8Array;
}

/** A Multi-User Chat room. */
export interface MucRoomsTable {
  room_key: Uint8Array;
  /** The SHA-256 of the room's domain. */
  service_key: Uint8Array;
  /**
   * The SHA-256 of the bare JID of the one who made it. Null: an earlier version made it, or the
   * account was removed.
   */
  creator_key: Uint8Array | null;
  /** The JID in UTF-8. */
  room: Uint8Array;
  /** JSON in UTF-8. */
  config: Uint8Array;
  subject: Uint8Array;
  is_listed: number;
  /** Drivers may return it as text, as the next three. */
  version: number;
  last_number: number;
  /** 0 in rooms of earlier versions, as the next one. */
  created: Generated<number>;
  archived_number: Generated<number>;
}

/** Somebody who makes such rooms. */
export interface MucCreatorsTable {
  creator_key: Uint8Array;
  /** Grows with each room, so that a transaction has the row to itself. Drivers may return it as text. */
  changes: number;
}

/** Somebody's affiliation with such a room. */
export interface MucAffiliationsTable {
  room_key: Uint8Array;
  user_key: Uint8Array;
  /** The bare JID in UTF-8. */
  affiliate: Uint8Array;
  affiliation: number;
  reason: Uint8Array;
}

/** A message in such a room. */
export interface MucMessagesTable {
  room_key: Uint8Array;
  /** Drivers may return it as text. */
  number: number;
  message_key: Uint8Array;
  message_id: Uint8Array;
  /** Drivers may return it as text. */
  sent_at: number;
  /** The bare JID in UTF-8. Null in messages of earlier versions. */
  sender: Uint8Array | null;
  stanza: Uint8Array;
}

/** The tables of a database, as all engines have them. */
export interface Tables {
  users: UsersTable;
  subscription_requests: SubscriptionRequestsTable;
  secrets: SecretsTable;
  rosters: RostersTable;
  roster_items: RosterItemsTable;
  private_storage: PrivateStorageTable;
  vcards: VcardsTable;
  last_activity: LastActivityTable;
  privacy: PrivacyTable;
  privacy_lists: PrivacyListsTable;
  offline_messages: OfflineMessagesTable;
  vcard_search: VcardSearchTable;
  pep_nodes: PepNodesTable;
  pep_items: PepItemsTable;
  archives: ArchivesTable;
  archive_messages: ArchiveMessagesTable;
  archive_texts: ArchiveTextsTable;
  muc_light_rooms: MucLightRoomsTable;
  muc_light_occupants: MucLightOccupantsTable;
  muc_light_blocks: MucLightBlocksTable;
  muc_light_messages: MucMessagesTable;
  muc_rooms: MucRoomsTable;
  muc_creators: MucCreatorsTable;
  muc_affiliations: MucAffiliationsTable;
  muc_messages: MucMessagesTable;
}
