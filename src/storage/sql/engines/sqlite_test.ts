import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import type { SQLInputValue, StatementSync } from "node:sqlite";
import { deriveScramCredentials } from "../../../xmpp/sasl/mod.ts";
import { InternalStore } from "../../internal_store.ts";
import { conformanceArchived } from "../../testing/archive_store_conformance.ts";
import { conformanceRequest } from "../../testing/subscription_request_store_conformance.ts";
import { conformanceCredentials, keysOf } from "../../testing/user_store_conformance.ts";
import { BreakableStore, withPath } from "../testing/sqlite.ts";
import { prepareSchema } from "../schema.ts";
import { SqlArchiveStore } from "../sql_archive_store.ts";
import { SqlDatabase } from "../sql_database.ts";
import { SqlSubscriptionRequestStore } from "../sql_subscription_request_store.ts";
import { SqlUserStore } from "../sql_user_store.ts";
import { SQLITE, SqliteConnection } from "./sqlite.ts";

Deno.test("a full disk is reported, keeps the data, and is used again when there is room", () =>
  withPath(async (path) => {
    await using store = await BreakableStore.open(path);
    const { page_count: pages } = store.raw.prepare("PRAGMA page_count").get()!;
    store.raw.exec(`PRAGMA max_page_count = ${Number(pages) + 1}`);
    const users = new SqlUserStore(store.database, "example.com");
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
    store.raw.exec("PRAGMA max_page_count = 1000");
    await users.add("late", conformanceCredentials(1));
    assert.equal((await users.list()).length, added + 1);
  }));

Deno.test("a full disk in the middle of a transaction leaves nothing half-written", () =>
  withPath(async (path) => {
    await using store = await BreakableStore.open(path);
    const requests = new SqlSubscriptionRequestStore(store.database);
    const { page_count: pages } = store.raw.prepare("PRAGMA page_count").get()!;
    store.raw.exec(`PRAGMA max_page_count = ${Number(pages) + 2}`);
    const changes = Array.from({ length: 100 }, (_, i) => ({
      kind: "keep" as const,
      request: conformanceRequest(`user${i}@example.com`, "bob@example.com", {
        text: "x".repeat(1000),
      }),
    }));
    await assert.rejects(requests.change(changes), { code: "storage/full" });
    assert.equal(await requests.count(), 0);
    await requests.change(changes.slice(0, 1));
    assert.equal(await requests.count(), 1);
  }));

Deno.test("a read-only store is reported, and still reads", () =>
  withPath(async (path) => {
    await using store = await BreakableStore.open(path);
    const users = new SqlUserStore(store.database, "example.com");
    await users.add("alice", conformanceCredentials(1));
    store.raw.exec("PRAGMA query_only = 1");
    await assert.rejects(users.remove("alice"), {
      code: "storage/read-only",
      message: `Cannot remove an account from the built-in store ${path}: it is read-only`,
    });
    assert.equal(await users.exists("alice"), true);
    // The first step of a new account, and the one that an operator reads of.
    await assert.rejects(new SqlArchiveStore(store.database).closeUnowned("bob@example.com"), {
      code: "storage/read-only",
      message: `Cannot add an account to the built-in store ${path}: it is read-only`,
    });
  }));

Deno.test("a message that is too large fails by name, and leaves nothing of its batch", async () => {
  await using store = await BreakableStore.open();
  // SQLite's own bound of a value, of which the driver's types know nothing.
  const { limits } = store.raw as DatabaseSync & { readonly limits: { length: number } };
  limits.length = 100_000;
  const archives = new SqlArchiveStore(store.database);
  const [one, large, three] = [
    conformanceArchived(1),
    conformanceArchived(2, { text: "x".repeat(100_001) }),
    conformanceArchived(3),
  ] as const;
  const { archive, sentAtMs } = one;
  const stored = async () => {
    const page = await archives.read(archive, {}, { limit: 9, from: "start" });
    return page?.messages.map(({ sequence }) => sequence);
  };
  for (const batch of [[one, large, three], [large]]) {
    await assert.rejects(archives.append(batch, sentAtMs), {
      code: "storage/value-too-large",
      retryable: false,
    });
    assert.deepEqual(await stored(), []);
  }
  assert.deepEqual(await archives.append([one, three], sentAtMs), ["stored", "stored"]);
  assert.deepEqual(await stored(), [1, 3]);
});

