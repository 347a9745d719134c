import type { Kysely } from "kysely";
import type { ColumnContent, TableGroup, TableName } from "./copied_tables.ts";
import { COLUMNS } from "./copied_tables.ts";
import type { Queries, SqlDatabase } from "./sql_database.ts";
import { bytesOf, textOf } from "./sql_dialect.ts";
import type { SqlDialect } from "./sql_dialect.ts";

/** Result of copying one group of tables. A unit is an account, a roster, and so on. */
export interface UnitCounts {
  /** Units that the destination did not have. */
  readonly added: number;
  /** Units that the destination had already, with the same content. */
  readonly same: number;
  /** Units whose other content at the destination was replaced. */
  readonly replaced: number;
  /** Units whose other content at the destination was left as it is. */
  readonly kept: number;
  /** Names of the first units that were kept. */
  readonly keptNames: readonly string[];
}

/** Options of copying. */
export interface CopyUnitsOptions {
  /** True: content that differs at the destination is replaced. False: it is kept. */
  readonly replaces: boolean;
  /** Called after each batch with the units that are done and all that there are; awaited. */
  progress?(done: number, total: number): Promise<void> | void;
}

/** Names of kept units in a result. */
export const MAX_KEPT_NAMES = 20;

/** Most parameters of an insertion: SQL Server takes 2100. */
const MAX_PARAMETERS = 1_500;
/** Bytes after which an insertion takes no more rows. MariaDB takes 16 MB at once. */
const FULL_INSERTION_BYTES = 1_000_000;

/** Key of the row that sorts behind every account (`schema/`). */
const SENTINEL_KEY = new Uint8Array(32).fill(0xff);

/** Content of a column as it is compared and moved between engines. */
type Content = Uint8Array | string | number | null;
type Row = Readonly<Record<string, Content>>;
/** Rows of one unit, by table. */
type Unit = Map<TableName, Row[]>;

/** Tables whose columns are known when the program runs. */
type AnyTables = Record<string, Record<string, unknown>>;

/**
 * Copies all units of a group from one database to another, in the order of their keys. Each batch is
 * one transaction at the destination. A copy that was interrupted is continued by copying again:
 * what is there already is compared and left alone.
 *
 * @throws CausewayError with a code `storage/…`; what was copied until then stays
 */
export async function copyUnits(
  from: SqlDatabase,
  to: SqlDatabase,
  group: TableGroup,
  options: CopyUnitsOptions,
): Promise<UnitCounts> {
  const total = await from.run("count the rows of", (queries) => countUnits(queries, group));
  const counts = { added: 0, same: 0, replaced: 0, kept: 0, keptNames: [] as string[] };
  let done = 0;
  for (let after: Content = null;;) {
    const { units, last } = await from.run("read the rows of", async (queries) => {
      const keys = await nextKeys(queries, from, group, after);
      return { units: await readUnits(queries, from.dialect, group, keys), last: keys.at(-1) };
    });
    if (last === undefined) return counts;
    const batch = await to.transact(
      "copy rows to",
      (queries) => putUnits(queries, to.dialect, group, units, options.replaces),
    );
    counts.added += batch.added;
    counts.same += batch.same;
    counts.replaced += batch.replaced;
    counts.kept += batch.kept.length;
    const named = batch.kept.slice(0, MAX_KEPT_NAMES - counts.keptNames.length);
    if (named.length > 0) counts.keptNames.push(...await namesOf(from, group, named));
    done += units.size;
    await options.progress?.(done, Math.max(done, total));
    // Not the last unit: all units of a batch may have been removed before they were read.
    after = contentIn(last, contentsOf(group.tables[0])[group.key]!);
  }
}

async function countUnits(queries: Queries, group: TableGroup): Promise<number> {
  const { rows } = await queries.executeQuery(
    unitsOf(queries, group)
      .select((each) => each.fn.count<number | string>(group.key).distinct().as("units")),
  );
  return Number(rows[0]!.units);
}

/** Returns the keys of the next batch, as the driver gave them. */
async function nextKeys(
  queries: Queries,
  { dialect }: SqlDatabase,
  group: TableGroup,
  after: Content,
): Promise<readonly unknown[]> {
  const { key, batch } = group;
  let query = unitsOf(queries, group).select(key).distinct().orderBy(key);
  if (after !== null) query = query.where(key, ">", stored(dialect, after));
  const { rows } = await queries.executeQuery(dialect.limit(query, batch));
  return rows.map((row) => row[key]);
}

/** Selects from the first table of a group, without the row that belongs to the schema. */
function unitsOf(queries: Queries, { key, tables: [first] }: TableGroup) {
  const query = anyTables(queries).selectFrom(first);
  return contentsOf(first)[key] === "bytes" ? query.where(key, "<", SENTINEL_KEY) : query;
}

/** Reads the units with these keys, in the order of the keys. */
async function readUnits(
  queries: Queries,
  dialect: SqlDialect,
  { key, tables }: TableGroup,
  keys: readonly unknown[],
): Promise<Map<string, Unit>> {
  const units = new Map<string, Unit>();
  if (keys.length === 0) return units;
  const content = contentsOf(tables[0])[key]!;
  for (const each of keys) units.set(identityOf(contentIn(each, content)), new Map());
  for (const table of tables) {
    const contents = contentsOf(table);
    const { rows } = await queries.executeQuery(
      anyTables(queries).selectFrom(table).select(Object.keys(contents))
        .where(key, "in", keys.map((each) => stored(dialect, contentIn(each, content)))),
    );
    for (const row of rows) {
      const own: Row = Object.fromEntries(
        Object.entries(contents).map(([column, each]) => [column, contentIn(row[column], each)]),
      );
      const unit = units.get(identityOf(own[key]!));
      if (unit === undefined) continue; // an engine that compares names loosely found another one
      const list = unit.get(table);
      if (list === undefined) unit.set(table, [own]);
      else list.push(own);
    }
  }
  // A unit that was removed meanwhile has no rows any more.
  for (const [id, unit] of units) if (!unit.has(tables[0])) units.delete(id);
  return units;
}

