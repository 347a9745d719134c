import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { mock } from "node:test";
import { InternalStore } from "./internal_store.ts";
import { SQLITE, SqliteConnection } from "./sql/engines/sqlite.ts";
import { prepareSchema } from "./sql/schema.ts";
import { assertSearched, noteStatement } from "./sql/testing/explained.ts";
import type { SentStatements } from "./sql/testing/explained.ts";
import { MAX_UNARCHIVED } from "./room_outbox.ts";
import { withPath } from "./sql/testing/sqlite.ts";
import { rosterStoreConformance } from "./testing/roster_store_conformance.ts";
import { lastStoreConformance } from "./testing/last_store_conformance.ts";
import { manyResourcesConformance } from "./testing/many_resources_conformance.ts";
import { privacyStoreConformance } from "./testing/privacy_store_conformance.ts";
import { offlineStoreConformance } from "./testing/offline_store_conformance.ts";
import { privateStoreConformance } from "./testing/private_store_conformance.ts";
import { archiveStoreConformance } from "./testing/archive_store_conformance.ts";
import { largeArchiveConformance } from "./testing/large_archive_conformance.ts";
import { pepStoreConformance } from "./testing/pep_store_conformance.ts";
import { roomArchiveConformance } from "./testing/room_archive_conformance.ts";
import { roomStoreConformance } from "./testing/room_store_conformance.ts";
import { mucStoreConformance } from "./testing/muc_store_conformance.ts";
import { subscriptionRequestStoreConformance } from "./testing/subscription_request_store_conformance.ts";
import {
  conformanceCredentials,
  keysOf,
  userStoreConformance,
} from "./testing/user_store_conformance.ts";
import { vcardStoreConformance } from "./testing/vcard_store_conformance.ts";

const sent: SentStatements = new Map();
const { execute } = SqliteConnection.prototype;
mock.method(
  SqliteConnection.prototype,
  "execute",
  function (this: SqliteConnection, sql: string, values: readonly unknown[] = []) {
    noteStatement(sent, sql, values);
    return execute.call(this, sql, values);
  },
);

/** Opens a store in a directory of its own. */
async function open() {
  const directory = await Deno.makeTempDir({ prefix: "causeway-store-" });
  const store = await InternalStore.open({ path: join(directory, "store.sqlite") });
  return {
    users: store.users.bind(store),
    requests: store.subscriptionRequests.bind(store),
    rosters: store.rosters.bind(store),
    privateStorage: store.privateStorage.bind(store),
    vcards: store.vcards.bind(store),
    lastLogouts: store.lastLogouts.bind(store),
    privacyLists: store.privacyLists.bind(store),
    offlineMessages: store.offlineMessages.bind(store),
    pep: store.pep.bind(store),
    archives: store.archives.bind(store),
    rooms: store.rooms.bind(store),
    muc: store.muc.bind(store),
    roomNames: store.roomNames.bind(store),
    async [Symbol.asyncDispose]() {
      await store.close();
      await Deno.remove(directory, { recursive: true });
    },
  };
}

userStoreConformance("InternalStore", open);
subscriptionRequestStoreConformance("InternalStore", open);
rosterStoreConformance("InternalStore", open);
privateStoreConformance("InternalStore", open);
vcardStoreConformance("InternalStore", open);
lastStoreConformance("InternalStore", open);
privacyStoreConformance("InternalStore", open);
offlineStoreConformance("InternalStore", open);
pepStoreConformance("InternalStore", open);
archiveStoreConformance("InternalStore", open);
roomArchiveConformance("InternalStore", open);
roomStoreConformance("InternalStore", open);
mucStoreConformance("InternalStore", open);
manyResourcesConformance("InternalStore", open);
largeArchiveConformance("InternalStore", open);

Deno.test("InternalStore: every statement of every store finds its rows by an index", async () => {
  assert.ok(sent.size > 0);
  const connection = new SqliteConnection(new DatabaseSync(":memory:"));
  await prepareSchema(SQLITE, connection, "the test's store");
  await assertSearched(connection, sent);
  connection.destroy();
});

