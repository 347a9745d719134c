import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import tedious from "tedious";
import { emptyDatabase, preparedDatabase } from "../testing/databases.ts";
import { SERVER_KINDS, serverDuringTests, TestServer } from "../testing/servers.ts";
import { connectToServer } from "../sql_server.ts";
import { MSSQL } from "./mssql.ts";

const KIND = SERVER_KINDS.find(({ driver }) => driver === "mssql")!; // it is one of them
const server = serverDuringTests(KIND);
const LIMITS = { connectTimeoutMs: 30_000, statementTimeoutMs: 30_000 };
const { dialect } = MSSQL;

async function open(statementTimeoutMs = LIMITS.statementTimeoutMs) {
  const { address } = await preparedDatabase(server());
  const connection = await MSSQL.connect(address, { ...LIMITS, statementTimeoutMs });
  return { address, connection, [Symbol.asyncDispose]: () => connection.close() };
}

async function numberOf(statement: Promise<unknown>): Promise<unknown> {
  try {
    await statement;
    return undefined;
  } catch (thrown) {
    return (thrown as { readonly number?: unknown }).number;
  }
}

Deno.test("MssqlConnection.execute() keeps values of every kind as they are", async () => {
  await using fixture = await open();
  const { connection } = fixture;
  await connection.execute(
    "CREATE TABLE kinds (id BIGINT IDENTITY NOT NULL PRIMARY KEY, big BIGINT, small INT, " +
      "fixed BINARY(4), short VARBINARY(8000), long VARBINARY(MAX), word NVARCHAR(100))",
  );
  const long = Uint8Array.from({ length: 100_000 }, (_, i) => i % 251);
  const rows = [
    [Number.MAX_SAFE_INTEGER, -2_147_483_648, new Uint8Array([0, 1, 2, 255]), long.slice(0, 8000)],
    [0, 1, new Uint8Array(4), new Uint8Array()],
    [null, null, null, null],
  ];
  const words = ["ß ☃ 😀 '", "", null];
  for (const [i, row] of rows.entries()) {
    const { affectedRows } = await connection.execute(
      "insert into kinds (big, small, fixed, short, long, word) values (@1, @2, @3, @4, @5, @6)",
      [...row, i === 0 ? long : null, words[i]],
    );
    assert.equal(affectedRows, 1);
  }
  const found = await connection.execute("select * from kinds order by id");
  assert.equal(found.affectedRows, 0);
  const bytes = (value: unknown) => value instanceof Uint8Array ? value.toHex() : value;
  assert.deepEqual(
    found.rows.map((row) =>
      ["big", "small", "fixed", "short", "word"].map((each) => bytes(row[each]))
    ),
    // The driver gives BIGINT as text.
    rows.map(([big, ...row], i) =>
      [big === null ? null : String(big), ...row, words[i]].map(bytes)
    ),
  );
  assert.equal(bytes(found.rows[0]!["long"]), long.toHex());
});

Deno.test("the double of SQL Server refuses what a server refuses", async () => {
  await using fixture = await open();
  const { connection } = fixture;
  const key = new Uint8Array(32);
  for (
    const [number, sql, ...values] of [
      [102, "SELEC 1"],
      [102, "insert into secrets values (0x00, 0x00) on conflict do nothing"],
      [195, "select json_extract('{}', '$') as x"],
      [207, "select absent from users"],
      [208, "select 1 as x from absent"],
      [1033, "select count(*) as n from (select name from secrets order by name) as s"],
      [137, "select @2 as x", 1],
      [257, "select value from secrets where name = @1", "text"],
      [257, "insert into secrets (name, value) values (@1, @2)", "text", key],
      [515, "insert into secrets (name) values (@1)", key],
      [8152, "insert into secrets (name, value) values (@1, @2)", new Uint8Array(256), key],
      [8115, "update users set sha1_iterations = @1", 2 ** 31],
      [8101, "insert into subscription_requests select * from subscription_requests"],
      [2627, "insert into rosters values (@1, @1, 1, 1), (@1, @1, 1, 1)", key],
      [3902, "COMMIT TRANSACTION"],
      [8111, "CREATE TABLE x (a INT, PRIMARY KEY (a))"],
      [2812, "EXEC sp_absent"],
    ] as const
  ) {
    assert.equal(await numberOf(connection.execute(sql, values)), number, sql);
  }
  assert.equal(connection.isOpen, true);
});