async function putUnits(
  queries: Queries,
  dialect: SqlDialect,
  group: TableGroup,
  units: ReadonlyMap<string, Unit>,
  replaces: boolean,
) {
  const [first] = group.tables;
  const keys = [...units.values()].map((unit) => unit.get(first)![0]![group.key]!);
  const present = await readUnits(queries, dialect, group, keys);
  const counts = { added: 0, same: 0, replaced: 0, kept: [] as Row[] };
  const wanted: Unit[] = [];
  const outdated: Content[] = [];
  for (const [id, unit] of units) {
    const other = present.get(id);
    const [row] = unit.get(first)!;
    if (other === undefined) counts.added++;
    else if (fingerprint(unit, group) === fingerprint(other, group)) {
      counts.same++;
      continue;
    } else if (!replaces) {
      counts.kept.push(row!);
      continue;
    } else {
      counts.replaced++;
      outdated.push(row![group.key]!);
    }
    wanted.push(unit);
  }
  for (const table of group.tables) {
    if (outdated.length > 0) {
      await queries.executeQuery(
        anyTables(queries).deleteFrom(table)
          .where(group.key, "in", outdated.map((key) => stored(dialect, key))),
      );
    }
    for (const rows of insertions(wanted.flatMap((unit) => unit.get(table) ?? []))) {
      await queries.executeQuery(
        anyTables(queries).insertInto(table).values(rows.map((row) =>
          Object.fromEntries(
            Object.entries(row).map(([column, content]) => [column, stored(dialect, content)]),
          )
        )),
      );
    }
  }
  return counts;
}

/** Returns the names of units, given the first row of each. */
async function namesOf(
  from: SqlDatabase,
  { key, names }: TableGroup,
  rows: readonly Row[],
): Promise<readonly string[]> {
  if (names.length > 0) return rows.map((row) => names.map((name) => nameIn(row[name])).join("@"));
  const keys = rows.map((row) => row[key]!);
  const { rows: accounts } = await from.run(
    "read the names of accounts in",
    (queries) =>
      queries.executeQuery(
        anyTables(queries).selectFrom("users").select(["account_key", "localpart", "domainpart"])
          .where("account_key", "in", keys.map((each) => stored(from.dialect, each))),
      ),
  );
  const known = new Map(accounts.map((account) => {
    const text = (value: unknown) => String(contentIn(value, "text"));
    const id = identityOf(contentIn(account.account_key, "bytes"));
    return [id, `${text(account.localpart)}@${text(account.domainpart)}`];
  }));
  return keys.map((each) => known.get(identityOf(each)) ?? "an account that is not there");
}

function nameIn(content: Content | undefined): string {
  return content instanceof Uint8Array ? new TextDecoder().decode(content) : String(content);
}

/** Cuts rows into insertions that every engine takes. */
function* insertions(rows: readonly Row[]): Generator<readonly Row[]> {
  let insertion: Row[] = [];
  let [parameters, bytes] = [0, 0];
  for (const row of rows) {
    insertion.push(row);
    for (const content of Object.values(row)) {
      parameters++;
      bytes += typeof content === "number" || content === null ? 8 : content.length;
    }
    const next = Object.keys(row).length;
    if (parameters + next <= MAX_PARAMETERS && bytes < FULL_INSERTION_BYTES) continue;
    yield insertion;
    insertion = [];
    [parameters, bytes] = [0, 0];
  }
  if (insertion.length > 0) yield insertion;
}

/** Returns a text that two units share if all their rows are the same, in whatever order. */
function fingerprint(unit: Unit, { tables }: TableGroup): string {
  const parts = tables.map((table) => {
    const columns = Object.keys(contentsOf(table));
    const rows = (unit.get(table) ?? []).map((row) =>
      JSON.stringify(columns.map((column) => identityOf(row[column]!)))
    );
    return rows.toSorted();
  });
  return JSON.stringify(parts);
}

/** Returns a text that two contents share if they are the same. */
function identityOf(content: Content): string {
  if (content === null) return "null";
  return content instanceof Uint8Array ? `x${content.toHex()}` : `${typeof content} ${content}`;
}

/** Returns the content of a column from what the driver of any engine returned. */
function contentIn(value: unknown, content: ColumnContent): Content {
  if (value === null || value === undefined) return null;
  if (content === "number") return Number(value);
  const bytes = value as string | Uint8Array; // as `TextColumn`, or bytes
  if (content === "text") return textOf(bytes);
  return typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytesOf(bytes);
}

function stored(dialect: SqlDialect, content: Content): unknown {
  return typeof content === "string" ? dialect.text(content) : content;
}

function contentsOf(table: TableName): Readonly<Record<string, ColumnContent>> {
  return COLUMNS[table];
}

function anyTables(queries: Queries): Kysely<AnyTables> {
  // The names come from `copied_tables.ts`, which the compiler compares with `tables.ts`.
  return queries as unknown as Kysely<AnyTables>;
}
