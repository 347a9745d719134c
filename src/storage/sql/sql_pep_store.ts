import { Buffer } from "node:buffer";
import type { Clock } from "../../base/mod.ts";
import { SystemClock } from "../../base/mod.ts";
import type {
  LastItemsQuery,
  LastPepItem,
  PepBounds,
  PepItem,
  PepNode,
  PepPublication,
  PepStore,
} from "../pep_store.ts";
import type { Key } from "./keys.ts";
import { accountKey, keyOf } from "./keys.ts";
import { ListStatement } from "./list_statement.ts";
import type { Queries, SqlDatabase } from "./sql_database.ts";
import type { PlaceOf } from "./statement.ts";

const ENCODER = new TextEncoder();

/** Accounts and nodes whose last items are read, and the size that these may have. */
interface LastItemsValues {
  readonly accounts: readonly Key[];
  readonly nodes: readonly Key[];
  readonly maxPayloadBytes: number;
}

const LAST_ITEMS = new ListStatement(lastItems, { name: "last-items" });

/** Only those that were published at a time or later. */
const LAST_ITEMS_SINCE = new ListStatement(
  (tables, place: PlaceOf<LastItemsValues & { readonly sinceMs: number }>) =>
    lastItems(tables, place).where("item.published_at", ">=", place("sinceMs")),
  { name: "last-items-since" },
);

function lastItems(tables: Queries, place: PlaceOf<LastItemsValues>) {
  return tables.selectFrom("pep_nodes as node")
    .innerJoin(
      "pep_items as item",
      (join) =>
        join.onRef("item.account_key", "=", "node.account_key")
          .onRef("item.node_key", "=", "node.node_key"),
    )
    .select((each) => [
      "node.account_key",
      "node.node",
      "node.config",
      "item.item",
      each.case().when("item.content_bytes", "<=", place("maxPayloadBytes")).then(
        each.ref("item.content"),
      ).else(null).end().as("content"),
    ])
    .where("node.account_key", "in", place("accounts"))
    .where("node.node_key", "in", place("nodes"))
    .where((each) =>
      each(
        "item.sequence",
        "=",
        each.selectFrom("pep_items as other")
          .select(({ fn }) => fn.max("other.sequence").as("newest"))
          .whereRef("other.account_key", "=", "item.account_key")
          .whereRef("other.node_key", "=", "item.node_key"),
      )
    );
}

/** The keys of one node of one account. */
interface NodeKeys {
  readonly account: Uint8Array;
  readonly node: Uint8Array;
}

/** An item that a node has, without its content. */
interface KeptItem {
  readonly key: Uint8Array;
  readonly bytes: number;
}

/**
 * The nodes of the accounts of one domain in an SQL database. Whoever changes a node first changes
 * its row, and so waits for others who do the same.
 */
export class SqlPepStore implements PepStore {
  readonly #database: SqlDatabase;
  readonly #domainpart: string;
  readonly #clock: Clock;

  constructor(database: SqlDatabase, domainpart: string, clock: Clock = new SystemClock()) {
    this.#database = database;
    this.#domainpart = domainpart;
    this.#clock = clock;
  }

