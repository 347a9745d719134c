import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { InternalStore } from "./internal_store.ts";
import { migrate, MIGRATIONS } from "./sqlite_schema.ts";
import { SqliteUserStore } from "./sqlite_user_store.ts";
import { conformanceCredentials } from "./user_store_conformance.ts";

/** Runs `work` with the path of a store in a directory of its own. */
async function withPath(work: (path: string) => Promise<void> | void): Promise<void> {
  const directory = await Deno.makeTempDir({ prefix: "causeway-store-" });
  try {
    await work(join(directory, "store.sqlite"));
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

Deno.test("InternalStore keeps accounts when it is closed and opened again", () =>
  withPath(async (path) => {
    {
      using store = new InternalStore({ path });
      await store.users("example.com").add("alice", conformanceCredentials(1));
    }
    using store = new InternalStore({ path });
    assert.deepEqual(
      await store.users("example.com").credentials("alice"),
      conformanceCredentials(1),
    );
  }));

Deno.test("InternalStore.secret() makes a secret once for each name, and shares it", () =>
  withPath((path) => {
    let first: Uint8Array;
    {
      using store = new InternalStore({ path });
      using other = new InternalStore({ path });
      first = store.secret("one");
      assert.equal(first.length, 32);
      assert.deepEqual(other.secret("one"), first);
      assert.notDeepEqual(other.secret("other"), first);
    }
    using again = new InternalStore({ path });
    assert.deepEqual(again.secret("one"), first);
  }));

Deno.test("InternalStore creates files that only their owner can read", () =>
  withPath(async (path) => {
    using store = new InternalStore({ path });
    await store.users("example.com").add("alice", conformanceCredentials(1));
    for (const file of [path, `${path}-wal`, `${path}-shm`]) {
      assert.equal((Deno.statSync(file).mode! & 0o777).toString(8), "600", file);
    }
  }));

Deno.test("InternalStore shares its data with other objects that have the file open", () =>
  withPath(async (path) => {
    using node = new InternalStore({ path });
    using command = new InternalStore({ path });
    await command.users("example.com").add("alice", conformanceCredentials(1));
    assert.equal(await node.users("example.com").exists("alice"), true);
    await node.users("example.com").remove("alice");
    assert.equal(await command.users("example.com").exists("alice"), false);
  }));

Deno.test("InternalStore reads while another process writes, and reports a lock it cannot get", () =>
  withPath(async (path) => {
    using store = new InternalStore({ path, busyTimeoutMs: 1 });
    const users = store.users("example.com");
    await users.add("alice", conformanceCredentials(1));
    const other = new DatabaseSync(path);
    try {
      other.exec("BEGIN IMMEDIATE");
      assert.equal(await users.exists("alice"), true);
      await assert.rejects(users.add("bob", conformanceCredentials(2)), {
        code: "storage/busy",
        retryable: true,
        message:
          `Cannot add an account to the built-in store ${path}: another process holds it locked`,
      });
      other.exec("ROLLBACK");
      await users.add("bob", conformanceCredentials(2));
    } finally {
      other.close();
    }
  }));

Deno.test("InternalStore refuses a file that is not a database, and leaves it unchanged", () =>
  withPath(async (path) => {
    await Deno.writeTextFile(path, "This is a letter, not a database. ".repeat(100));
    assert.throws(() => new InternalStore({ path }), {
      code: "storage/corrupt",
      message: `Cannot open the built-in store ${path}: it is not a database`,
    });
    assert.equal((await Deno.readTextFile(path)).length, 3400);
  }));

Deno.test("InternalStore reports damage inside the file", () =>
  withPath(async (path) => {
    {
      using store = new InternalStore({ path });
      const users = store.users("example.com");
      for (let i = 0; i < 100; i++) await users.add(`user${i}`, conformanceCredentials(i));
    }
    const bytes = await Deno.readFile(path);
    bytes.fill(0xff, 4096); // the header stays, so the file is still a database, but damaged
    await Deno.writeFile(path, bytes);
    await assert.rejects(async () => {
      using store = new InternalStore({ path });
      await store.users("example.com").list();
    }, { code: "storage/corrupt" });
  }));

Deno.test("InternalStore names a missing directory", () =>
  withPath((path) => {
    const inside = join(path, "deeper", "store.sqlite");
    assert.throws(() => new InternalStore({ path: inside }), {
      code: "storage/cannot-open",
      message: new RegExp(`^Cannot open the built-in store ${inside}: .*`),
    });
  }));

Deno.test("InternalStore.close() may be called twice, and its accounts reject from then on", () =>
  withPath(async (path) => {
    const store = new InternalStore({ path });
    const users = store.users("example.com");
    store.close();
    store.close();
    await assert.rejects(users.exists("alice"), { code: "storage/failed" });
  }));

Deno.test("SqliteUserStore reports a full disk, keeps its data, and goes on when there is room", () =>
  withPath(async (path) => {
    new InternalStore({ path }).close();
    const database = new DatabaseSync(path);
    try {
      const { page_count: pages } = database.prepare("PRAGMA page_count").get()!;
      database.exec(`PRAGMA max_page_count = ${Number(pages) + 1}`);
      const users = new SqliteUserStore(database, "example.com", path);
      let added = 0;
      await assert.rejects(async () => {
        for (; added < 1000; added++) await users.add(`u${added}`, conformanceCredentials(1));
      }, {
        code: "storage/full",
        retryable: true,
        message: `Cannot add an account to the built-in store ${path}: the disk is full`,
      });
      assert.ok(added > 0);
      assert.equal((await users.list()).length, added);
      database.exec("PRAGMA max_page_count = 1000");
      await users.add("late", conformanceCredentials(1));
      assert.equal((await users.list()).length, added + 1);
    } finally {
      database.close();
    }
  }));

Deno.test("SqliteUserStore reports a read-only store, and still reads", () =>
  withPath(async (path) => {
    new InternalStore({ path }).close();
    const database = new DatabaseSync(path);
    try {
      const users = new SqliteUserStore(database, "example.com", path);
      await users.add("alice", conformanceCredentials(1));
      database.exec("PRAGMA query_only = 1");
      await assert.rejects(users.remove("alice"), {
        code: "storage/read-only",
        message: `Cannot remove an account from the built-in store ${path}: it is read-only`,
      });
      assert.equal(await users.exists("alice"), true);
    } finally {
      database.close();
    }
  }));

Deno.test("migrate() goes from each older version to the newest and keeps the data", () =>
  withPath((path) => {
    const later = [...MIGRATIONS, "ALTER TABLE users ADD COLUMN note TEXT"];
    const database = new DatabaseSync(path);
    try {
      migrate(database, path);
      database.exec(
        "INSERT INTO users VALUES ('example.com', 'alice', x'01', 1, x'', x'', x'02', 2, x'', x'')",
      );
      migrate(database, path, later);
      migrate(database, path, later);
      assert.deepEqual({ ...database.prepare("SELECT localpart, note FROM users").get() }, {
        localpart: "alice",
        note: null,
      });
      assert.deepEqual(
        database.prepare("SELECT version FROM schema_version").all().map((row) => row["version"]),
        [later.length],
      );
    } finally {
      database.close();
    }
  }));

Deno.test("migrate() changes nothing when a step fails", () =>
  withPath((path) => {
    const database = new DatabaseSync(path);
    try {
      migrate(database, path);
      const broken = [...MIGRATIONS, "CREATE TABLE extra (a)", "CREATE TABLE users (b)"];
      assert.throws(() => migrate(database, path, broken), /users already exists/);
      assert.equal(
        database.prepare("SELECT name FROM sqlite_master WHERE name = 'extra'").get(),
        undefined,
      );
      migrate(database, path);
    } finally {
      database.close();
    }
  }));

Deno.test("InternalStore refuses the schema of a newer version", () =>
  withPath((path) => {
    const database = new DatabaseSync(path);
    migrate(database, path, [...MIGRATIONS, "CREATE TABLE extra (a)"]);
    database.close();
    assert.throws(() => new InternalStore({ path }), {
      code: "storage/schema-too-new",
      message: `Cannot use the built-in store ${path}: its schema has version ${
        MIGRATIONS.length + 1
      }, and this program knows versions up to ${MIGRATIONS.length}`,
    });
  }));
