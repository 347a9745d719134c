import assert from "node:assert/strict";
import { preparedDatabase } from "../testing/databases.ts";
import { SERVER_KINDS, serverDuringTests } from "../testing/servers.ts";
import { connectToServer } from "../sql_server.ts";
import { POSTGRES } from "./postgres.ts";

const postgres = SERVER_KINDS.find(({ engine }) => engine.dialect.name === "pgsql")!; // one of them
const server = serverDuringTests(postgres);

Deno.test("PostgreSQL prepares a statement with a name once, and others not at all", async () => {
  const connection = await connectToServer(await preparedDatabase(server()));
  try {
    for (const value of [1, 2]) {
      const { rows } = await connection.execute("SELECT $1::INT AS value", [value], "one");
      assert.deepEqual(rows.map((row) => row["value"]), [value]);
      await connection.execute("SELECT $1::INT AS other", [value]);
    }
    const { rows } = await connection.execute("SELECT name, statement FROM pg_prepared_statements");
    assert.deepEqual(rows, [{ name: "one", statement: "SELECT $1::INT AS value" }]);
  } finally {
    await connection.close();
  }
});

Deno.test("PostgreSQL: a prepared statement that the schema has outgrown costs its connection", async () => {
  const connection = await connectToServer(await preparedDatabase(server()));
  const ask = () => connection.execute("SELECT value FROM changing", [], "ask");
  try {
    await connection.execute("CREATE TEMPORARY TABLE changing (value INT)");
    await ask();
    await connection.execute("ALTER TABLE changing ALTER COLUMN value TYPE TEXT");
    await assert.rejects(ask, { code: "0A000" });
    assert.equal(connection.isOpen, false);
  } finally {
    await connection.close();
  }
});

Deno.test("PostgreSQL: a statement that a pooler has prepared anew with other columns costs its connection", async () => {
  const connection = await connectToServer(await preparedDatabase(server()));
  const ask = () => connection.execute("SELECT * FROM changing", [], "ask");
  try {
    await connection.execute("CREATE TEMPORARY TABLE changing (value INT)");
    await connection.execute("INSERT INTO changing VALUES (1)");
    await ask();
    await connection.execute("ALTER TABLE changing ADD COLUMN other INT");
    await connection.execute("DEALLOCATE ask");
    await connection.execute("PREPARE ask AS SELECT * FROM changing");
    await assert.rejects(ask, { code: "0A000" });
    assert.equal(connection.isOpen, false);
  } finally {
    await connection.close();
  }
});

Deno.test("PostgreSQL returns the rows of a long result in their order", async () => {
  const connection = await connectToServer(await preparedDatabase(server()));
  try {
    const sql = "SELECT i::BIGINT AS number, repeat('é', i % 100) AS text, " +
      "CASE WHEN i % 2 = 0 THEN i END AS half FROM generate_series(1, $1::INT) AS i";
    const expected = Array.from({ length: 5_000 }, (_, index) => {
      const i = index + 1;
      return { number: `${i}`, text: "é".repeat(i % 100), half: i % 2 === 0 ? i : null };
    });
    assert.deepEqual((await connection.execute(sql, [5_000])).rows, expected);
    await assert.rejects(
      connection.execute("SELECT 10 / (3 - i) FROM generate_series(1, 5) AS i", []),
      { code: "22012" },
    );
    assert.deepEqual((await connection.execute(sql, [1])).rows, expected.slice(0, 1));
  } finally {
    await connection.close();
  }
});

Deno.test("PostgreSQL: a check names autovacuum that is off, for the server and for tables of ours", async () => {
  const connection = await connectToServer(await preparedDatabase(server()));
  const problems = (off?: string) =>
    POSTGRES.dialect.settingProblems({
      isOpen: true,
      // The server says that a setting is off which it has on.
      execute: (sql, values) =>
        connection.execute(sql === `SHOW ${off}` ? `SELECT 'off' AS ${off}` : sql, values),
      close: () => Promise.resolve(),
      destroy: () => {},
    });
  const effect =
    "tables grow by all that is changed in them, and reading large archives takes long";
  try {
    assert.deepEqual(await problems(), []);
    for (const name of ["autovacuum", "track_counts"]) {
      assert.deepEqual(await problems(name), [`${name} is off: ${effect}`]);
    }
    await connection.execute("CREATE TABLE of_others (a INT) WITH (autovacuum_enabled = false)");
    await connection.execute("ALTER TABLE rosters SET (autovacuum_enabled = true)");
    await connection.execute("ALTER TABLE archive_messages SET (autovacuum_enabled = no)");
    assert.deepEqual(
      await problems(),
      [`autovacuum is off for the table archive_messages: ${effect}`],
    );
  } finally {
    await connection.close();
  }
});

Deno.test("PostgreSQL: a server that takes connections and never answers cannot be reached", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const accepted = listener.accept();
  const failure = await POSTGRES.connect({
    host: "127.0.0.1",
    port: listener.addr.port,
    database: "a",
    username: "b",
    password: { reveal: () => "" },
  }, { connectTimeoutMs: 50, statementTimeoutMs: 1000 }).then(() => undefined, (thrown) => thrown);
  (await accepted).close();
  assert.equal(POSTGRES.dialect.failureOf(failure), "unreachable", String(failure));
});

Deno.test("POSTGRES.failureOf() names failures of the whole server by their class", () => {
  const named = (code: string) =>
    POSTGRES.dialect.failureOf(Object.assign(new Error("x"), { code, severity: "ERROR" }));
  assert.equal(named("53200"), "overloaded");
  assert.equal(named("53100"), "full");
  assert.equal(named("57P05"), "unreachable");
  assert.equal(named("57014"), "timeout");
  assert.equal(named("25P04"), "timeout");
  assert.equal(named("55000"), "unreachable");
  assert.equal(named("58P01"), "io");
  assert.equal(named("40003"), "timeout", "not to be tried again: it may have been done");
  assert.equal(named("22021"), undefined);
  assert.equal(named("54000"), "value-too-large");
});
