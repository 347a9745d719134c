import assert from "node:assert/strict";
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
  readonly "Relation Name"?: string;
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
export async function assertIndexed(connection: SqlConnection, sent: SentStatements) {
  const problems: string[] = [];
  for (const [text, [sql, ...values]] of sent) {
    if (WHOLE.has(text)) continue;
    const { rows } = await connection.execute(`EXPLAIN (FORMAT JSON) ${sql}`, values);
    const plan = rows[0]!["QUERY PLAN"];
    const [{ Plan }] = (typeof plan === "string" ? JSON.parse(plan) : plan) as [{ Plan: PlanNode }];
    for (const { node, isLimited } of scansIn(Plan, false)) {
      const isWhole = node["Index Cond"] === undefined;
      const mayStop = isLimited && node.Filter === undefined;
      // An index whose first column is not given is read whole, or nearly.
      const isDear = !isLimited && node["Total Cost"] > MOST_COST;
      if (node["Node Type"] === "Seq Scan" || (isWhole && !mayStop) || isDear) {
        problems.push(`${node["Node Type"]} of ${node["Relation Name"]}: ${text}`);
      }
    }
  }
  assert.deepEqual(problems, []);
}

/** Asserts that MySQL or MariaDB answers every statement by an index. */
export async function assertKeyed(connection: SqlConnection, sent: SentStatements) {
  const problems: string[] = [];
  for (const [text, [sql, ...values]] of sent) {
    if (WHOLE.has(text)) continue;
    const { rows } = await connection.execute(`EXPLAIN ${sql}`, values);
    const mayStop = !/ where /.test(text) && / limit \d+$/.test(text);
    for (const { type, table } of rows) {
      const isWhole = type === "ALL" || (type === "index" && !mayStop);
      const isDerived = String(table).startsWith("<"); // its own part of the plan is checked, too
      if (isWhole && !isDerived) problems.push(`${type} of ${table}: ${text}`);
    }
  }
  assert.deepEqual(problems, []);
}

/**
 * Asserts that SQLite answers every statement by an index. Without statistics it counts on about a
 * million rows in each table.
 */
export async function assertSearched(connection: SqlConnection, sent: SentStatements) {
  const problems: string[] = [];
  for (const [text, [sql, ...values]] of sent) {
    if (WHOLE.has(text)) continue;
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

/**
 * Fills each table of a PostgreSQL database, and makes the server believe that it has a million rows.
 * Keys are random, as hashes are.
 *
 * @param execute runs a statement there as the first user
 */
export async function enlargePostgres(
  execute: (sql: string) => Promise<readonly Readonly<Record<string, unknown>>[]>,
): Promise<void> {
  const hash = "decode(md5(random()::text) || md5(random()::text), 'hex')";
  const values: Readonly<Record<string, string>> = {
    bytea: hash,
    text: "'text' || i",
    "character varying": "'text' || i",
    bigint: "1700000000000 + i",
    integer: "i",
    tsvector: "('xx' || (i % 100) || ' xxcommon xa' || i)::tsvector",
  };
  const columns = await execute(
    "SELECT table_name, column_name, data_type FROM information_schema.columns " +
      "WHERE table_schema = 'public' AND table_name NOT LIKE 'causeway%' ORDER BY ordinal_position",
  );
  for (const [table, some] of Map.groupBy(columns, (each) => String(each["table_name"]))) {
    const names = some.map((each) => each["column_name"]).join(", ");
    const contents = some.map((each) => values[String(each["data_type"])]).join(", ");
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
): Promise<void> {
  // The server would count the rows itself, a moment later.
  await execute("SET GLOBAL innodb_stats_auto_recalc = OFF");
  const columns = await execute(
    "SELECT table_name AS t, column_name AS c, data_type AS d, character_maximum_length AS l FROM information_schema.columns " +
      `WHERE table_schema = '${database}' AND table_name NOT LIKE 'causeway%' ` +
      "AND extra NOT LIKE '%GENERATED%' ORDER BY ordinal_position",
  );
  const valueOf = (
    { c: column, d: type, l: length }: Readonly<Record<string, unknown>>,
  ): string => {
    if (/^bigint$/i.test(String(type))) return "1700000000000 + i";
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
  await execute("FLUSH TABLES");
}

/** Yields the nodes of a plan that read a table. */
function* scansIn(
  node: PlanNode,
  isLimited: boolean,
): Generator<{ readonly node: PlanNode; readonly isLimited: boolean }> {
  const type = node["Node Type"];
  if (/^(Seq|Index|Index Only) Scan$/.test(type)) yield { node, isLimited };
  for (const below of node.Plans ?? []) {
    yield* scansIn(below, (isLimited || type === "Limit") && type !== "Sort");
  }
}

/** Shortens lists of parameters and rows, which differ in their lengths alone. */
function withoutLists(sql: string): string {
  return sql.replaceAll(/\$\d+|\?/g, "?").replaceAll(/\?(?:, \?)+/g, "?, ?")
    .replaceAll(/(?: when \? then [\w?]+)+/g, " when ? then ?")
    .replaceAll(/["`]/g, "");
}
