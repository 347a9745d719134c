import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { SQLInputValue, StatementSync } from "node:sqlite";
import { InternalStore } from "./internal_store.ts";
import { migrate } from "./sqlite_schema.ts";
import { SqliteUserStore } from "./sqlite_user_store.ts";
import { deriveScramCredentials } from "../xmpp/sasl/mod.ts";
import { userStoreConformance } from "./user_store_conformance.ts";

userStoreConformance("SqliteUserStore", async () => {
  const directory = await Deno.makeTempDir({ prefix: "causeway-users-" });
  const store = new InternalStore({ path: join(directory, "store.sqlite") });
  return {
    users: (domainpart) => store.users(domainpart),
    async [Symbol.asyncDispose]() {
      store.close();
      await Deno.remove(directory, { recursive: true });
    },
  };
});

/** Records in `steps` the statements of a database, and the shape of the rows that it returns. */
function watched(database: DatabaseSync, steps: string[]): DatabaseSync {
  const prepare = (sql: string): StatementSync => {
    const statement = database.prepare(sql);
    const get = statement.get.bind(statement);
    statement.get = (...values: unknown[]) => {
      const row = get(...values as SQLInputValue[]);
      steps.push(`get ${sql}`);
      for (const [column, value] of Object.entries(row ?? {})) {
        steps.push(
          value instanceof Uint8Array
            ? `${column}: ${value.length} bytes`
            : `${column}: ${typeof value}`,
        );
      }
      return row;
    };
    return statement;
  };
  return new Proxy(database, {
    get: (target, name) => name === "prepare" ? prepare : Reflect.get(target, name, target),
  });
}

Deno.test("SqliteUserStore.credentials() takes the same steps for names without an account", async () => {
  using database = new DatabaseSync(":memory:");
  migrate(database, ":memory:");
  const steps: string[] = [];
  const users = new SqliteUserStore(watched(database, steps), "example.com", ":memory:");
  const elsewhere = new SqliteUserStore(watched(database, steps), "example.org", ":memory:");
  const credentials = await deriveScramCredentials("secret", 1);
  for (const name of ["bob", "dave"]) await users.add(name, credentials);
  const stepsFor = async (name: string, store = users): Promise<[boolean, string[]]> => {
    steps.length = 0;
    const isThere = await store.credentials(name) !== undefined;
    return [isThere, [...steps]];
  };
  await stepsFor("bob"); // compiles the statement
  const [isThere, expected] = await stepsFor("bob");
  assert.equal(isThere, true);
  assert.equal(expected.length, 1 + 2 + 8, "one row with its key and its secrets");
  for (const name of ["", "alice", "bobb", "carol", "zoe", "\u{10ffff}"]) {
    assert.deepEqual(await stepsFor(name), [false, expected], name);
  }
  for (const name of ["bob", "zoe"]) {
    assert.deepEqual(await stepsFor(name, elsewhere), [false, expected], name);
  }
});
