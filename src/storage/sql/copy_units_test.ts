import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { mock } from "node:test";
import { InternalStore, openInternalDatabase } from "../internal_store.ts";
import { fill } from "../testing/filled_stores.ts";
import { conformanceCredentials } from "../testing/user_store_conformance.ts";
import { COPIED_KINDS } from "./copied_tables.ts";
import { copyUnits } from "./copy_units.ts";
import { SqliteConnection } from "./engines/sqlite.ts";
import type { Queries, SqlDatabase } from "./sql_database.ts";
import { SqlUserStore } from "./sql_user_store.ts";
import { assertSearched, noteStatement } from "./testing/explained.ts";
import type { SentStatements } from "./testing/explained.ts";
import { summarizeUnits } from "./unit_summary.ts";

const [USERS] = COPIED_KINDS.users;

/** The same database, in which `hook` runs behind the statement number `at`. */
function interrupted(database: SqlDatabase, at: number, hook: () => Promise<void>): SqlDatabase {
  let statements = 0;
  const watched = (queries: Queries) =>
    new Proxy(queries, {
      get(target, name) {
        if (name === "executeQuery") {
          return async (query: Parameters<Queries["executeQuery"]>[0]) => {
            const result = await target.executeQuery(query);
            if (++statements === at) await hook();
            return result;
          };
        }
        const value = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  return new Proxy(database, {
    get(target, name) {
      if (name === "run") {
        return (action: string, work: (queries: Queries) => Promise<unknown>) =>
          target.run(action, (queries) => work(watched(queries)));
      }
      const value = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

Deno.test("copyUnits() goes on behind a batch whose units were all removed before they were read", async () => {
  const directory = await Deno.makeTempDir({ prefix: "causeway-copy-" });
  const openAt = (name: string) => openInternalDatabase({ path: join(directory, name) });
  const [from, other, to] = [await openAt("a"), await openAt("a"), await openAt("b")];
  try {
    const users = new SqlUserStore(from, "example.com");
    const credentials = conformanceCredentials(1);
    for (let i = 0; i < 5; i++) await users.add(`user${i}`, credentials);
    const group = { ...USERS, batch: 2 };
    const removeFirst = async () => {
      await other.run("remove rows of", async (queries) => {
        const first = queries.selectFrom("users").select("account_key").orderBy("account_key");
        await queries.deleteFrom("users").where("account_key", "in", first.limit(2)).execute();
      });
    };
    // The first statement counts, the second finds the keys of the first batch.
    const counts = await copyUnits(interrupted(from, 2, removeFirst), to, group, {
      differing: "keep",
    });
    assert.equal(counts.added, 3);
    assert.deepEqual(
      await new SqlUserStore(to, "example.com").list(),
      await users.list(),
    );
  } finally {
    for (const database of [from, other, to]) await database.close();
    await Deno.remove(directory, { recursive: true });
  }
});

Deno.test("copyUnits() and summarizeUnits() find the rows of each unit by an index", async () => {
  const directory = await Deno.makeTempDir({ prefix: "causeway-copy-" });
  const pathOf = (name: string) => join(directory, name);
  for (const name of ["a", "b"]) {
    await using store = await InternalStore.open({ path: pathOf(name) });
    await fill(store);
  }
  const sent: SentStatements = new Map();
  const { execute } = SqliteConnection.prototype;
  const watching = mock.method(
    SqliteConnection.prototype,
    "execute",
    function (this: SqliteConnection, sql: string, values: readonly unknown[] = []) {
      // Units are counted once, to tell how much there is to do.
      if (!sql.startsWith("select count(")) noteStatement(sent, sql, values);
      return execute.call(this, sql, values);
    },
  );
  const openAt = (name: string) => openInternalDatabase({ path: pathOf(name) });
  const [from, to, empty] = [await openAt("a"), await openAt("b"), await openAt("empty")];
  try {
    for (const group of Object.values(COPIED_KINDS).flat()) {
      await copyUnits(from, to, group, { differing: "keep" });
      await copyUnits(from, to, group, { differing: "replace" });
      assert.deepEqual(await summarizeUnits(from, group), await summarizeUnits(to, group));
      // What only the destination has is removed.
      await copyUnits(empty, to, group, { differing: "mirror" });
    }
    watching.mock.restore();
    assert.ok([...sent.keys()].some((each) => each.startsWith("delete from vcard_search")));
    const connection = new SqliteConnection(new DatabaseSync(pathOf("empty")));
    await assertSearched(connection, sent);
    connection.destroy();
  } finally {
    watching.mock.restore();
    for (const database of [from, to, empty]) await database.close();
    await Deno.remove(directory, { recursive: true });
  }
});
