import assert from "node:assert/strict";
import { keyOf } from "../keys.ts";
import { wordOfArchive } from "../search_words.ts";
import type { SqlConnection } from "../sql_connection.ts";
import type { SqlEngine } from "../sql_server.ts";

/**
 * Queries that were sent, the one of each shape that has the fewest values: the statement and its
 * values, by the statement with short lists.
 */
export type SentStatements = Map<string, readonly [sql: string, ...values: unknown[]]>;

/** Statements that read a whole table, without quotes. */
const WHOLE: ReadonlySet<string> = new Set([
  // These two have a row for each version of the schema, and one row.
  "SELECT version, checksum, done FROM causeway_schema ORDER BY version",
  "SELECT lowest FROM causeway_schema_floor",
  "SELECT LOWER(table_name) AS name FROM information_schema.tables WHERE table_schema = DATABASE()",
  "SELECT lower(tablename) AS name FROM pg_tables WHERE schemaname = current_schema()",
  "SELECT lower(name) AS name FROM sqlite_master WHERE type = 'table'",
  // A node reads and counts them at its start.
  "select distinct contact from subscription_requests order by contact",
  "select count(*) as requests from subscription_requests",
]);

/** A count of all units of a table, which `causeway backends copy` makes once, to tell its progress. */
const UNIT_COUNT = /^select count\(distinct \w+\) as units from /;

/** Returns true for a statement that may read a whole table. */
function isWhole(text: string): boolean {
  return WHOLE.has(text) || UNIT_COUNT.test(text);
}

/** Key of the archive that has all messages, where a database is to believe that one has. */
const ONE_ARCHIVE = keyOf("one@example.com");
/** Tables with the messages of archives. */
const ARCHIVE_TABLES: ReadonlySet<string> = new Set(["archive_messages", "archive_texts"]);
/** Messages up to which a node counts, and one. */
const MOST_COUNTED = 10_001;
/** Word of an archive, as `wordOfArchive` makes it. */
const ARCHIVE_WORD = /xa[0-9a-f]{16}/;

/**
 * Returns the queries for messages of an archive, as they are sent for the one archive that has all of
 * them. Those for a time are left out: it would have to fit the times of that archive.
 */
export function ofOneArchive(sent: SentStatements): SentStatements {
  const own: SentStatements = new Map();
  for (const [text, [sql, ...sentValues]] of sent) {
    const isQuery = /^select .* from archive_messages where account_key = /.test(text);
    if (!isQuery || / (sent|visible)_at [<>]/.test(text)) continue;
    const values = sentValues.map((each) =>
      typeof each === "string" ? each.replace(ARCHIVE_WORD, wordOfArchive(ONE_ARCHIVE)) : each
    );
    let index = 0;
    for (const { 0: place, index: at } of sql.matchAll(/\$\d+|\?/g)) {
      const isArchive = /\baccount_key["`]? = $/.test(sql.slice(0, at));
      const i = place === "?" ? index++ : Number(place.slice(1)) - 1;
      if (isArchive) values[i] = ONE_ARCHIVE;
    }
    // Counts of PostgreSQL have their limit as the last value. Nodes count so far.
    if (/ limit \?\) as some$/.test(text)) values[values.length - 1] = MOST_COUNTED;
    own.set(text, [sql, ...values]);
  }
  return own;
}

/** Returns a connection that notes the statements that it is sent. */
export function notingStatements(inner: SqlConnection, sent: SentStatements): SqlConnection {
  return {
    get isOpen() {
      return inner.isOpen;
    },
    execute(sql, values = []) {
      noteStatement(sent, sql, values);
      return inner.execute(sql, values);
    },
    close: () => inner.close(),
    destroy: () => inner.destroy(),
  };
}

/** Notes a query, unless one of its shape with as few values was noted before. */
export function noteStatement(
  sent: SentStatements,
  sql: string,
  values: readonly unknown[],
): void {
  const text = withoutLists(sql);
  const isQuery = /^(select|update|delete|with)\b/i.test(sql);
  if (!isQuery || (sent.get(text)?.length ?? Infinity) <= values.length + 1) return;
  sent.set(text, [sql, ...values]);
}

/** Returns an engine whose connections note the statements that they are sent. */
export function notingEngine(engine: SqlEngine, sent: SentStatements): SqlEngine {
  return {
    ...engine,
    connect: async (...args) => notingStatements(await engine.connect(...args), sent),
  };
}