  async nodes(localpart: string): Promise<readonly PepNode[]> {
    return await this.#read(async (queries) => {
      const rows = await queries.selectFrom("pep_nodes").select(["node", "config"])
        .where("account_key", "=", this.#accountKey(localpart)).execute();
      return rows.map((row) => ({ name: decode(row.node), config: decode(row.config) }))
        .toSorted((one, other) => one.name < other.name ? -1 : 1);
    });
  }

  async node(localpart: string, name: string): Promise<PepNode | undefined> {
    return await this.#read(async (queries) => {
      const row = await queries.selectFrom("pep_nodes").select("config")
        .where("account_key", "=", this.#accountKey(localpart))
        .where("node_key", "=", keyOf(name)).executeTakeFirst();
      return row && { name, config: decode(row.config) };
    });
  }

  async publish(
    localpart: string,
    { node, expected, config, item, maxItems }: PepPublication,
    bounds: PepBounds,
  ): Promise<"published" | "changed" | "full"> {
    const keys = this.#keysOf(localpart, node);
    return await this.#database.transact("publish in", async (queries) => {
      if (expected === undefined) {
        const made = await makeNode(queries, keys, { node, config }, bounds);
        if (made !== "made") return made;
      } else if (!await changeNode(queries, keys, { expected })) return "changed";
      if (item === undefined) return "published";
      const outcome = await this.#put(queries, keys, item, { maxItems, ...bounds });
      if (outcome === "full" && expected === undefined) {
        await queries.deleteFrom("pep_nodes")
          .where("account_key", "=", keys.account).where("node_key", "=", keys.node).execute();
      }
      return outcome;
    });
  }

  async configure(
    localpart: string,
    { node, expected, config, maxItems }: Parameters<PepStore["configure"]>[1],
  ): Promise<boolean> {
    const keys = this.#keysOf(localpart, node);
    return await this.#database.transact("configure a node in", async (queries) => {
      if (!await changeNode(queries, keys, { expected, config })) return false;
      const kept = await keptItems(queries, keys);
      await removeItems(queries, keys, kept.slice(maxItems).map(({ key }) => key));
      return true;
    });
  }

  async retract(
    localpart: string,
    { node, expected, ids }: Parameters<PepStore["retract"]>[1],
  ): Promise<number | undefined> {
    const keys = this.#keysOf(localpart, node);
    return await this.#database.transact("retract items from", async (queries) => {
      if (!await changeNode(queries, keys, { expected })) return undefined;
      return await removeItems(queries, keys, ids?.map((id) => keyOf(id)));
    });
  }

  async remove(
    localpart: string,
    { node, expected }: Parameters<PepStore["remove"]>[1],
  ): Promise<boolean> {
    const keys = this.#keysOf(localpart, node);
    return await this.#database.transact("remove a node from", async (queries) => {
      const { numDeletedRows } = await queries.deleteFrom("pep_nodes")
        .where("account_key", "=", keys.account).where("node_key", "=", keys.node)
        .where("config", "=", ENCODER.encode(expected))
        .executeTakeFirstOrThrow();
      if (numDeletedRows === 0n) return false;
      await removeItems(queries, keys);
      return true;
    });
  }

  async newest(localpart: string, node: string, max: number): Promise<readonly PepItem[]> {
    const keys = this.#keysOf(localpart, node);
    return await this.#read(async (queries) => {
      const query = queries.selectFrom("pep_items").select(["item", "content"])
        .where("account_key", "=", keys.account).where("node_key", "=", keys.node)
        .orderBy("sequence", "desc");
      const rows = await this.#database.dialect.limit(query, max).execute();
      return rows.map(itemIn).toReversed();
    });
  }

  async items(
    localpart: string,
    node: string,
    ids: readonly string[],
  ): Promise<readonly PepItem[]> {
    if (ids.length === 0) return [];
    const keys = this.#keysOf(localpart, node);
    return await this.#read(async (queries) => {
      const rows = await queries.selectFrom("pep_items").select(["item", "content"])
        .where("account_key", "=", keys.account).where("node_key", "=", keys.node)
        .where("item_key", "in", ids.map((id) => keyOf(id)))
        .orderBy("sequence").execute();
      return rows.map(itemIn);
    });
  }

  async lastItems(
    { localparts, nodes, maxPayloadBytes, sinceMs }: LastItemsQuery,
  ): Promise<readonly LastPepItem[]> {
    if (localparts.length === 0 || nodes.length === 0) return [];
    const accounts = localparts.map((each) => this.#accountKey(each));
    const byKey = new Map(accounts.map((key, i) => [hex(key), localparts[i]!]));
    const values = { accounts, nodes: nodes.map((each) => keyOf(each)), maxPayloadBytes };
    const { dialect } = this.#database;
    const statement = sinceMs === undefined
      ? LAST_ITEMS.with(dialect, values)
      : LAST_ITEMS_SINCE.with(dialect, { ...values, sinceMs });
    return await this.#read(async (queries) =>
      (await queries.executeQuery(statement)).rows.map((row) => ({
        localpart: byKey.get(hex(row.account_key))!, // it was asked for
        node: { name: decode(row.node), config: decode(row.config) },
        id: decode(row.item),
        xml: row.content === null ? undefined : decode(row.content),
      }))
    );
  }

  async removeAll(localpart: string): Promise<void> {
    const account = this.#accountKey(localpart);
    await this.#database.transact("remove all nodes from", async (queries) => {
      await queries.deleteFrom("pep_nodes").where("account_key", "=", account).execute();
      await queries.deleteFrom("pep_items").where("account_key", "=", account).execute();
    });
  }

  async #put(
    queries: Queries,
    keys: NodeKeys,
    { id, xml }: PepItem,
    { maxItems, maxBytes }: Pick<PepPublication, "maxItems"> & PepBounds,
  ): Promise<"published" | "full"> {
    const [item, content] = [ENCODER.encode(id), ENCODER.encode(xml)];
    const key = keyOf(id);
    const kept = await keptItems(queries, keys);
    const gone = [
      ...kept.filter((each) => Buffer.from(each.key).equals(key)),
      ...kept.filter((each) => !Buffer.from(each.key).equals(key)).slice(maxItems - 1),
    ];
    const before = await bytesOfAccount(queries, keys.account);
    const contentBytes = item.length + content.length;
    const after = before + contentBytes - gone.reduce((sum, { bytes }) => sum + bytes, 0);
    // True also for what frees room in an account above its bounds, which may be new.
    if (after > Math.max(maxBytes, before)) return "full";
    await removeItems(queries, keys, gone.map((each) => each.key));
    const { version } = await queries.selectFrom("pep_nodes").select("version")
      .where("account_key", "=", keys.account).where("node_key", "=", keys.node)
      .executeTakeFirstOrThrow();
    await queries.insertInto("pep_items").values({
      account_key: keys.account,
      node_key: keys.node,
      item_key: key,
      item,
      sequence: Number(version),
      published_at: this.#clock.wallMs(),
      content,
      content_bytes: contentBytes,
    }).execute();
    return "published";
  }

  #accountKey(localpart: string): Key {
    return accountKey(localpart, this.#domainpart);
  }

  #keysOf(localpart: string, node: string): NodeKeys {
    return { account: this.#accountKey(localpart), node: keyOf(node) };
  }

  #read<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    return this.#database.run("read nodes from", work);
  }
}

