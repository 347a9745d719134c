import { Buffer } from "node:buffer";
import { comparedText, SEARCH_FIELDS, searchEntryOf } from "../vcard_search.ts";
import type {
  FoundPerson,
  SearchField,
  SearchOptions,
  SearchTerm,
  Visibility,
} from "../vcard_search.ts";
import type { VcardStore } from "../vcard_store.ts";
import type { Key } from "./keys.ts";
import { accountKey, keyOf } from "./keys.ts";
import type { Queries, SqlDatabase } from "./sql_database.ts";

/** People that the first term of a search is followed to; the other terms look at these alone. */
const MAX_CANDIDATES = 1_000;

/** Visibilities of people whom a search may find. */
const [DOES_NOT_MIND, WANTS_TO]: readonly [Visibility, Visibility] = [1, 2];

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

  async replace(
    localpart: string,
    expected: string | undefined,
    xml: string | undefined,
  ): Promise<boolean> {
    const account = accountKey(localpart, this.#domainpart);
    const rows = xml === undefined ? [] : this.#searchRows(account, localpart, xml);
    return await this.#database.transact("replace a vCard in", async (queries) => {
      const isSame = expected === undefined
        ? !await isThere(queries, account)
        : await removeIf(queries, account, expected);
      if (!isSame) return false;
      if (xml === undefined) return true;
      const content = new TextEncoder().encode(xml);
      await queries.insertInto("vcards").values({ account_key: account, content }).execute();
      if (rows.length > 0) await queries.insertInto("vcard_search").values(rows).execute();
      return true;
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
    const [first, ...others] = ranges;
    if (first === undefined) return [];
    return await this.#database.run("search vCards in", async (queries) => {
      return await peopleOf(queries, await this.#keysOf(queries, [first, ...others], options));
    });
  }

  /**
   * Returns the people whom all terms find. The first term reads ranges of an index, in the order of
   * the answer; each other term looks at the people found so far alone, by their keys.
   */
  async #keysOf(
    queries: Queries,
    [first, ...others]: readonly [Range, ...Range[]],
    { findsAll, limit }: SearchOptions,
  ): Promise<readonly Uint8Array[]> {
    const count = others.length === 0 ? limit : MAX_CANDIDATES;
    const candidates: Candidate[] = [];
    // The index has them apart, so that nobody is passed over who is not to be found.
    for (const visibility of findsAll ? [WANTS_TO, DOES_NOT_MIND] : [WANTS_TO]) {
      candidates.push(...await this.#candidates(queries, first, { visibility, count }));
    }
    let found = candidates.toSorted(inOrder).slice(0, count);
    for (const range of others) {
      if (found.length === 0) break;
      const rows = await queries.selectFrom("vcard_search").select(["account_key", "value"])
        .where("account_key", "in", found.map(({ key }) => key)).where("field", "=", range.field)
        .execute();
      found = rows.map(candidateIn).filter(({ value }) => isWithin(value, range)).toSorted(inOrder);
    }
    return found.slice(0, limit).map(({ key }) => key);
  }

  async #candidates(
    queries: Queries,
    { field, from, to }: Range,
    { visibility, count }: { readonly visibility: Visibility; readonly count: number },
  ): Promise<readonly Candidate[]> {
    const query = queries.selectFrom("vcard_search").select(["account_key", "value"])
      .where("host_key", "=", keyOf(this.#domainpart)).where("field", "=", field)
      .where("visibility", "=", visibility)
      .orderBy("value").orderBy("account_key");
    const ranged = to === undefined
      ? query.where("value", "=", from)
      : query.where("value", ">=", from).where("value", "<", to);
    return (await this.#database.dialect.limit(ranged, count).execute()).map(candidateIn);
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

/** A person found by one term. */
interface Candidate {
  readonly key: Buffer;
  /** Value of the field that the term is about. */
  readonly value: Buffer;
}

function candidateIn(
  row: { readonly account_key: Uint8Array; readonly value: Uint8Array },
): Candidate {
  return { key: Buffer.from(row.account_key), value: Buffer.from(row.value) };
}

function inOrder(one: Candidate, other: Candidate): number {
  return one.value.compare(other.value) || one.key.compare(other.key);
}

function isWithin(value: Buffer, { from, to }: Range): boolean {
  return to === undefined ? value.equals(from) : value.compare(from) >= 0 && value.compare(to) < 0;
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

async function isThere(queries: Queries, account: Key): Promise<boolean> {
  const row = await queries.selectFrom("vcards").select("account_key")
    .where("account_key", "=", account).executeTakeFirst();
  return row !== undefined;
}

/** Removes a vCard; false when it is not the `expected` one. */
async function removeIf(queries: Queries, account: Key, expected: string): Promise<boolean> {
  const { numDeletedRows } = await queries.deleteFrom("vcards")
    .where("account_key", "=", account)
    .where("content", "=", new TextEncoder().encode(expected)).executeTakeFirst();
  if (numDeletedRows === 0n) return false;
  await queries.deleteFrom("vcard_search").where("account_key", "=", account).execute();
  return true;
}

async function removeAll(queries: Queries, account: Key): Promise<void> {
  await queries.deleteFrom("vcards").where("account_key", "=", account).execute();
  await queries.deleteFrom("vcard_search").where("account_key", "=", account).execute();
}
