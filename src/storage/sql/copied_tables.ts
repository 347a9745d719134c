import type { DataKind } from "../catalogue/catalogue.ts";
import type { Tables } from "./tables.ts";

/** Content of a column, whatever type an engine gives it and its driver returns. */
export type ColumnContent = "bytes" | "text" | "number";

/** Columns of every table, with their content. */
export const COLUMNS = {
  users: {
    account_key: "bytes",
    domainpart: "text",
    localpart: "text",
    sha1_salt: "bytes",
    sha1_iterations: "number",
    sha1_stored_key: "bytes",
    sha1_server_key: "bytes",
    sha256_salt: "bytes",
    sha256_iterations: "number",
    sha256_stored_key: "bytes",
    sha256_server_key: "bytes",
    creation: "bytes",
  },
  subscription_requests: {
    id: "number",
    pair_key: "bytes",
    contact_key: "bytes",
    sender_key: "bytes",
    requester: "text",
    contact: "text",
    sender: "text",
    stanza: "bytes",
    origin: "text",
    process: "number",
    sequence: "number",
  },
  secrets: { name: "text", value: "bytes" },
  rosters: { owner_key: "bytes", owner: "text", version: "number", removed_version: "number" },
  roster_items: {
    owner_key: "bytes",
    contact_key: "bytes",
    contact: "text",
    state: "number",
    version: "number",
    details: "text",
    request: "bytes",
  },
  private_storage: {
    account_key: "bytes",
    element_key: "bytes",
    content: "bytes",
    content_bytes: "number",
  },
  vcards: { account_key: "bytes", content: "bytes" },
  last_activity: { account_key: "bytes", logged_out_at: "number", status: "bytes" },
  privacy: { account_key: "bytes", version: "number", default_list: "bytes" },
  privacy_lists: { account_key: "bytes", list_key: "bytes", name: "bytes", content: "bytes" },
  offline_messages: {
    account_key: "bytes",
    sequence: "number",
    sender_key: "bytes",
    stanza: "bytes",
    stanza_bytes: "number",
    sent_at: "number",
    expires_at: "number",
    claimed_by: "bytes",
    claimed_until: "number",
  },
  vcard_search: {
    account_key: "bytes",
    field: "number",
    host_key: "bytes",
    value: "bytes",
    shown: "bytes",
    visibility: "number",
  },
  pep_nodes: {
    account_key: "bytes",
    node_key: "bytes",
    node: "bytes",
    config: "bytes",
    version: "number",
  },
  pep_items: {
    account_key: "bytes",
    node_key: "bytes",
    item_key: "bytes",
    item: "bytes",
    sequence: "number",
    published_at: "number",
    content: "bytes",
    content_bytes: "number",
  },
  archives: {
    account_key: "bytes",
    owner_key: "bytes",
    bare_key: "bytes",
    host_key: "bytes",
    oldest_sent_at: "number",
    last_position: "number",
    visible_at: "number",
    most_late: "number",
    preferences: "bytes",
  },
  archive_messages: {
    account_key: "bytes",
    position: "number",
    process: "number",
    sequence: "number",
    peer_key: "bytes",
    peer_resource: "bytes",
    sent_at: "number",
    visible_at: "number",
    stanza: "bytes",
  },
  archive_texts: { account_key: "bytes", position: "number" },
  muc_light_rooms: {
    room_key: "bytes",
    room: "bytes",
    config: "bytes",
    version: "number",
    last_number: "number",
    created: "number",
    archived_number: "number",
  },
  muc_light_occupants: {
    room_key: "bytes",
    user_key: "bytes",
    service_key: "bytes",
    occupant: "bytes",
    affiliation: "number",
    joined: "number",
  },
  muc_light_blocks: {
    user_key: "bytes",
    service_key: "bytes",
    blocked_key: "bytes",
    is_room: "number",
    blocked: "bytes",
  },
  muc_light_messages: {
    room_key: "bytes",
    number: "number",
    message_key: "bytes",
    message_id: "bytes",
    sent_at: "number",
    sender: "bytes",
    stanza: "bytes",
  },
  muc_rooms: {
    room_key: "bytes",
    service_key: "bytes",
    creator_key: "bytes",
    room: "bytes",
    config: "bytes",
    subject: "bytes",
    is_listed: "number",
    version: "number",
    last_number: "number",
    created: "number",
    archived_number: "number",
  },
  muc_creators: { creator_key: "bytes", changes: "number" },
  muc_affiliations: {
    room_key: "bytes",
    user_key: "bytes",
    affiliate: "bytes",
    affiliation: "number",
    reason: "bytes",
  },
  muc_messages: {
    room_key: "bytes",
    number: "number",
    message_key: "bytes",
    message_id: "bytes",
    sent_at: "number",
    sender: "bytes",
    stanza: "bytes",
  },
} as const satisfies {
  readonly [Table in keyof Tables]: { readonly [Column in keyof Tables[Table]]: ColumnContent };
};

