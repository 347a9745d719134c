import assert from "node:assert/strict";
import type { SqlConnection } from "../sql_connection.ts";
import type { SqlEngine } from "../sql_server.ts";

/**
 * Queries that were sent, the first one of each shape: the statement and its values, by the statement
 * with short lists.
 */
export type SentStatements = Map<string, readonly [sql: string, ...values: unknown[]]>;

/** Statements that read a whole table, without quotes. */
const WHOLE: ReadonlySet<string> = new Set([
  // These two have a row for each version of the schema, and one row.
  "SELECT version, checksum, done FROM causeway_schema ORDER BY version",
  "SELECT lowest FROM causeway_schema_floor",
  "SELECT LOWER(table_name) AS name FROM information_schema.tables WHERE table_schema = DATABASE()",
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
      const text = withoutLists(sql);
      const isQuery = /^(select|update|delete)\b/i.test(sql);
      if (isQuery && !sent.has(text)) sent.set(text, [sql, ...values]);
      return inner.execute(sql, values);
    },
    close: () => inner.close(),
    destroy: () => inner.destroy(),
  };
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
  readonly Plans?: readonly PlanNode[];
}

/**
 * Asserts that PostgreSQL can answer every statement by an index. Where a plan reads an index from its
 * beginning, it is to stop at a limit without leaving anything out.
 */
export async function assertIndexed(connection: SqlConnection, sent: SentStatements) {
  // What an index cannot answer is read whole all the same.
  await connection.execute("SET enable_seqscan = off");
  const problems: string[] = [];
  for (const [text, [sql, ...values]] of sent) {
    if (WHOLE.has(text)) continue;
    const { rows } = await connection.execute(`EXPLAIN (FORMAT JSON) ${sql}`, values);
    const plan = rows[0]!["QUERY PLAN"];
    const [{ Plan }] = (typeof plan === "string" ? JSON.parse(plan) : plan) as [{ Plan: PlanNode }];
    for (const { node, isLimited } of scansIn(Plan, false)) {
      const isWhole = node["Index Cond"] === undefined;
      const mayStop = isLimited && node.Filter === undefined;
      if (node["Node Type"] === "Seq Scan" || (isWhole && !mayStop)) {
        problems.push(`${node["Node Type"]} of ${node["Relation Name"]}: ${text}`);
      }
    }
  }
  assert.deepEqual(problems, []);
}

/**
 * Asserts that MySQL or MariaDB has an index for every statement. Whether they use it depends on what
 * is in a table, which is empty here.
 */
export async function assertKeyed(connection: SqlConnection, sent: SentStatements) {
  const problems: string[] = [];
  for (const [text, [sql, ...values]] of sent) {
    if (WHOLE.has(text)) continue;
    const { rows } = await connection.execute(`EXPLAIN ${sql}`, values);
    const mayStop = !/ where /.test(text) && / limit \d+$/.test(text);
    for (const { type, table, possible_keys: keys } of rows) {
      const isWhole = type === "ALL" || (type === "index" && !mayStop);
      const isDerived = String(table).startsWith("<"); // its own part of the plan is checked, too
      if (isWhole && !isDerived && keys === null) problems.push(`${type} of ${table}: ${text}`);
    }
  }
  assert.deepEqual(problems, []);
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
    .replaceAll(/["`]/g, "");
}