Deno.test("an error ends a transaction at the server, and the rollback finds none", async () => {
  await using fixture = await open();
  const { connection } = fixture;
  const add = "insert into rosters values (@1, @1, 1, 1)";
  await connection.execute(dialect.begin);
  await connection.execute(add, [new Uint8Array(32)]);
  assert.equal(await numberOf(connection.execute(add, [new Uint8Array(32)])), 2627);
  await connection.execute(dialect.rollback);
  assert.deepEqual((await connection.execute("select * from rosters")).rows, []);
});

Deno.test("a statement that takes too long is cancelled, and its session goes on", async () => {
  await using fixture = await open(1_000);
  const { address, connection } = fixture;
  const holder = await MSSQL.connect(address, LIMITS);
  try {
    await holder.execute(dialect.begin);
    await holder.execute("update users set sha1_iterations = 7");
    await connection.execute("SET LOCK_TIMEOUT -1");
    const blocked = connection.execute("update users set sha1_iterations = 8");
    await assert.rejects(blocked, (thrown) => dialect.failureOf(thrown) === "timeout");
    const { rows } = await connection.execute("select sha1_iterations as n from users");
    assert.deepEqual(rows.map((row) => ({ ...row })), [{ n: 1 }]);
  } finally {
    await holder.execute(dialect.rollback);
    await holder.close();
  }
  await connection.execute("update users set sha1_iterations = 8");
});

Deno.test("a server that is too old is named", async () => {
  await using own = await TestServer.start(KIND);
  const options = await emptyDatabase(own);
  await own.kill();
  await own.launch("--version", "10.50.1600");
  await assert.rejects(connectToServer(options), {
    code: "storage/server-too-old",
    message: /Microsoft SQL Server 10\.50\.1600 is too old/,
  });
});

Deno.test("the double serves prepared statements, transaction requests and resets", async () => {
  const { address } = await preparedDatabase(server());
  const connection = new tedious.Connection({
    server: address.host,
    authentication: {
      type: "default",
      options: { userName: address.username, password: address.password.reveal() },
    },
    options: { port: address.port, database: address.database, encrypt: false },
  });
  const call = (start: (done: (error?: Error | null) => void) => void) =>
    new Promise<void>((resolve, reject) => start((error) => error ? reject(error) : resolve()));
  try {
    await call((done) => connection.connect(done));
    await call((done) => connection.beginTransaction(done));
    let settle: (error?: Error | null) => void = () => {};
    const request = new tedious.Request(
      "insert into secrets (name, value) values (@name, 0x01)",
      (error) => settle(error),
    );
    request.addParameter("name", tedious.TYPES.VarBinary, undefined, { length: 8000 });
    const prepared = Promise.withResolvers<void>();
    request.once("prepared", () => prepared.resolve());
    connection.prepare(request);
    await prepared.promise;
    for (const name of [new Uint8Array([1]), new Uint8Array([2])]) {
      await call((done) => {
        settle = done;
        connection.execute(request, { name: Buffer.from(name) });
      });
    }
    await call((done) => connection.rollbackTransaction(done));
    await call((done) => connection.beginTransaction(done));
    await call((done) => connection.reset(done));
    let count: unknown;
    await call((done) => {
      const query = new tedious.Request(
        "select count(*) as n from secrets",
        (error) => done(error),
      );
      query.on("row", (columns) => count = columns[0]!.value);
      connection.execSql(query);
    });
    assert.equal(count, 0);
  } finally {
    const ended = Promise.withResolvers<void>();
    connection.once("end", () => ended.resolve());
    connection.close();
    await ended.promise;
  }
});
