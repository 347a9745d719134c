import { CausewayError } from "../../base/mod.ts";
import type { TableGroup } from "./copied_tables.ts";
import { accountKey } from "./keys.ts";
import type { Queries, SqlDatabase } from "./sql_database.ts";
import type { SqlDialect } from "./sql_dialect.ts";
import type { Content, Row, Unit } from "./unit_rows.ts";
import {
  anyTables,
  contentIn,
  contentsOf,
  countUnits,
  fingerprint,
  identityOf,
  nextKeys,
  readUnits,
  SENTINEL_KEY,
  stored,
} from "./unit_rows.ts";

/** Result of copying one group of tables. A unit is an account, a roster, and so on. */
export interface UnitCounts {
  /** Units that the destination did not have. */
  readonly added: number;
  /** Units that the destination had already, with the same content. */
  readonly same: number;
  /** Units whose other content at the destination was replaced. */
  readonly replaced: number;
  /** Units that only the destination had, and that were removed there. */
  readonly removed: number;
  /** Units whose other content at the destination was left as it is. */
  readonly kept: number;
  /** Names of the first units that were kept. */
  readonly keptNames: readonly string[];
}

/** Options of copying. */
export interface CopyUnitsOptions {
  /**
   * Content at the destination that differs from the source: it is kept, or replaced. `mirror`
   * removes what only the destination has, too.
   */
  readonly differing: "keep" | "replace" | "mirror";
  /** Called after each batch with the units that are done and all that there are; awaited. */
  progress?(done: number, total: number): Promise<void> | void;
  /** Yields accounts that the source may have data of, and not themselves: they name what was kept. */
  accounts?(): AsyncIterable<{ readonly localpart: string; readonly host: string }>;
}

/** Names of kept units in a result. */
export const MAX_KEPT_NAMES = 20;

/** Most parameters of an insertion: SQL Server takes 2100. */
const MAX_PARAMETERS = 1_500;
/** Bytes after which an insertion takes no more rows. MariaDB takes 16 MB at once. */
const FULL_INSERTION_BYTES = 1_000_000;

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
  const counts = { added: 0, same: 0, replaced: 0, removed: 0, kept: 0 };
  const kept: Row[] = [];
  const keyContent = contentsOf(group.tables[0])[group.key]!;
  // Engines sort texts in orders of their own, so ranges of them cannot be compared.
  const mirrors = options.differing === "mirror" && keyContent === "bytes";
  let done = 0;
  for (let after: Content = null;;) {
    const { units, last } = await from.run("read the rows of", async (queries) => {
      const keys = await nextKeys(queries, from, group, { after });
      return { units: await readUnits(queries, from.dialect, group, keys), last: keys.at(-1) };
    });
    const upTo = last === undefined ? undefined : contentIn(last, keyContent);
    if (mirrors) counts.removed += await removeOthers(to, group, { after, upTo, units });
    if (upTo === undefined) {
      return { ...counts, keptNames: await namesOf(from, group, kept, options) };
    }
    const batch = await to.transact(
      "copy rows to",
      (queries) => putUnits(queries, to.dialect, group, units, options.differing !== "keep"),
    );
    counts.added += batch.added;
    counts.same += batch.same;
    counts.replaced += batch.replaced;
    counts.kept += batch.kept.length;
    kept.push(...batch.kept.slice(0, MAX_KEPT_NAMES - kept.length));
    done += units.size;
    await options.progress?.(done, Math.max(done, total));
    // Not the last unit: all units of a batch may have been removed before they were read.
    after = upTo;
  }
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
  if (outdated.length > 0) await deleteUnits(queries, dialect, group, outdated);
  for (const table of group.tables) {
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

/**
 * Removes the units that only the destination has, of those behind `after` and up to `upTo`, or to the
 * end.
 */
async function removeOthers(
  to: SqlDatabase,
  group: TableGroup,
  { after, upTo, units }: {
    readonly after: Content;
    readonly upTo: Content | undefined;
    readonly units: ReadonlyMap<string, Unit>;
  },
): Promise<number> {
  let removed = 0;
  for (let from = after;;) {
    const keys = await to.run("read the keys of", async (queries) => {
      const found = await nextKeys(queries, to, group, { after: from, upTo: upTo ?? SENTINEL_KEY });
      return found.map((key) => contentIn(key, "bytes"));
    });
    const last = keys.at(-1);
    if (last === undefined) return removed;
    const others = keys.filter((key) => !units.has(identityOf(key)));
    if (others.length > 0) {
      await to.transact("remove rows from", async (queries) => {
        await deleteUnits(queries, to.dialect, group, others);
      });
    }
    removed += others.length;
    from = last;
  }
}

async function deleteUnits(
  queries: Queries,
  dialect: SqlDialect,
  { key, tables }: TableGroup,
  keys: readonly Content[],
): Promise<void> {
  for (const table of tables) {
    await queries.executeQuery(
      anyTables(queries).deleteFrom(table)
        .where(key, "in", keys.map((each) => stored(dialect, each))),
    );
  }
}

/** Returns the names of units, given the first row of each. */
async function namesOf(
  from: SqlDatabase,
  { key, names }: TableGroup,
  rows: readonly Row[],
  { accounts: others }: Pick<CopyUnitsOptions, "accounts">,
): Promise<readonly string[]> {
  if (rows.length === 0) return [];
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
  const unknown = keys.map(identityOf).filter((id) => !known.has(id));
  for (const [id, name] of await findNames(unknown, others)) known.set(id, name);
  return keys.map((each) => known.get(identityOf(each)) ?? "an account that is not there");
}

/** Returns the names of accounts by the identities of their keys, as far as they are found. */
async function findNames(
  ids: readonly string[],
  accounts: CopyUnitsOptions["accounts"],
): Promise<ReadonlyMap<string, string>> {
  const wanted = new Set(ids);
  const found = new Map<string, string>();
  if (wanted.size === 0 || accounts === undefined) return found;
  try {
    for await (const { localpart, host } of accounts()) {
      const id = identityOf(accountKey(localpart, host));
      if (wanted.has(id)) found.set(id, `${localpart}@${host}`);
      if (found.size === wanted.size) break;
    }
  } catch (thrown) {
    // Everything is copied: it does not fail because a directory does not tell names.
    if (!(thrown instanceof CausewayError)) throw thrown;
  }
  return found;
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
