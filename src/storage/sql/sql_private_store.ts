import { Buffer } from "node:buffer";
import type {
  PrivateBounds,
  PrivateChange,
  PrivateName,
  PrivateStore,
  PrivateTotal,
} from "../private_store.ts";
import { keepsBounds } from "../private_store.ts";
import type { Key } from "./keys.ts";
import { accountKey, keyOf } from "./keys.ts";
import type { Queries, SqlDatabase } from "./sql_database.ts";
import type { SqlDialect } from "./sql_dialect.ts";

/** The private storage of the accounts of one domain in an SQL database. */
export class SqlPrivateStore implements PrivateStore {
  readonly #database: SqlDatabase;
  readonly #domainpart: string;

  constructor(database: SqlDatabase, domainpart: string) {
    this.#database = database;
    this.#domainpart = domainpart;
  }

  async read(localpart: string, name: PrivateName): Promise<string | undefined> {
    return await this.#database.run("read private storage from", async (queries) => {
      const row = await queries.selectFrom("private_storage").select("content")
        .where("account_key", "=", accountKey(localpart, this.#domainpart))
        .where("element_key", "=", elementKey(name)).executeTakeFirst();
      return row && decode(row.content);
    });
  }

  async change(
    localpart: string,
    changes: readonly PrivateChange[],
    bounds: PrivateBounds,
  ): Promise<"done" | "changed" | "full"> {
    const account = accountKey(localpart, this.#domainpart);
    const written = changes.map(rowOf);
    const { dialect } = this.#database;
    return await this.#database.transact("change private storage in", async (queries) => {
      for (const { key, expected } of written) {
        if (expected === undefined) continue;
        const found = await lockElement(queries, dialect, { account, key });
        if (found !== expected) return "changed";
      }
      const before = await sizesOf(queries, account);
      const after = new Map(before);
      for (const { key, content } of written) {
        if (content === undefined) after.delete(key.toString("hex"));
        else after.set(key.toString("hex"), content.length);
      }
      if (!keepsBounds(bounds, total(before), total(after))) return "full";
      const last = new Map(written.map((row) => [row.key.toString("hex"), row]));
      for (const row of last.values()) await write(queries, account, row);
      return "done";
    });
  }

  async all(localpart: string): Promise<readonly string[]> {
    return await this.#database.run("read private storage from", async (queries) => {
      const rows = await queries.selectFrom("private_storage").select("content")
        .where("account_key", "=", accountKey(localpart, this.#domainpart))
        .orderBy("element_key").execute();
      return rows.map(({ content }) => decode(content));
    });
  }

  async removeAll(localpart: string): Promise<void> {
    await this.#database.run("remove private storage from", async (queries) => {
      await queries.deleteFrom("private_storage")
        .where("account_key", "=", accountKey(localpart, this.#domainpart)).execute();
    });
  }
}

/** One change, as it is written. */
interface WrittenChange {
  readonly key: Key;
  readonly content: Uint8Array | undefined;
  readonly expected: PrivateChange["expected"];
}

function rowOf({ xml, expected, ...name }: PrivateChange): WrittenChange {
  const content = xml === undefined ? undefined : new TextEncoder().encode(xml);
  return { key: elementKey(name), content, expected };
}

/**
 * Returns an element, which nobody else changes until the transaction ends; null when there is none.
 * One that another transaction inserts meanwhile makes this one be repeated once it inserts its own.
 */
async function lockElement(
  queries: Queries,
  { rowLocks }: SqlDialect,
  { account, key }: { readonly account: Key; readonly key: Key },
): Promise<string | null> {
  if (rowLocks === "update") {
    await queries.updateTable("private_storage")
      .set((each) => ({ content_bytes: each.ref("content_bytes") }))
      .where("account_key", "=", account).where("element_key", "=", key).execute();
  }
  const query = queries.selectFrom("private_storage").select("content")
    .where("account_key", "=", account).where("element_key", "=", key);
  const row = await (rowLocks === "for-update" ? query.forUpdate() : query).executeTakeFirst();
  return row === undefined ? null : decode(row.content);
}

/** Returns the bytes of each element of an account, by its key in hexadecimal. */
async function sizesOf(
  queries: Queries,
  account: Uint8Array,
): Promise<ReadonlyMap<string, number>> {
  const rows = await queries.selectFrom("private_storage").select(["element_key", "content_bytes"])
    .where("account_key", "=", account).execute();
  return new Map(
    rows.map((row) => [Buffer.from(row.element_key).toString("hex"), Number(row.content_bytes)]),
  );
}

function total(sizes: ReadonlyMap<string, number>): PrivateTotal {
  let bytes = 0;
  for (const size of sizes.values()) bytes += size;
  return { elements: sizes.size, bytes };
}

async function write(
  queries: Queries,
  account: Uint8Array,
  { key, content, expected }: WrittenChange,
): Promise<void> {
  // An element that is there by now, where there was none, is that of another transaction.
  if (expected !== null) {
    await queries.deleteFrom("private_storage").where("account_key", "=", account)
      .where("element_key", "=", key).execute();
  }
  if (content === undefined) return;
  await queries.insertInto("private_storage").values({
    account_key: account,
    element_key: key,
    content,
    content_bytes: content.length,
  }).execute();
}

/** No name of an element has a space in it, so two names never make one text. */
function elementKey({ namespace, name }: PrivateName): Key {
  return keyOf(`${name} ${namespace}`);
}

function decode(content: Uint8Array): string {
  return new TextDecoder().decode(content);
}