Deno.test("InternalStore keeps accounts when it is closed and opened again", () =>
  withPath(async (path) => {
    {
      await using store = await InternalStore.open({ path });
      await store.users("example.com").add("alice", conformanceCredentials(1));
    }
    await using store = await InternalStore.open({ path });
    assert.deepEqual(
      await keysOf(store.users("example.com"), "alice"),
      conformanceCredentials(1),
    );
  }));

Deno.test("InternalStore.secret() makes a secret once for each name, and shares it", () =>
  withPath(async (path) => {
    let first: Uint8Array;
    {
      await using store = await InternalStore.open({ path });
      await using other = await InternalStore.open({ path });
      first = await store.secret("one");
      assert.equal(first.length, 32);
      assert.deepEqual(await other.secret("one"), first);
      assert.notDeepEqual(await other.secret("other"), first);
      const moved = new Uint8Array(32).fill(7);
      assert.deepEqual(await other.secret("moved", moved), moved);
      assert.deepEqual(await store.secret("one", moved), first, "one that is there stays");
    }
    await using again = await InternalStore.open({ path });
    assert.deepEqual(await again.secret("one"), first);
  }));

Deno.test("InternalStore creates files that only their owner can read", () =>
  withPath(async (path) => {
    await using store = await InternalStore.open({ path });
    await store.users("example.com").add("alice", conformanceCredentials(1));
    for (const file of [path, `${path}-wal`, `${path}-shm`]) {
      assert.equal((Deno.statSync(file).mode! & 0o777).toString(8), "600", file);
    }
  }));

Deno.test("InternalStore shares its data with other objects that have the file open", () =>
  withPath(async (path) => {
    await using node = await InternalStore.open({ path });
    await using command = await InternalStore.open({ path });
    await command.users("example.com").add("alice", conformanceCredentials(1));
    assert.equal(await node.users("example.com").exists("alice"), true);
    await node.users("example.com").remove("alice");
    assert.equal(await command.users("example.com").exists("alice"), false);
  }));

Deno.test("InternalStore reads while another process writes, and reports a lock it cannot get", () =>
  withPath(async (path) => {
    await using store = await InternalStore.open({ path, busyTimeoutMs: 1 });
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
    await assert.rejects(InternalStore.open({ path }), {
      code: "storage/corrupt",
      message: `Cannot open the built-in store ${path}: it is not a database`,
    });
    assert.equal((await Deno.readTextFile(path)).length, 3400);
  }));

Deno.test("InternalStore reports damage inside the file", () =>
  withPath(async (path) => {
    {
      await using store = await InternalStore.open({ path });
      const users = store.users("example.com");
      for (let i = 0; i < 100; i++) await users.add(`user${i}`, conformanceCredentials(i));
    }
    const bytes = await Deno.readFile(path);
    bytes.fill(0xff, 4096); // the header stays, so the file is still a database, but damaged
    await Deno.writeFile(path, bytes);
    await assert.rejects(async () => {
      await using store = await InternalStore.open({ path });
      await store.users("example.com").list();
    }, { code: "storage/corrupt" });
  }));

Deno.test("InternalStore names a missing directory", () =>
  withPath(async (path) => {
    const inside = join(path, "deeper", "store.sqlite");
    await assert.rejects(InternalStore.open({ path: inside }), {
      code: "storage/cannot-open",
      message: new RegExp(`^Cannot open the built-in store ${inside}: .*`),
    });
  }));

Deno.test("InternalStore.close() may be called twice, and its accounts reject from then on", () =>
  withPath(async (path) => {
    const store = await InternalStore.open({ path });
    const users = store.users("example.com");
    await store.close();
    await store.close();
    await assert.rejects(users.exists("alice"), { code: "storage/closed" });
  }));