/** Records in `steps` the statements of a database, and the shape of the rows that it returns. */
function watched(database: DatabaseSync, steps: string[]): DatabaseSync {
  const prepare = (sql: string): StatementSync => {
    const statement = database.prepare(sql);
    const all = statement.all.bind(statement);
    statement.all = (...values: unknown[]) => {
      const rows = all(...values as SQLInputValue[]);
      steps.push(`all ${sql}`);
      for (const [column, value] of rows.flatMap((row) => Object.entries(row))) {
        steps.push(
          value instanceof Uint8Array
            ? `${column}: ${value.length} bytes`
            : `${column}: ${typeof value}`,
        );
      }
      return rows;
    };
    return statement;
  };
  return new Proxy(database, {
    get: (target, name) => {
      if (name === "prepare") return prepare;
      const value = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

Deno.test("SqlUserStore.credentials() takes the same steps for names without an account", async () => {
  const steps: string[] = [];
  const connection = new SqliteConnection(watched(new DatabaseSync(":memory:"), steps));
  await prepareSchema(SQLITE, connection, ":memory:");
  const database = new SqlDatabase({
    dialect: SQLITE,
    place: ":memory:",
    connect: () => Promise.resolve(connection),
    bounds: { workers: 1, statementTimeoutMs: Infinity },
  });
  try {
    const users = new SqlUserStore(database, "example.com");
    const elsewhere = new SqlUserStore(database, "example.org");
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
    assert.equal(
      expected.length,
      1 + 1 + 8 + 1,
      "one row with its key, its secrets and its creation",
    );
    for (const name of ["", "alice", "bobb", "carol", "zoe", "\u{10ffff}", "dave\0"]) {
      assert.deepEqual(await stepsFor(name), [false, expected], name);
    }
    for (const name of ["bob", "zoe"]) {
      assert.deepEqual(await stepsFor(name, elsewhere), [false, expected], name);
    }
  } finally {
    await database.close();
  }
});

/** The statements of built-in stores before the schema had files, one for each version. */
const EARLIER_STATEMENTS = [
  `CREATE TABLE users (
    domainpart TEXT NOT NULL, localpart TEXT NOT NULL,
    sha1_salt BLOB NOT NULL, sha1_iterations INTEGER NOT NULL,
    sha1_stored_key BLOB NOT NULL, sha1_server_key BLOB NOT NULL,
    sha256_salt BLOB NOT NULL, sha256_iterations INTEGER NOT NULL,
    sha256_stored_key BLOB NOT NULL, sha256_server_key BLOB NOT NULL,
    PRIMARY KEY (domainpart, localpart)) STRICT, WITHOUT ROWID`,
  "CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID",
  `CREATE TABLE subscription_requests (
    id INTEGER PRIMARY KEY AUTOINCREMENT, requester TEXT NOT NULL, contact TEXT NOT NULL,
    sender TEXT NOT NULL, stanza BLOB NOT NULL, origin TEXT NOT NULL, process INTEGER NOT NULL,
    sequence INTEGER NOT NULL, UNIQUE (contact, requester)) STRICT`,
  "CREATE INDEX subscription_requests_by_sender ON subscription_requests (sender)",
  `INSERT INTO users VALUES (char(0x10ffff), '', zeroblob(16), 1, zeroblob(20), zeroblob(20),
    zeroblob(16), 1, zeroblob(32), zeroblob(32))`,
];

/** Makes the file of an earlier version with alice's account in it. */
function makeEarlier(path: string, version: number): void {
  const database = new DatabaseSync(path);
  database.exec("CREATE TABLE schema_version (version INTEGER NOT NULL) STRICT");
  for (const sql of EARLIER_STATEMENTS.slice(0, version)) database.exec(sql);
  database.prepare("INSERT INTO schema_version VALUES (?)").run(version);
  const { sha1, sha256 } = conformanceCredentials(1);
  database.prepare("INSERT INTO users VALUES ('example.com', 'alice', ?, ?, ?, ?, ?, ?, ?, ?)").run(
    ...[sha1.salt, sha1.iterations, sha1.storedKey, sha1.serverKey],
    ...[sha256.salt, sha256.iterations, sha256.storedKey, sha256.serverKey],
  );
  if (version >= 3) {
    const { stanza } = conformanceRequest("carol@example.com", "bob@example.com");
    database.prepare(
      `INSERT INTO subscription_requests (requester, contact, sender, stanza, origin, process,
        sequence) VALUES ('carol@example.com', 'bob@example.com', 'carol@example.com', ?,
        'dc1.example.com', ?, 7)`,
    ).run(stanza, 2 ** 52 - 1);
  }
  database.close();
}

Deno.test("a built-in store of each earlier version keeps its accounts and requests", async () => {
  for (let version = 1; version <= EARLIER_STATEMENTS.length; version++) {
    await withPath(async (path) => {
      makeEarlier(path, version);
      for (let opened = 0; opened < 2; opened++) {
        await using store = await InternalStore.open({ path });
        const users = store.users("example.com");
        assert.deepEqual(await users.list(), ["alice"], `version ${version}`);
        assert.deepEqual(await keysOf(users, "alice"), conformanceCredentials(1));
        assert.equal(await users.credentials("zoe"), undefined);
        assert.deepEqual(
          await store.subscriptionRequests().ofContact("bob@example.com"),
          version >= 3 ? [conformanceRequest("carol@example.com", "bob@example.com")] : [],
        );
      }
    });
  }
});
