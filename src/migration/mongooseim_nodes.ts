import type { FormValues } from "../services/pep/mod.ts";
import type { XmlElement } from "../xmpp/mod.ts";
import { element } from "../xmpp/mod.ts";
import type { AccountParts } from "./account_parts.ts";
import { shown } from "./shown.ts";
import type { MongooseimDatabase } from "./mongooseim_rows.ts";
import { MAX_XML_BYTES, textOf, tryRead } from "./mongooseim_rows.ts";

/** Tables of one form, with the columns that are read. */
type Tables = Readonly<Record<string, readonly string[]>>;

/** Tables of personal eventing (`mod_pubsub`, since 6.8 `mod_pubsub_old`). */
export const NODE_TABLES: Tables = {
  pubsub_nodes: ["nidx", "p_key", "name", "options"],
  pubsub_affiliations: ["nidx", "luser", "lserver", "aff"],
  pubsub_items: ["nidx", "itemid", "modified_at", "payload"],
};

/** Tables of personal eventing of the `mod_pubsub` that 6.8 has brought. */
export const NEW_NODE_TABLES: Tables = {
  pubsub_node: ["service_domain", "service_user", "node_id", "access_model", "max_items"],
  pubsub_item: [
    ...["service_domain", "service_user", "node_id"],
    ...["item_id", "payload", "published_at"],
  ],
};

/** Nodes of an account that are read: one more than are taken. */
const MAX_NODES = 1_001;
/** Items of a node that are read: more than any node may keep. */
const MAX_ITEMS = 10_000;
/** Bytes of all items of an account that are read. */
const MAX_ITEMS_BYTES = 16_777_216;
/** Affiliations of a node that are read: more than any node may have. */
const MAX_AFFILIATIONS = 10_000;
/** Characters of the options of a node. */
const MAX_OPTIONS = 65_536;

/** Affiliations by their numbers. */
const AFFILIATIONS = ["none", "owner", "publisher", "publish-only", "member", "outcast"];
/** Options that each node has there, and that say nothing about it. */
const OPTIONS_OF_SERVER = new Set(["max_payload_size", "node_type", "itemreply"]);

/** Accounts that have nodes in `NEW_NODE_TABLES`, with the columns for domain and name. */
export const NEW_NODE_OWNERS = {
  from: "(SELECT service_domain, service_user FROM pubsub_node WHERE service_user <> '') AS owned",
  server: "service_domain",
  username: "service_user",
};

/** Returns the accounts that have nodes in `NODE_TABLES`, with expressions for domain and name. */
export function nodeOwners(driver: MongooseimDatabase["driver"]) {
  const from = "(SELECT p_key FROM pubsub_nodes WHERE p_key LIKE '%@%') AS owned";
  return driver === "pgsql"
    ? { from, server: "split_part(p_key, '@', 2)", username: "split_part(p_key, '@', 1)" }
    : {
      from,
      server: "substring_index(p_key, '@', -1)",
      username: "substring_index(p_key, '@', 1)",
    };
}

/** A node, and where its items are. */
interface FoundNode {
  readonly name: string;
  readonly table: string;
  /** Columns of an item's id, and of the time of its last change. */
  readonly columns: readonly [id: string, time: string];
  /** Condition for the node's items, with its values. */
  readonly where: string;
  readonly values: readonly string[];
  /** Returns the payload of what the table has; undefined for another element. */
  payloadOf(stored: XmlElement): XmlElement | undefined;
}

/** Takes the nodes of personal eventing of an account from `NODE_TABLES`. */
export async function takeNodesOf(
  parts: AccountParts,
  database: MongooseimDatabase,
): Promise<void> {
  const text = database.driver === "pgsql" ? "text" : "char"; // JSON has a type of its own
  const rows = await database.query(
    `SELECT nidx, name, left(CAST(options AS ${text}), ${MAX_OPTIONS}) AS options ` +
      `FROM pubsub_nodes WHERE p_key = ? ORDER BY name LIMIT ${MAX_NODES}`,
    [parts.jid.text],
  );
  const room = { bytes: MAX_ITEMS_BYTES };
  for (const row of rows) {
    const number = textOf(row["nidx"]);
    const node: FoundNode = {
      name: textOf(row["name"]),
      table: "pubsub_items",
      columns: ["itemid", "modified_at"],
      where: "nidx = ?",
      values: [number],
      // The element around the payload stands for the item, and has no id.
      payloadOf: (stored) => stored.name === "item" ? stored.elements[0] : undefined,
    };
    const options = tryOptions(textOf(row["options"]));
    if (options !== undefined) parts.pepOptions(node.name, options);
    else parts.note("pep", `node ${shown(node.name)}: its configuration is malformed`);
    await takeAffiliations(parts, { number, name: node.name }, database);
    await takeItems(parts, node, { database, room });
  }
}