/** Name of a table. */
export type TableName = keyof Tables;

/**
 * Tables whose rows belong together where they have the same key: a roster and its items. Such a
 * unit is copied whole or not at all.
 */
export interface TableGroup {
  /** Column with the key of the unit, the same in every table. */
  readonly key: string;
  /** The first table has a row for every unit. */
  readonly tables: readonly [TableName, ...TableName[]];
  /**
   * Columns of the first table that name a unit in a report, joined by `@`. None: the key is that of
   * an account, which has the name.
   */
  readonly names: readonly string[];
  /** Units that are read and written at once: few where a unit may be large. */
  readonly batch: number;
}

/** Tables of the kinds of data that `causeway backends copy` takes. */
export const COPIED_KINDS = {
  users: [
    { key: "account_key", tables: ["users"], names: ["localpart", "domainpart"], batch: 200 },
    // Strangers learn nothing of names without an account as long as these stay the same.
    { key: "name", tables: ["secrets"], names: ["name"], batch: 200 },
  ],
  roster: [
    { key: "owner_key", tables: ["rosters", "roster_items"], names: ["owner"], batch: 20 },
  ],
  private: [{ key: "account_key", tables: ["private_storage"], names: [], batch: 20 }],
  vcard: [{ key: "account_key", tables: ["vcards", "vcard_search"], names: [], batch: 20 }],
  last: [{ key: "account_key", tables: ["last_activity"], names: [], batch: 200 }],
  privacy: [
    { key: "account_key", tables: ["privacy", "privacy_lists"], names: [], batch: 20 },
  ],
  offline: [{ key: "account_key", tables: ["offline_messages"], names: [], batch: 5 }],
  pep: [{ key: "account_key", tables: ["pep_nodes", "pep_items"], names: [], batch: 5 }],
  muc_light: [
    {
      key: "room_key",
      tables: ["muc_light_rooms", "muc_light_occupants", "muc_light_messages"],
      names: ["room"],
      batch: 5,
    },
    { key: "user_key", tables: ["muc_light_blocks"], names: [], batch: 20 },
  ],
  muc: [
    {
      key: "room_key",
      tables: ["muc_rooms", "muc_affiliations", "muc_messages"],
      names: ["room"],
      batch: 2,
    },
  ],
} as const satisfies Partial<Record<DataKind, readonly TableGroup[]>>;

/** Tables that no kind names, each with the reason. */
export const TABLES_LEFT_OUT: Readonly<Partial<Record<TableName, string>>> = {
  subscription_requests: "requests follow their contacts from node to node by themselves",
  archives: "an archive may be larger than memory: it is copied message by message",
  archive_messages: "as its archive",
  archive_texts: "they are made anew of the messages that are copied",
  muc_creators: "a row is made when it is needed, and says nothing",
};
