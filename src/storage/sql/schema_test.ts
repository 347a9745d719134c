import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { SQLITE, SqliteConnection } from "./engines/sqlite.ts";
import {
  checkSchema,
  lostIndexes,
  planSchema,
  prepareSchema,
  readSchema,
  statementsOf,
} from "./schema.ts";
import type { SqlDialect } from "./sql_dialect.ts";

function inMemory() {
  return new SqliteConnection(new DatabaseSync(":memory:"));
}

/** SQLite with another schema after the table of versions. */
function dialectWith(...texts: readonly string[]): SqlDialect {
  const files = texts.map((text, index) => ({ version: index + 1, text }));
  return { ...SQLITE, schema: [SQLITE.schema[0]!, ...files] };
}

async function tablesOf(connection: SqliteConnection): Promise<string[]> {
  const tables = [...await SQLITE.tables(connection)];
  return tables.filter((name) => !name.startsWith("sqlite_")).toSorted();
}

const [ONE, TWO] = ["CREATE TABLE one (a);", "CREATE TABLE two (a);\nCREATE TABLE three (a);"];

Deno.test("prepareSchema() goes from each version to the newest, and has nothing to do then", async () => {
  const connection = inMemory();
  await prepareSchema(dialectWith(ONE), connection, "it");
  await connection.execute("INSERT INTO one VALUES (1)");
  const newest = dialectWith(ONE, TWO);
  const plan = await prepareSchema(newest, connection, "it");
  assert.deepEqual(plan.filter((each) => each.startsWith("CREATE")), [
    "CREATE TABLE two (a)",
    "CREATE TABLE three (a)",
  ]);
  assert.deepEqual(await prepareSchema(newest, connection, "it"), []);
  assert.deepEqual(await tablesOf(connection), ["causeway_schema", "one", "three", "two"]);
  const { rows } = await connection.execute("SELECT version, done FROM causeway_schema");
  assert.deepEqual(rows.map((row) => ({ ...row })), [
    { version: 1, done: 1 },
    { version: 2, done: 2 },
  ]);
});

Deno.test("planSchema() says what prepareSchema() will do, and changes nothing", async () => {
  const connection = inMemory();
  const plan = planSchema(SQLITE, await readSchema(SQLITE, connection), "it");
  assert.deepEqual(await tablesOf(connection), []);
  assert.deepEqual(await prepareSchema(SQLITE, connection, "it"), plan);
});

Deno.test("lostIndexes() names those of the newest schema that are gone", async () => {
  const dialect = dialectWith(
    "CREATE TABLE one (a);\nCREATE INDEX ones ON one (a);\nCREATE UNIQUE INDEX firsts ON one (a);",
    "DROP INDEX ones;\nCREATE INDEX others ON one (a);",
  );
  const connection = inMemory();
  await prepareSchema(dialect, connection, "it");
  assert.deepEqual(await lostIndexes(dialect, connection), []);
  await connection.execute("DROP INDEX firsts");
  assert.deepEqual(await lostIndexes(dialect, connection), ["firsts"]);
});

Deno.test("prepareSchema() changes nothing when a statement of a transactional schema fails", async () => {
  const connection = inMemory();
  await prepareSchema(dialectWith(ONE), connection, "it");
  const broken = dialectWith(ONE, "CREATE TABLE two (a);\nCREATE TABLE one (a);");
  await assert.rejects(prepareSchema(broken, connection, "it"), /one already exists/);
  assert.deepEqual(await tablesOf(connection), ["causeway_schema", "one"]);
  await prepareSchema(dialectWith(ONE, TWO), connection, "it");
});

