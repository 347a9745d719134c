import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { SQLITE, SqliteConnection } from "./engines/sqlite.ts";
import { accountKey, keyOf } from "./keys.ts";
import { prepareSchema } from "./schema.ts";
import type { SqlConnection } from "./sql_connection.ts";
import { SqlDatabase } from "./sql_database.ts";
import type { SqlDialect } from "./sql_dialect.ts";
import { connectToServer } from "./sql_server.ts";
import { SqlVcardStore } from "./sql_vcard_store.ts";
import { preparedDatabase } from "./testing/databases.ts";
import { SERVER_KINDS, serverDuringTests } from "./testing/servers.ts";

const HOST = "example.com";
/** People whom a search for the public does not find, all within the range that it asks for. */
const SILENT = 3_000;
const ROWS_AT_ONCE = 100;

/** A statement with its values. */
interface Executed {
  readonly sql: string;
  readonly values: readonly unknown[];
}

/** Fills the index of a database, and returns what searches ask it. */
async function searched(
  dialect: SqlDialect,
  connection: SqlConnection,
): Promise<Readonly<Record<string, readonly Executed[]>>> {
  const executed: Executed[] = [];
  const database = new SqlDatabase({
    dialect,
    place: "it",
    connect: () =>
      Promise.resolve({
        isOpen: true,
        execute: (sql: string, values: readonly unknown[] = []) => {
          executed.push({ sql, values });
          return connection.execute(sql, values);
        },
        close: () => Promise.resolve(), // the test goes on with it
        destroy: () => connection.destroy(),
      }),
    bounds: { workers: 1, statementTimeoutMs: Infinity },
  });
  const rows = Array.from({ length: SILENT + 5 }, (_, i) =>
    [0, 2].map((field) => ({
      account_key: accountKey(`user${i}`, HOST),
      field,
      host_key: keyOf(HOST),
      value: new TextEncoder().encode(`a${String(i).padStart(5, "0")}`),
      shown: new TextEncoder().encode(`user${i}`),
      visibility: i < SILENT ? 1 : 2,
    }))).flat();
  for (let from = 0; from < rows.length; from += ROWS_AT_ONCE) {
    await database.run(
      "fill",
      (queries) =>
        queries.insertInto("vcard_search").values(rows.slice(from, from + ROWS_AT_ONCE)).execute(),
    );
  }
  const store = new SqlVcardStore(database, HOST);
  const asked: Record<string, readonly Executed[]> = {};
  for (const findsAll of [false, true]) {
    const terms = [{ field: "first", text: "a*" }, { field: "user", text: "a*" }] as const;
    executed.length = 0;
    const found = await store.search(terms, { limit: 30, findsAll });
    assert.equal(found.length, findsAll ? 30 : 5);
    asked[findsAll ? "all" : "public"] = executed.filter(({ sql }) => /vcard_search/.test(sql));
  }
  await database.close();
  return asked;
}

Deno.test("SqlVcardStore.search() reads ranges of an index, in the order of the answer", async () => {
  const connection = new SqliteConnection(new DatabaseSync(":memory:"));
  await prepareSchema(SQLITE, connection, ":memory:");
  const asked = await searched(SQLITE, connection);
  for (const [who, ranges] of [["public", 1], ["all", 2]] as const) {
    const plans: string[] = [];
    for (const { sql, values } of asked[who]!) {
      const { rows } = await connection.execute(`EXPLAIN QUERY PLAN ${sql}`, values);
      plans.push(rows.map((row) => row["detail"]).join("; "));
    }
    const range =
      "SEARCH vcard_search USING COVERING INDEX vcard_search_by_value (host_key=? AND " +
      "field=? AND visibility=? AND value>? AND value<?)";
    assert.deepEqual(plans.slice(0, ranges), Array(ranges).fill(range));
    assert.ok(plans.length > ranges);
    for (const plan of plans.slice(ranges)) {
      assert.match(plan, /sqlite_autoindex_vcard_search_1 \(acc/);
    }
  }
  await connection.close();
});

for (const kind of SERVER_KINDS) {
  if (kind.engine.dialect.name === "mssql") continue; // what stands in for it explains nothing
  const server = serverDuringTests(kind);

  Deno.test(`${kind.name}: a search of vCards reads ranges of an index, in the order of the answer`, async () => {
    const options = await preparedDatabase(server());
    const { dialect } = kind.engine;
    const connection = await connectToServer(options);
    try {
      const asked = await searched(dialect, connection);
      await connection.execute(`ANALYZE ${dialect.name === "mysql" ? "TABLE " : ""}vcard_search`);
      for (const [who, ranges] of [["public", 1], ["all", 2]] as const) {
        for (const { sql, values } of asked[who]!.slice(0, ranges)) {
          const plan = JSON.stringify((await connection.execute(`EXPLAIN ${sql}`, values)).rows);
          assert.match(plan, /vcard_search_by_value/, who);
          assert.doesNotMatch(plan, /filesort|Sort|Seq Scan/, `${who}: ${plan}`);
        }
      }
      // Of so small a table, an engine may read the whole for very many keys.
      for (const { sql, values } of asked["public"]!.slice(1)) {
        const { rows } = await connection.execute(`EXPLAIN ${sql}`, values);
        assert.match(JSON.stringify(rows), /PRIMARY|vcard_search_pkey/);
      }
    } finally {
      await connection.close();
    }
  });
}