/** A node of a plan of PostgreSQL. */
interface PlanNode {
  readonly "Node Type": string;
  /** Way in which an aggregate finds its groups. */
  readonly Strategy?: string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly Filter?: string;
  readonly "Total Cost": number;
  readonly Plans?: readonly PlanNode[];
}

/** Cost of a scan that is too high: to read an index of a million rows costs more. */
const MOST_COST = 5_000;

/**
 * Asserts that PostgreSQL answers every statement by an index. Where a plan reads an index from its
 * beginning, it is to stop at a limit without leaving anything out.
 */
export async function assertIndexed(
  connection: SqlConnection,
  sent: SentStatements,
  { isOneArchive = false }: PlanOptions = {},
) {
  const problems: string[] = [];
  if (isOneArchive) {
    // The table has the pages of its few rows: they cost what those of a million would.
    const cost = BELIEVED_ROWS / FILLED_ROWS;
    await connection.execute(`SET seq_page_cost = ${cost}`);
  }
  for (const [text, [sql, ...values]] of sent) {
    if (isWhole(text)) continue;
    const { rows } = await connection.execute(`EXPLAIN (FORMAT JSON) ${sql}`, values);
    const plan = rows[0]!["QUERY PLAN"];
    const [{ Plan }] = (typeof plan === "string" ? JSON.parse(plan) : plan) as [{ Plan: PlanNode }];
    const scans = [...scansIn(Plan, false)];
    const isSearch = isOneArchive && text.includes(" words @@ ");
    if (isSearch && !scans.some(({ node }) => node["Index Name"] === "archive_texts_by_words")) {
      problems.push(`no index of words: ${text}`);
    }
    for (const { node, isLimited } of scans) {
      const isAll = node["Index Cond"] === undefined;
      const mayStop = isLimited && node.Filter === undefined;
      // An index whose first column is not given is read whole, or nearly.
      const isDear = !isLimited && node["Total Cost"] > MOST_COST;
      if (node["Node Type"] === "Seq Scan" || (isAll && !mayStop) || isDear) {
        const of = node["Relation Name"] ?? node["Index Name"];
        problems.push(`${node["Node Type"]} of ${of}: ${text}`);
      }
    }
  }
  assert.deepEqual(problems, []);
}

/** Rows that a server may sort: more than a room or a roster has. */
const MOST_KEPT = 10_000;

/** Options of looking at plans. */
export interface PlanOptions {
  /** True: one archive has all messages. @default false */
  readonly isOneArchive?: boolean;
}

/** Asserts that MySQL or MariaDB answers every statement by an index. */
export async function assertKeyed(
  connection: SqlConnection,
  sent: SentStatements,
  { isOneArchive = false }: PlanOptions = {},
) {
  const problems: string[] = [];
  for (const [text, [sql, ...values]] of sent) {
    if (isWhole(text)) continue;
    await addArchiveOf(connection, sql, values);
    const { rows } = await connection.execute(`EXPLAIN ${sql}`, values);
    const mayStop = !/ where /.test(text) && / limit \d+$/.test(text);
    for (const { type, table, rows: read, Extra: extra } of rows) {
      const isAll = type === "ALL" || (type === "index" && !mayStop);
      // Rows that a server sorts or keeps are all read before the first one is there.
      const isKept = Number(read) > MOST_KEPT && /filesort|temporary/.test(String(extra));
      const isDerived = String(table).startsWith("<"); // its own part of the plan is checked, too
      if ((isAll || isKept) && !isDerived) problems.push(`${type} of ${table}: ${text}`);
    }
    // Few messages of an archive may be read one by one.
    const isSearch = isOneArchive && / match \(words\) /.test(text);
    if (isSearch && !rows.some(({ type }) => type === "fulltext")) {
      problems.push(`no index of words: ${text}`);
    }
  }
  assert.deepEqual(problems, []);
}

/**
 * Adds the archive that a query for messages asks for. MySQL and MariaDB look for it as they plan: without
 * it the plan would be to find nothing.
 */