Deno.test("InternalStore refuses the schema of a newer version", () =>
  withPath(async (path) => {
    await (await InternalStore.open({ path })).close();
    const database = new DatabaseSync(path);
    database.exec("INSERT INTO causeway_schema VALUES (99, 'x', 1)");
    await (await InternalStore.open({ path })).close(); // it only adds, as far as this program is told
    database.exec("UPDATE causeway_schema_floor SET lowest = 99");
    database.close();
    await assert.rejects(InternalStore.open({ path }), {
      code: "storage/schema-too-new",
      message: `Cannot use the built-in store ${path}: its schema has version 99, and this ` +
        "program knows versions up to 17; use the newer program",
    });
  }));

Deno.test("InternalStore refuses the file of another program, and leaves it unchanged", () =>
  withPath(async (path) => {
    const database = new DatabaseSync(path);
    database.exec("CREATE TABLE users (name TEXT)");
    database.close();
    await assert.rejects(InternalStore.open({ path }), {
      code: "storage/schema-foreign",
      message: `Cannot use the built-in store ${path}: it has a table users that is not ours; ` +
        "give Causeway an empty database",
    });
    using again = new DatabaseSync(path);
    assert.equal(again.prepare("SELECT COUNT(*) AS tables FROM sqlite_master").get()!["tables"], 1);
  }));

Deno.test("a room takes no message while its archive lacks MAX_UNARCHIVED of them", () =>
  withPath(async (path) => {
    await using store = await InternalStore.open({ path });
    const rooms = store.muc("conference.example.com");
    const room = "coven@conference.example.com";
    const creation = await rooms.create(room, {
      config: "{}",
      isListed: true,
      affiliates: [],
      creator: "alice@example.com",
      maxCreated: 1,
    }) as number;
    const message = (id: string) => ({
      id,
      sentAtMs: 1,
      stanza: "<m/>",
      keep: 1,
      isArchived: true,
    });
    const first = (await rooms.post(room, message("a")))!;
    const database = new DatabaseSync(path);
    database.exec(`UPDATE muc_rooms SET last_number = ${first + MAX_UNARCHIVED - 2}`);
    database.close();
    const last = (await rooms.post(room, message("b")))!;
    await assert.rejects(rooms.post(room, message("c")), { code: "storage/overloaded" });
    assert.equal(await rooms.post(room, message("b")), last, "it has been taken already");
    assert.ok(await rooms.markArchived(room, { creation, number: first }));
    assert.equal(await rooms.post(room, message("c")), last + 1);
  }));

Deno.test("a room takes messages for its archive after more without one than MAX_UNARCHIVED", () =>
  withPath(async (path) => {
    await using store = await InternalStore.open({ path });
    const rooms = store.rooms("muclight.example.com");
    const [room, alice] = ["coven@muclight.example.com", "alice@example.com"];
    const occupants = [{ jid: alice, affiliation: "owner" as const }];
    const creation = (await rooms.create(room, { config: "{}", occupants }))!;
    const take = async (id: string) => {
      const message = { id, sentAtMs: 1, stanza: "<m/>", keep: 1, isArchived: true };
      return (await rooms.takeNumber(room, alice, message))?.number;
    };
    const skip = (last: number) => {
      using database = new DatabaseSync(path);
      database.exec(`UPDATE muc_light_rooms SET last_number = ${last}`);
    };
    skip(creation + MAX_UNARCHIVED + 1); // numbers of messages while there was no archive
    await rooms.takeNumber(room, alice);
    const first = creation + MAX_UNARCHIVED + 3;
    assert.equal(await take("a"), first);
    skip(first + MAX_UNARCHIVED - 2);
    assert.equal(await take("b"), first + MAX_UNARCHIVED - 1);
    await assert.rejects(take("c"), { code: "storage/overloaded" });
    assert.ok(await rooms.markArchived(room, { creation, number: first }));
    assert.equal(await take("c"), first + MAX_UNARCHIVED);
  }));
