import type { PlacedItem } from "./account_source.ts";
import type { MongooseimDatabase } from "./mongooseim_rows.ts";
import { textOf } from "./mongooseim_rows.ts";

/** Rows of a table that are counted; a large archive has so many that to count all takes minutes. */
const MAX_ROWS = 1_000_000;

/** Tables whose rows are not taken, with what they hold. Versions since 5.0 have some or all of them. */
const LEFT: Readonly<Record<string, string>> = {
  auth_token: "tokens for logins",
  broadcast_jobs: "broadcasts",
  domain_admins: "administrators of domains",
  event_pusher_push_subscription: "registrations for push notifications",
  fast_auth_token: "tokens for logins of devices",
  inbox: "inboxes",
  invites: "invitations",
  mam_config: "preferences of message archives",
  mam_message: "message archives",
  mam_muc_message: "message archives of rooms",
  muc_light_blocking: "blocking in MUC Light",
  muc_light_config: "configurations of MUC Light rooms",
  muc_light_occupants: "occupants of MUC Light rooms",
  muc_light_rooms: "MUC Light rooms",
  muc_registered: "nicknames registered with rooms",
  muc_room_aff: "affiliations with rooms",
  muc_rooms: "rooms",
  offline_markers: "chat markers in rooms",
  pubsub_item: "items of personal eventing, in a form that Causeway does not know",
  pubsub_node: "nodes of personal eventing, in a form that Causeway does not know",
  pubsub_node_collections: "collections of nodes",
  pubsub_subscription: "explicit subscriptions to nodes",
  pubsub_subscriptions: "explicit subscriptions to nodes",
  smart_markers: "chat markers",
};

/**
 * Tables that hold nothing of people: facts about the cluster and its domains, and copies of what other
 * tables hold. `mam_server_user` has a number for each archive.
 */
const OF_SERVER = new Set([
  "broadcast_jobs_ownership",
  "broadcast_worker_state",
  "caps",
  "discovery_nodes",
  "domain_events",
  "domain_settings",
  "mam_server_user",
  "mongoose_cluster_id",
  "pubsub_last_item",
  "roster_version",
  "test_types",
  "vcard_search",
]);

/** Rows that are not taken of tables whose other rows are. */
const PARTS: Readonly<Record<string, { readonly what: string; readonly where: string }>> = {
  pubsub_node: { what: "nodes of services, with their items", where: "service_user = ''" },
  pubsub_nodes: { what: "nodes of services, with their items", where: "p_key NOT LIKE '%@%'" },
};

/**
 * Names the tables of a database whose rows are not taken, in the order of their names, each with the
 * number of its rows. A table that is not known here is among them: no row is left in silence.
 *
 * @param taken tables whose rows are taken
 * @param after name of the table behind which it begins
 * @throws CausewayError with a code `storage/…`
 */
export async function* tablesLeft(
  database: MongooseimDatabase,
  taken: ReadonlySet<string>,
  after = "",
): AsyncGenerator<PlacedItem, void> {
  const schema = database.driver === "pgsql" ? "current_schema()" : "DATABASE()";
  const rows = await database.query(
    "SELECT table_name AS t FROM information_schema.tables " +
      `WHERE table_schema = ${schema} AND table_type = 'BASE TABLE'`,
  );
  for (const table of rows.map(({ t }) => textOf(t)).sort()) {
    const name = table.toLowerCase();
    const part = taken.has(name) ? PARTS[name] : undefined;
    const isLeft = !taken.has(name) && !OF_SERVER.has(name);
    if (table <= after || (part === undefined && !isLeft)) continue;
    const found = await countOf(database, table, part?.where);
    if (found === 0) continue;
    const count = found > MAX_ROWS ? `more than ${MAX_ROWS}` : found;
    const what = part?.what ?? LEFT[name] ?? "Causeway does not know this table";
    const reason = `table ${table}: ${count} rows are not taken (${what})`;
    const finding = { account: "", kind: "other", reason } as const;
    yield { position: JSON.stringify({ table }), item: { kind: "finding", finding } };
  }
}

/** Counts the rows of a table, up to one more than `MAX_ROWS`. */
async function countOf(
  database: MongooseimDatabase,
  table: string,
  where = "1 = 1",
): Promise<number> {
  const quote = database.driver === "pgsql" ? '"' : "`";
  const quoted = `${quote}${table.replaceAll(quote, quote + quote)}${quote}`;
  const [row] = await database.query(
    `SELECT count(*) AS n FROM (SELECT 1 AS one FROM ${quoted} WHERE ${where} ` +
      `LIMIT ${MAX_ROWS + 1}) AS counted`,
  );
  return Number(textOf(row?.["n"]));
}
