import type { Kysely } from "kysely";
import type { ColumnContent, TableGroup, TableName } from "./copied_tables.ts";
import { COLUMNS } from "./copied_tables.ts";
import type { Queries, SqlDatabase } from "./sql_database.ts";
import { bytesOf, textOf } from "./sql_dialect.ts";
import type { SqlDialect } from "./sql_dialect.ts";

/** Key of the row that sorts behind every account (`schema/`). */
export const SENTINEL_KEY = new Uint8Array(32).fill(0xff);

/** Content of a column as it is compared and moved between engines. */
export type Content = Uint8Array | string | number | null;
/** One row, by column. */
export type Row = Readonly<Record<string, Content>>;
/** Rows of one unit, by table. */
export type Unit = Map<TableName, Row[]>;

/** Tables whose columns are known when the program runs. */
type AnyTables = Record<string, Record<string, unknown>>;

/** Counts the units of a group. */
export async function countUnits(queries: Queries, group: TableGroup): Promise<number> {
  const { rows } = await queries.executeQuery(
    unitsOf(queries, group)
      .select((each) => each.fn.count<number | string>(group.key).distinct().as("units")),
  );
  return Number(rows[0]!.units);
}

/**
 * Returns the keys of the next batch, as the driver gave them: behind `after`, and up to `upTo` where
 * that is given.
 */
export async function nextKeys(
  queries: Queries,
  { dialect }: SqlDatabase,
  group: TableGroup,
  { after, upTo }: { readonly after: Content; readonly upTo?: Content },
): Promise<readonly unknown[]> {
  const { key, batch } = group;
  let query = unitsOf(queries, group).select(key).distinct().orderBy(key);
  if (after !== null) query = query.where(key, ">", stored(dialect, after));
  if (upTo !== undefined) query = query.where(key, "<=", stored(dialect, upTo));
  const { rows } = await queries.executeQuery(dialect.limit(query, batch));
  return rows.map((row) => row[key]);
}

/** Selects from the first table of a group, without the row that belongs to the schema. */
function unitsOf(queries: Queries, { key, tables: [first] }: TableGroup) {
  const query = anyTables(queries).selectFrom(first);
  return contentsOf(first)[key] === "bytes" ? query.where(key, "<", SENTINEL_KEY) : query;
}

/** Reads the units with these keys, in the order of the keys. */
export async function readUnits(
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

/** Returns a text that two units share if all their rows are the same, in whatever order. */
export function fingerprint(unit: Unit, { tables }: TableGroup): string {
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
export function identityOf(content: Content): string {
  if (content === null) return "null";
  return content instanceof Uint8Array ? `x${content.toHex()}` : `${typeof content} ${content}`;
}

/** Returns the content of a column from what the driver of any engine returned. */
export function contentIn(value: unknown, content: ColumnContent): Content {
  if (value === null || value === undefined) return null;
  if (content === "number") return Number(value);
  const bytes = value as string | Uint8Array; // as `TextColumn`, or bytes
  if (content === "text") return textOf(bytes);
  return typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytesOf(bytes);
}

/** Returns the parameter of a statement for a content. */
export function stored(dialect: SqlDialect, content: Content): unknown {
  return typeof content === "string" ? dialect.text(content) : content;
}

/** Returns the columns of a table with their content. */
export function contentsOf(table: TableName): Readonly<Record<string, ColumnContent>> {
  return COLUMNS[table];
}

/** Returns queries on tables whose names are known when the program runs. */
export function anyTables(queries: Queries): Kysely<AnyTables> {
  // The names come from `copied_tables.ts`, which the compiler compares with `tables.ts`.
  return queries as unknown as Kysely<AnyTables>;
}
