import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { ManualClock } from "../../base/mod.ts";
import { POSTGRES } from "./engines/postgres.ts";
import { openSqlite, SQLITE } from "./engines/sqlite.ts";
import { checkSchema, prepareSchema } from "./schema.ts";
import type { SqlConnection } from "./sql_connection.ts";
import { SqlDatabase } from "./sql_database.ts";
import { withPath } from "./testing/sqlite.ts";

/** A database in a file, which other programs change, and whose answers can be held back. */
class WatchedDatabase {
  readonly clock = new ManualClock();
  readonly database: SqlDatabase;
  readonly #path: string;
  /** Questions for the schema version after the first connection. */
  questions = 0;
  /** Resolves when answers may go out. */
  gate: Promise<void> = Promise.resolve();

  constructor(path: string) {
    this.#path = path;
    const place = "the test database";
    this.database = new SqlDatabase({
      dialect: SQLITE,
      place,
      clock: this.clock,
      connect: async () => {
        const connection = openSqlite({ path, busyTimeoutMs: 0 }, place);
        await prepareSchema(SQLITE, connection, place);
        this.database.schemaVersion = await checkSchema(SQLITE, connection, place);
        return this.#watched(connection);
      },
      bounds: { workers: 1, statementTimeoutMs: Infinity },
    });
  }

  /** Writes a version, as `causeway backends prepare` of a newer program does. */
  prepareTo(version: number): void {
    using newer = new DatabaseSync(this.#path);
    newer.prepare("INSERT INTO causeway_schema VALUES (?, 'newer', 1)").run(version);
  }

  #watched(connection: SqlConnection): SqlConnection {
    return {
      get isOpen() {
        return connection.isOpen;
      },
      execute: async (...statement) => {
        if (statement[0].includes("causeway_schema")) this.questions++;
        await this.gate;
        return await connection.execute(...statement);
      },
      close: () => connection.close(),
      destroy: () => connection.destroy(),
    };
  }
}

Deno.test("SqlDatabase.refreshSchemaVersion() reads what a newer program made of it, every five seconds", () =>
  withPath(async (path) => {
    const watched = new WatchedDatabase(path);
    const { clock, database } = watched;
    await database.refreshSchemaVersion();
    assert.equal(database.schemaVersion, undefined, "it opens no connection");
    await database.open();
    watched.prepareTo(998);
    assert.notEqual(database.schemaVersion, 998);
    await database.refreshSchemaVersion();
    assert.equal(database.schemaVersion, 998);
    watched.prepareTo(999);
    clock.advance(4_999);
    await database.refreshSchemaVersion();
    assert.equal(database.schemaVersion, 998);
    clock.advance(1);
    await database.refreshSchemaVersion();
    assert.equal(database.schemaVersion, 999);
    assert.equal(watched.questions, 2);
    assert.equal(clock.pendingTimers, 0);
    await database.close();
  }));

Deno.test("SqlDatabase.refreshSchemaVersion() waits a second for a slow database, and asks it once", () =>
  withPath(async (path) => {
    const watched = new WatchedDatabase(path);
    const { clock, database } = watched;
    await database.open();
    const before = database.schemaVersion;
    watched.prepareTo(999);
    const { promise, resolve: answer } = Promise.withResolvers<void>();
    watched.gate = promise;
    const first = database.refreshSchemaVersion();
    clock.advance(999);
    const second = database.refreshSchemaVersion();
    clock.advance(1);
    await first;
    assert.equal(database.schemaVersion, before);
    clock.advance(10_000);
    await second;
    const third = database.refreshSchemaVersion();
    answer();
    await third;
    assert.equal(database.schemaVersion, 999);
    assert.equal(watched.questions, 1);
    await database.close();
  }));

Deno.test("SqlDatabase.refreshSchemaVersion() keeps the version when the question fails", () =>
  withPath(async (path) => {
    const watched = new WatchedDatabase(path);
    const { database } = watched;
    await database.open();
    const before = database.schemaVersion;
    watched.gate = Promise.reject(new Error("broken"));
    await database.refreshSchemaVersion();
    assert.equal(database.schemaVersion, before);
    assert.equal(watched.questions, 1);
    await database.close();
  }));

Deno.test("SqlDatabase replaces a connection that is read-only for more than five seconds", async () => {
  const clock = new ManualClock();
  let opened = 0;
  const readOnly = Object.assign(new Error("x"), { code: "25006", severity: "ERROR" });
  const connect = (): Promise<SqlConnection> => {
    let isOpen = true;
    const end = () => void (isOpen = false);
    const isReadOnly = ++opened === 1; // a replica, and then the server that takes its place
    return Promise.resolve({
      get isOpen() {
        return isOpen;
      },
      execute: () =>
        isReadOnly ? Promise.reject(readOnly) : Promise.resolve({ rows: [], affectedRows: 1 }),
      close: () => Promise.resolve(end()),
      destroy: end,
    });
  };
  const { dialect } = POSTGRES;
  const database = new SqlDatabase({ dialect, place: "the test database", clock, connect });
  const change = () =>
    database.run("change", (queries) => queries.deleteFrom("users").executeTakeFirstOrThrow());
  const isReadOnly = { code: "storage/read-only" };
  await assert.rejects(change(), isReadOnly);
  clock.advance(4_999);
  await assert.rejects(change(), isReadOnly);
  assert.equal(opened, 1);
  clock.advance(1);
  await assert.rejects(change(), isReadOnly);
  assert.equal((await change()).numDeletedRows, 1n);
  assert.equal(opened, 2);
  await database.close();
});