Deno.test("prepareSchema() continues where it was interrupted when the schema is not transactional", async () => {
  const autocommit: SqlDialect = { ...dialectWith(ONE, TWO), hasTransactionalSchema: false };
  const whole = planSchema(autocommit, await readSchema(autocommit, inMemory()), "it");
  for (let count = 0; count < whole.length; count++) {
    const connection = inMemory();
    const interrupted = {
      execute: (sql: string) => {
        if (whole.indexOf(sql) >= count) throw new Error("interrupted");
        return connection.execute(sql);
      },
      isOpen: true,
      close: () => connection.close(),
      destroy: () => {},
    };
    await assert.rejects(prepareSchema(autocommit, interrupted, "it"), /interrupted/);
    // The statement itself may have been done before the crash, the note about it not.
    if (whole[count]!.startsWith("UPDATE")) continue;
    assert.deepEqual(await prepareSchema(autocommit, connection, "it"), whole.slice(count));
    await checkSchema(autocommit, connection, "it");
  }
});

Deno.test("checkSchema() names a database without a schema, and one with an older schema", async () => {
  const connection = inMemory();
  await assert.rejects(checkSchema(SQLITE, connection, "it"), {
    code: "storage/schema-missing",
    message: "Cannot use it: its tables are missing; run `causeway backends prepare`",
  });
  await prepareSchema(dialectWith(ONE), connection, "it");
  await assert.rejects(checkSchema(dialectWith(ONE, TWO), connection, "it"), {
    code: "storage/schema-too-old",
    message: "Cannot use it: its schema is not complete up to version 2; run `causeway backends " +
      "prepare`",
  });
});

Deno.test("a program uses a newer schema that asks for no more than it knows", async () => {
  const floor = "CREATE TABLE causeway_schema_floor (lowest);\n" +
    "INSERT INTO causeway_schema_floor VALUES (2);";
  const raised = "UPDATE causeway_schema_floor SET lowest = 4;";
  const connection = inMemory();
  await prepareSchema(dialectWith(ONE, floor, TWO), connection, "it");
  const old = dialectWith(ONE, floor);
  await checkSchema(old, connection, "it");
  assert.deepEqual(await prepareSchema(old, connection, "it"), [], "it leaves the rest alone");
  await assert.rejects(checkSchema(dialectWith(ONE), connection, "it"), {
    code: "storage/schema-too-new",
  });
  await assert.rejects(checkSchema(dialectWith(ONE, `${floor} `, TWO, ONE), connection, "it"), {
    code: "storage/schema-too-old",
  });
  await prepareSchema(dialectWith(ONE, floor, TWO, raised), connection, "it");
  await assert.rejects(checkSchema(old, connection, "it"), { code: "storage/schema-too-new" });
});

Deno.test("planSchema() refuses newer schemas, changed ones and tables of others", async () => {
  const connection = inMemory();
  await prepareSchema(dialectWith(ONE, TWO), connection, "it");
  const plan = async (dialect: SqlDialect) =>
    planSchema(dialect, await readSchema(dialect, connection), "it");
  await assert.rejects(plan(dialectWith(ONE)), {
    code: "storage/schema-too-new",
    message: "Cannot use it: its schema has version 2, and this program knows versions up to 1; " +
      "use the newer program",
  });
  await assert.rejects(plan(dialectWith("CREATE TABLE one (b);", TWO)), {
    code: "storage/schema-foreign",
    message: "Cannot use it: version 1 of its schema is not ours; give Causeway an empty database",
  });
  await connection.execute("DROP TABLE causeway_schema");
  await assert.rejects(plan(dialectWith(ONE, TWO)), {
    code: "storage/schema-foreign",
    message: "Cannot use it: it has a table one that is not ours, it has a table two that is not " +
      "ours, it has a table three that is not ours; give Causeway an empty database",
  });
});

Deno.test("statementsOf() divides a file at semicolons that end a line, and drops comments", () => {
  const text = "-- a; comment;\nSELECT ';', 1;\n\n-- another\nSELECT\n  2;\n";
  assert.deepEqual(statementsOf({ version: 1, text }), ["SELECT ';', 1", "SELECT\n  2"]);
});