async function addArchiveOf(
  connection: SqlConnection,
  sql: string,
  values: readonly unknown[],
): Promise<void> {
  const plain = sql.replaceAll("`", "");
  const at = plain.indexOf("archives.account_key = ?");
  if (at === -1) return;
  const key = values[plain.slice(0, at).split("?").length - 1];
  await connection.execute(
    "INSERT IGNORE INTO archives (account_key, last_position, visible_at, most_late) " +
      "VALUES (?, 1, 1, 0)",
    [key],
  );
}

/**
 * Asserts that SQLite answers every statement by an index. Without statistics it counts on about a
 * million rows in each table.
 */
export async function assertSearched(connection: SqlConnection, sent: SentStatements) {
  const problems: string[] = [];
  for (const [text, [sql, ...values]] of sent) {
    if (isWhole(text)) continue;
    const { rows } = await connection.execute(`EXPLAIN QUERY PLAN ${sql}`, values);
    const mayStop = !/ where /.test(text) && / limit (\d+|\?)$/.test(text);
    for (const { detail } of rows) {
      const [, table] = /^SCAN (\w+)/.exec(String(detail)) ?? [];
      if (table === undefined || table === "CONSTANT" || mayStop) continue;
      // A result of the query's own, and an index on words that is asked for some.
      if (text.includes(`) as ${table}`)) continue;
      if (/^SCAN \w+ VIRTUAL TABLE INDEX 0:M/.test(String(detail))) continue;
      problems.push(`${detail}: ${text}`);
    }
  }
  assert.deepEqual(problems, []);
}

/** Rows that a server believes each table to have. */
const BELIEVED_ROWS = 1_000_000;
/** Rows that each table gets: servers look at some before they believe. */
const FILLED_ROWS = 1_000;

/** Times and places of the rows that are filled in. */
const FIRST = 1_700_000_000_000;

/**
 * Returns the expression for a column of the one archive's tables; undefined for any other one. Messages
 * have the positions from 1 to a million, and came one each millisecond.
 */
function ofOneArchiveAt(column: string, bytes: (hex: string) => string): string | undefined {
  const place = `i * ${BELIEVED_ROWS / FILLED_ROWS}`;
  switch (column) {
    case "account_key":
      return bytes(ONE_ARCHIVE.toString("hex"));
    case "position":
    case "sequence":
      return place;
    case "sent_at":
    case "visible_at":
      return `${FIRST} + ${place}`;
    default:
      return undefined;
  }
}

/**
 * Fills each table of a PostgreSQL database, and makes the server believe that it has a million rows.
 * Keys are random, as hashes are.
 *
 * @param execute runs a statement there as the first user
 */
export async function enlargePostgres(
  execute: (sql: string) => Promise<readonly Readonly<Record<string, unknown>>[]>,
  { isOneArchive = false }: PlanOptions = {},
): Promise<void> {
  const hash = "decode(md5(random()::text) || md5(random()::text), 'hex')";
  const values: Readonly<Record<string, string>> = {
    bytea: hash,
    text: "'text' || i",
    "character varying": "'text' || i",
    bigint: `${FIRST} + i`,
    integer: "i",
    tsvector: isOneArchive
      ? `('xx' || (i % 100) || ' xxcommon ${wordOfArchive(ONE_ARCHIVE)}')::tsvector`
      : "('xx' || (i % 100) || ' xxcommon xa' || i)::tsvector",
  };
  const valueOf = (table: string, column: string, type: string) => {
    const own = isOneArchive && ARCHIVE_TABLES.has(table)
      ? ofOneArchiveAt(column, (hex) => `decode('${hex}', 'hex')`)
      : undefined;
    return own ?? values[type];
  };
  const columns = await execute(
    "SELECT table_name, column_name, data_type FROM information_schema.columns " +
      "WHERE table_schema = 'public' AND table_name NOT LIKE 'causeway%' ORDER BY ordinal_position",
  );
  for (const [table, some] of Map.groupBy(columns, (each) => String(each["table_name"]))) {
    const names = some.map((each) => each["column_name"]).join(", ");
    const contents = some.map((each) =>
      valueOf(table, String(each["column_name"]), String(each["data_type"]))
    ).join(", ");
    await execute(
      `INSERT INTO ${table} (${names}) SELECT ${contents} ` +
        `FROM generate_series(1, ${FILLED_ROWS}) AS i`,
    );
  }
  await execute("ANALYZE");
  await execute(
    `UPDATE pg_class SET reltuples = ${BELIEVED_ROWS} ` +
      "WHERE relkind IN ('r', 'i') AND relnamespace = 'public'::regnamespace",
  );
}