/** Makes a node. A row that another transaction inserts meanwhile makes this one be repeated. */
async function makeNode(
  queries: Queries,
  { account, node: nodeKey }: NodeKeys,
  { node, config }: Pick<PepPublication, "node" | "config">,
  { maxNodes }: PepBounds,
): Promise<"made" | "changed" | "full"> {
  const found = await queries.selectFrom("pep_nodes").select("version")
    .where("account_key", "=", account).where("node_key", "=", nodeKey).executeTakeFirst();
  if (found !== undefined) return "changed";
  const { nodes } = await queries.selectFrom("pep_nodes")
    .select(({ fn }) => fn.countAll<number | string>().as("nodes"))
    .where("account_key", "=", account).executeTakeFirstOrThrow();
  if (Number(nodes) >= maxNodes) return "full";
  await queries.insertInto("pep_nodes").values({
    account_key: account,
    node_key: nodeKey,
    node: ENCODER.encode(node),
    config: ENCODER.encode(config),
    version: 1,
  }).execute();
  return "made";
}

/** Changes the row of a node, which is locked from then on; false when it is not as expected. */
async function changeNode(
  queries: Queries,
  { account, node }: NodeKeys,
  { expected, config }: { readonly expected: string; readonly config?: string },
): Promise<boolean> {
  const { numUpdatedRows } = await queries.updateTable("pep_nodes")
    .set((each) => ({
      version: each("version", "+", 1),
      ...config !== undefined && { config: ENCODER.encode(config) },
    }))
    .where("account_key", "=", account).where("node_key", "=", node)
    .where("config", "=", ENCODER.encode(expected))
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/** Returns the items of a node, the newest first. */
async function keptItems(
  queries: Queries,
  { account, node }: NodeKeys,
): Promise<readonly KeptItem[]> {
  const rows = await queries.selectFrom("pep_items").select(["item_key", "content_bytes"])
    .where("account_key", "=", account).where("node_key", "=", node)
    .orderBy("sequence", "desc").execute();
  return rows.map((row) => ({ key: row.item_key, bytes: Number(row.content_bytes) }));
}

async function bytesOfAccount(queries: Queries, account: Uint8Array): Promise<number> {
  const { bytes } = await queries.selectFrom("pep_items")
    .select(({ fn }) => fn.sum<number | string | null>("content_bytes").as("bytes"))
    .where("account_key", "=", account).executeTakeFirstOrThrow();
  return Number(bytes ?? 0);
}

/** Keys that one statement removes: SQL Server takes 2100 parameters. */
const REMOVED_AT_ONCE = 500;

/** Removes items of a node, all without `itemKeys`. Returns how many there were. */
async function removeItems(
  queries: Queries,
  { account, node }: NodeKeys,
  itemKeys?: readonly Uint8Array[],
): Promise<number> {
  const all = queries.deleteFrom("pep_items")
    .where("account_key", "=", account).where("node_key", "=", node);
  if (itemKeys === undefined) return Number((await all.executeTakeFirstOrThrow()).numDeletedRows);
  let count = 0;
  for (let start = 0; start < itemKeys.length; start += REMOVED_AT_ONCE) {
    const { numDeletedRows } = await all
      .where("item_key", "in", itemKeys.slice(start, start + REMOVED_AT_ONCE))
      .executeTakeFirstOrThrow();
    count += Number(numDeletedRows);
  }
  return count;
}

function itemIn(row: { readonly item: Uint8Array; readonly content: Uint8Array }): PepItem {
  return { id: decode(row.item), xml: decode(row.content) };
}

function hex(key: Uint8Array): string {
  return Buffer.from(key).toString("hex");
}

function decode(content: Uint8Array): string {
  return new TextDecoder().decode(content);
}