/** Takes the nodes of personal eventing of an account from `NEW_NODE_TABLES`. */
export async function takeNewNodesOf(
  parts: AccountParts,
  [domain, user]: readonly [domain: string, user: string],
  database: MongooseimDatabase,
): Promise<void> {
  const rows = await database.query(
    "SELECT node_id, access_model, max_items FROM pubsub_node " +
      `WHERE service_domain = ? AND service_user = ? ORDER BY node_id LIMIT ${MAX_NODES}`,
    [domain, user],
  );
  const room = { bytes: MAX_ITEMS_BYTES };
  for (const row of rows) {
    const name = textOf(row["node_id"]);
    const options = new Map([
      ["pubsub#access_model", [textOf(row["access_model"])]],
      // A node without a number keeps all items.
      ["pubsub#max_items", [textOf(row["max_items"]) || "max"]],
    ]);
    parts.pepOptions(name, options);
    const node: FoundNode = {
      name,
      table: "pubsub_item",
      columns: ["item_id", "published_at"],
      where: "service_domain = ? AND service_user = ? AND node_id = ?",
      values: [domain, user, name],
      payloadOf: (stored) => stored,
    };
    await takeItems(parts, node, { database, room });
  }
}

async function takeAffiliations(
  parts: AccountParts,
  { number, name }: { readonly number: string; readonly name: string },
  database: MongooseimDatabase,
): Promise<void> {
  const rows = await database.query(
    "SELECT luser, lserver, aff FROM pubsub_affiliations WHERE nidx = ? " +
      `ORDER BY lserver, luser LIMIT ${MAX_AFFILIATIONS}`,
    [number],
  );
  for (const row of rows) {
    const [localpart, domainpart] = [textOf(row["luser"]), textOf(row["lserver"])];
    const jid = localpart === "" ? domainpart : `${localpart}@${domainpart}`;
    const written = textOf(row["aff"]);
    parts.pepAffiliation(name, jid, AFFILIATIONS[Number(written)] ?? written);
  }
}

/** Takes the newest items of a node that there is room for. */
async function takeItems(
  parts: AccountParts,
  { name, table, columns: [idColumn, time], where, values, payloadOf }: FoundNode,
  { database, room }: {
    readonly database: MongooseimDatabase;
    readonly room: { bytes: number };
  },
): Promise<void> {
  const rows = await database.query(
    `SELECT ${idColumn} AS id, octet_length(payload) AS bytes FROM ${table} WHERE ${where} ` +
      `ORDER BY ${time} DESC, ${idColumn} DESC LIMIT ${MAX_ITEMS}`,
    values,
  );
  const items = [];
  for (const row of rows) {
    const id = textOf(row["id"]);
    const bytes = Number(row["bytes"]);
    if (bytes > MAX_XML_BYTES) {
      parts.note(
        "pep",
        `node ${shown(name)}: item ${shown(id)} has more than ${MAX_XML_BYTES} bytes`,
      );
      continue;
    }
    room.bytes -= bytes;
    if (room.bytes < 0) {
      const reason = `the account's items have more than ${MAX_ITEMS_BYTES} bytes`;
      parts.note("pep", `node ${shown(name)}: ${reason}`);
      break;
    }
    const [found] = await database.query(
      `SELECT payload FROM ${table} WHERE ${where} AND ${idColumn} = ?`,
      [...values, id],
    );
    if (found === undefined) continue; // retracted meanwhile
    const stored = tryRead(textOf(found["payload"]));
    items.push(element("item", { id }, stored && payloadOf(stored)));
  }
  for (const item of items.reverse()) parts.pepItem(name, item);
}

/** Reads the options of a node; undefined for a text that is no object in JSON. */
function tryOptions(text: string): FormValues | undefined {
  let options: unknown;
  try {
    options = JSON.parse(text);
  } catch {
    return undefined; // the caller says so
  }
  if (typeof options !== "object" || options === null || Array.isArray(options)) return undefined;
  const values = new Map<string, readonly string[]>();
  for (const [name, value] of Object.entries(options)) {
    if (value === null || OPTIONS_OF_SERVER.has(name)) continue;
    const all: readonly unknown[] = Array.isArray(value) ? value : [value];
    values.set(`pubsub#${name}`, all.map(optionText));
  }
  return values;
}

/** Returns an option as forms have it. */
function optionText(value: unknown): string {
  return typeof value === "boolean" ? (value ? "1" : "0") : String(value);
}