/**
 * Makes MySQL or MariaDB believe that each table of a database has a million rows, and as many
 * different values in each index. Some rows are there: the plan for an empty table is no plan. MariaDB
 * believes it once it has been started again.
 *
 * @param execute runs a statement there as the first user
 */
export async function enlargeMysql(
  execute: (sql: string) => Promise<readonly Readonly<Record<string, unknown>>[]>,
  database: string,
  { isOneArchive = false }: PlanOptions = {},
): Promise<void> {
  // The server would count the rows itself, a moment later.
  await execute("SET GLOBAL innodb_stats_auto_recalc = OFF");
  const columns = await execute(
    "SELECT table_name AS t, column_name AS c, data_type AS d, character_maximum_length AS l FROM information_schema.columns " +
      `WHERE table_schema = '${database}' AND table_name NOT LIKE 'causeway%' ` +
      "AND extra NOT LIKE '%GENERATED%' ORDER BY ordinal_position",
  );
  const valueOf = (
    { t: table, c: column, d: type, l: length }: Readonly<Record<string, unknown>>,
  ): string => {
    const own = isOneArchive && ARCHIVE_TABLES.has(String(table))
      ? ofOneArchiveAt(String(column), (hex) => `UNHEX('${hex}')`)
      : undefined;
    if (own !== undefined) return own;
    if (/^bigint$/i.test(String(type))) return `${FIRST} + i`;
    if (/int$/i.test(String(type))) return "i";
    const value = /text|char/i.test(String(type))
      ? "CONCAT(i, 'text')"
      : `UNHEX(SHA2(CONCAT('${column}', i), 256))`;
    return `LEFT(${value}, ${length})`;
  };
  for (const [table, some] of Map.groupBy(columns, (each) => String(each["t"]))) {
    const names = some.map((each) => each["c"]).join(", ");
    const contents = some.map(valueOf).join(", ");
    await execute(
      `INSERT INTO ${table} (${names}) WITH RECURSIVE series (i) AS ` +
        `(SELECT 1 UNION ALL SELECT i + 1 FROM series WHERE i < ${FILLED_ROWS}) SELECT ${contents} FROM series`,
    );
    await execute(`ANALYZE TABLE ${table}`);
  }
  await execute(
    `UPDATE mysql.innodb_table_stats SET n_rows = ${BELIEVED_ROWS}, ` +
      `clustered_index_size = 20000 WHERE database_name = '${database}'`,
  );
  await execute(
    `UPDATE mysql.innodb_index_stats SET stat_value = ${BELIEVED_ROWS} ` +
      `WHERE database_name = '${database}' AND stat_name LIKE 'n_diff%'`,
  );
  if (isOneArchive) {
    await execute(
      "UPDATE mysql.innodb_index_stats SET stat_value = 1 " +
        `WHERE database_name = '${database}' AND stat_description = 'account_key' ` +
        `AND table_name IN (${[...ARCHIVE_TABLES].map((each) => `'${each}'`).join(", ")})`,
    );
  }
  await execute("FLUSH TABLES");
}

/** Yields the nodes of a plan that read a table. */
function* scansIn(
  node: PlanNode,
  isLimited: boolean,
): Generator<{ readonly node: PlanNode; readonly isLimited: boolean }> {
  const type = node["Node Type"];
  // A scan for places of rows reads the index whole before the first row is looked at.
  const isBitmap = type === "Bitmap Index Scan";
  if (isBitmap || /^(Seq|Index|Index Only) Scan$/.test(type)) {
    yield { node, isLimited: isLimited && !isBitmap };
  }
  for (const below of node.Plans ?? []) {
    // These read all that is below them before they give anything.
    const isStop = type === "Sort" || (type === "Aggregate" && node.Strategy !== "Sorted");
    yield* scansIn(below, (isLimited || type === "Limit") && !isStop);
  }
}

/** Shortens lists of parameters and rows, which differ in their lengths alone. */
function withoutLists(sql: string): string {
  return sql.replaceAll(/\$\d+|\?/g, "?").replaceAll(/\?(?:, \?)+/g, "?, ?")
    .replaceAll(/(?: when \? then [\w?]+)+/g, " when ? then ?")
    .replaceAll(/["`]/g, "");
}
