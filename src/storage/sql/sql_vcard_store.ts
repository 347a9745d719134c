import { Buffer } from "node:buffer";
import { comparedText, SEARCH_FIELDS, searchEntryOf } from "../vcard_search.ts";
import type { FoundPerson, SearchField, SearchOptions, SearchTerm } from "../vcard_search.ts";
import type { VcardStore } from "../vcard_store.ts";
import type { Key } from "./keys.ts";
import { accountKey, keyOf } from "./keys.ts";
import type { Queries, SqlDatabase } from "./sql_database.ts";

/** People that the first term of a search is followed to; the other terms look at these alone. */
const MAX_CANDIDATES = 1_000;

/** The vCards of the accounts of one domain in an SQL database. */
export class SqlVcardStore implements VcardStore {
  readonly #database: SqlDatabase;
  readonly #domainpart: string;

  constructor(database: SqlDatabase, domainpart: string) {
    this.#database = database;
    this.#domainpart = domainpart;
  }

  async read(localpart: string): Promise<string | undefined> {
    return await this.#database.run("read a vCard from", async (queries) => {
      const row = await queries.selectFrom("vcards").select("content")
        .where("account_key", "=", accountKey(localpart, this.#domainpart)).executeTakeFirst();
      return row && new TextDecoder().decode(row.content);
    });
  }

  async write(localpart: string, xml: string): Promise<void> {
    const account = accountKey(localpart, this.#domainpart);
    const content = new TextEncoder().encode(xml);
    const rows = this.#searchRows(account, localpart, xml);
    await this.#database.transact("write a vCard to", async (queries) => {
      await removeAll(queries, account);
      await queries.insertInto("vcards").values({ account_key: account, content }).execute();
      if (rows.length > 0) await queries.insertInto("vcard_search").values(rows).execute();
    });
  }

  async remove(localpart: string): Promise<void> {
    await this.#database.transact(
      "remove a vCard from",
      (queries) => removeAll(queries, accountKey(localpart, this.#domainpart)),
    );
  }

  async search(
    terms: readonly SearchTerm[],
    options: SearchOptions,
  ): Promise<readonly FoundPerson[]> {
    const ranges = terms.flatMap((term) => rangeOf(term) ?? [])
      .toSorted((one, other) => other.from.length - one.from.length);
    if (ranges.length === 0) return [];
    return await this.#database.run("search vCards in", async (queries) => {
      const keys = await this.#keysOf(queries, ranges, options);
      return await peopleOf(queries, keys.slice(0, options.limit));
    });
  }

  /** Each step reads the rows of one range of an index, or of a bounded number of accounts. */
  async #keysOf(
    queries: Queries,
    ranges: readonly Range[],
    { findsAll, limit }: SearchOptions,
  ): Promise<readonly Uint8Array[]> {
    const { dialect } = this.#database;
    const host = keyOf(this.#domainpart);
    let keys: readonly Uint8Array[] | undefined;
    for (const [index, { field, from, to }] of ranges.entries()) {
      let query = queries.selectFrom("vcard_search").select("account_key")
        .where("host_key", "=", host).where("field", "=", field)
        .where("value", ">=", from).where("visibility", ">=", findsAll ? 1 : 2)
        .orderBy("value").orderBy("account_key");
      query = to === undefined ? query.where("value", "=", from) : query.where("value", "<", to);
      if (keys !== undefined) query = query.where("account_key", "in", keys);
      const isLast = index === ranges.length - 1;
      const rows = await dialect.limit(query, isLast ? limit : MAX_CANDIDATES).execute();
      keys = rows.map(({ account_key: key }) => Buffer.from(key));
      if (keys.length === 0) break;
    }
    return keys ?? [];
  }

  #searchRows(account: Key, localpart: string, xml: string) {
    const { visibility, fields } = searchEntryOf(localpart, xml);
    if (visibility === 0) return [];
    const host = keyOf(this.#domainpart);
    return [...fields].map(([field, shown]) => ({
      account_key: account,
      field: numberOf(field),
      host_key: host,
      value: new TextEncoder().encode(comparedText(shown)),
      shown: new TextEncoder().encode(shown),
      visibility,
    }));
  }
}

/** Values of a field that a term finds. */
interface Range {
  readonly field: number;
  readonly from: Uint8Array;
  /** The first value behind them; undefined: `from` alone. */
  readonly to: Uint8Array | undefined;
}

/** Returns the range of a term; undefined for one that asks for nothing. */
function rangeOf({ field, text }: SearchTerm): Range | undefined {
  const isPrefix = text.endsWith("*");
  const wanted = comparedText(isPrefix ? text.slice(0, -1) : text);
  if (wanted === "") return undefined;
  const from = new TextEncoder().encode(wanted);
  // No byte of UTF-8 is 0xff.
  return {
    field: numberOf(field),
    from,
    to: isPrefix ? new Uint8Array([...from, 0xff]) : undefined,
  };
}

/** Returns the people with these keys, in the order of the keys. */
async function peopleOf(
  queries: Queries,
  keys: readonly Uint8Array[],
): Promise<readonly FoundPerson[]> {
  if (keys.length === 0) return [];
  const rows = await queries.selectFrom("vcard_search").select(["account_key", "field", "shown"])
    .where("account_key", "in", keys).orderBy("field").execute();
  const byKey = Map.groupBy(rows, ({ account_key: key }) => Buffer.from(key).toString("hex"));
  return keys.flatMap((key) => {
    const own = byKey.get(Buffer.from(key).toString("hex")) ?? []; // it may be gone by now
    const fields = new Map(own.flatMap(({ field, shown }): [SearchField, string][] => {
      const [name] = SEARCH_FIELDS[Number(field)] ?? [];
      return name === undefined ? [] : [[name, new TextDecoder().decode(shown)]];
    }));
    const localpart = fields.get("user");
    return localpart === undefined ? [] : [{ localpart, fields }];
  });
}

function numberOf(field: SearchField): number {
  return SEARCH_FIELDS.findIndex(([name]) => name === field);
}

async function removeAll(queries: Queries, account: Key): Promise<void> {
  await queries.deleteFrom("vcards").where("account_key", "=", account).execute();
  await queries.deleteFrom("vcard_search").where("account_key", "=", account).execute();
}
