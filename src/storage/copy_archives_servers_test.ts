import assert from "node:assert/strict";
import { join } from "node:path";
import { ELASTICSEARCH_8 } from "../../harness/databases/mod.ts";
import { archiveKeyOf, roomArchiveKeyOf } from "./archive_store.ts";
import type { ArchiveStore } from "./archive_store.ts";
import { cassandraDuringTests, cassandraPool } from "./cassandra/testing/server.ts";
import { copyData, refuseEmptySource } from "./copy_data.ts";
import type { CopyOptions } from "./copy_data.ts";
import type { DataStores } from "./data_stores.ts";
import { serverKindOf } from "./server_kinds.ts";
import type { ServerPoolOptions } from "./server_pools.ts";
import { searchServerDuringTests } from "./elastic/testing/search_servers.ts";
import { InternalStore } from "./internal_store.ts";
import { sqlServerDatabase } from "./sql/sql_server.ts";
import { SqlStores } from "./sql/sql_stores.ts";
import { preparedDatabase } from "./sql/testing/databases.ts";
import { SERVER_KINDS, serverDuringTests } from "./sql/testing/servers.ts";
import type { StoresOptions } from "./stores.ts";
import { sqlServerOf } from "./database_pools.ts";
import {
  archiveContentOf,
  fillArchive,
  filledMessage,
  filledRoomMessage,
  roomArchiveContentOf,
} from "./testing/filled_archives.ts";
import { conformanceCredentials } from "./testing/user_store_conformance.ts";

const POSTGRESQL = SERVER_KINDS.find(({ driver }) => driver === "pgsql")!;
const sql = serverDuringTests(POSTGRESQL);
const cassandra = cassandraDuringTests();
const search = searchServerDuringTests(ELASTICSEARCH_8);

const NAMES = ["alice", "bob", "\u00fcnal"];
const ROOMS = { muc: "hall@conference.example.com", light: "coven@muclight.example.com" };
/** More than some pages, and than a bucket of Cassandra. */
const MANY = 2_500;
/** Messages of the archives of both rooms. */
const OF_ROOMS = 700 + 20;

/** A built-in store, and the servers, all empty. */
class Databases implements AsyncDisposable {
  readonly options: StoresOptions;
  readonly archives: string[] = [];
  readonly roomArchives: string[] = [];
  readonly #directory: string;
  readonly #closing: (() => Promise<void>)[] = [];

  private constructor(directory: string, options: StoresOptions) {
    this.#directory = directory;
    this.options = options;
  }

  static async make(): Promise<Databases> {
    const directory = await Deno.makeTempDir({ prefix: "causeway-copy-" });
    const { address } = await preparedDatabase(sql());
    const { driver } = sql().kind;
    await using _emptied = await cassandra.open();
    await search().empty();
    const databases = new Databases(directory, {
      internal: { path: join(directory, "store.sqlite") },
      pools: new Map([["people", { scope: "global", driver, address, bounds: {} }]]),
      users: new Map([["example.com", { backend: "rdbms", pool: "people" }]]),
      serverPools: new Map<string, ServerPoolOptions>([
        ["cassandra.old", cassandraPool(cassandra.server().port)],
        ["elastic.new", search().pool()],
        // Other names of the same servers.
        ["cassandra.again", cassandraPool(cassandra.server().port, { consistency: "quorum" })],
        ["elastic.again", search().pool()],
      ]),
    });
    const stores = await databases.#sql();
    const users = stores.users("example.com");
    for (const [i, name] of NAMES.entries()) await users.add(name, conformanceCredentials(i));
    for (const [name, creation] of await users.existing(NAMES)) {
      databases.archives.push(archiveKeyOf(`${name}@example.com`, creation));
    }
    const [first, second] = databases.archives;
    await fillArchive(stores.archives(), first!, { count: MANY });
    await fillArchive(stores.archives(), second!, { count: 3 });
    await stores.archives().setPreferences(second!, {
      byDefault: "never",
      always: ["bob@example.com"],
      never: [],
    });
    const owner = { jid: "alice@example.com", affiliation: "owner" } as const;
    const [hall, coven] = [
      await stores.muc("conference.example.com").create(ROOMS.muc, {
        config: "{}",
        isListed: true,
        affiliates: [{ ...owner, reason: "" }],
        creator: owner.jid,
        maxCreated: 1,
      }) as number,
      await stores.rooms("muclight.example.com").create(ROOMS.light, {
        config: "{}",
        occupants: [owner],
      }),
    ];
    const message = filledRoomMessage;
    databases.roomArchives.push(
      roomArchiveKeyOf(ROOMS.muc, { creation: hall }),
      roomArchiveKeyOf(ROOMS.light, { creation: coven! }),
    );
    for (const [i, count] of [700, 20].entries()) {
      await fillArchive(stores.archives(), databases.roomArchives[i]!, { count, message });
    }
    return databases;
  }

  /** Opens the archives of people in a backend. */
  async open(name: string): Promise<ArchiveStore> {
    return (await this.#stores(name)).archives!();
  }

  /** Opens the archives of rooms in a backend. */
  async openRooms(name: string): Promise<ArchiveStore> {
    const stores = await this.#stores(name);
    return stores.roomArchives?.() ?? stores.archives!();
  }

  async contentOf(store: ArchiveStore): Promise<unknown> {
    return await Promise.all(this.archives.map((archive) => archiveContentOf(store, archive)));
  }

  async contentOfRooms(name: string): Promise<unknown> {
    const store = await this.openRooms(name);
    return await Promise.all(this.roomArchives.map((each) => roomArchiveContentOf(store, each)));
  }

  async copy(from: string, to: string, options: Partial<CopyOptions> = {}) {
    return (await this.copyBoth(from, to, options))[0]!;
  }

  /** Copies archives of people and of rooms. */
  async copyBoth(from: string, to: string, options: Partial<CopyOptions> = {}) {
    return await copyData(this.options, { kind: "mam", from, to, ...options });
  }

  async #stores(name: string): Promise<DataStores> {
    if (name === "rdbms.people") return await this.#sql();
    if (name === "internal") {
      const stores = await InternalStore.open(this.options.internal);
      this.#closing.push(() => stores.close());
      return stores;
    }
    const options = this.options.serverPools!.get(name)!;
    const stores = serverKindOf(options).open({ name, options });
    this.#closing.push(() => stores.close());
    return stores;
  }

  async #sql(): Promise<SqlStores> {
    const server = sqlServerOf("people", this.options.pools.get("people")!);
    const stores = new SqlStores(sqlServerDatabase(server));
    this.#closing.push(() => stores.close());
    await stores.probe();
    return stores;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#closing) await close();
    await Deno.remove(this.#directory, { recursive: true });
  }
}

Deno.test("refuseEmptySource() looks for archives of people and of rooms, wherever they are", async () => {
  await using databases = await Databases.make();
  const refused = async (from: string, to: string) => {
    const options = { from, to, kinds: ["mam"] } as const;
    return await refuseEmptySource(databases.options, options).then(() => "", ({ code }) => code);
  };
  const empty = "storage/empty-source";
  assert.equal(await refused("rdbms.people", "cassandra.old"), "");
  assert.equal(await refused("cassandra.old", "rdbms.people"), empty);
  assert.equal(await refused("cassandra.old", "elastic.new"), "", "there is nothing to lose");
  const [person, room] = [databases.archives[0]!, databases.roomArchives[0]!];
  await fillArchive(await databases.open("cassandra.old"), person, { count: 1 });
  assert.equal(await refused("cassandra.old", "rdbms.people"), "");
  assert.equal(await refused("elastic.new", "cassandra.old"), empty);
  const message = filledRoomMessage;
  await fillArchive(await databases.openRooms("elastic.new"), room, { count: 1, message });
  assert.equal(await refused("elastic.new", "cassandra.old"), "");
});

Deno.test("copyData() takes archives from PostgreSQL to Cassandra, Elasticsearch and SQLite, and back", async () => {
  await using databases = await Databases.make();
  const source = await databases.open("rdbms.people");
  const content = await databases.contentOf(source);
  const first = await databases.copy("rdbms.people", "cassandra.old");
  assert.deepEqual([first.table, first.added, first.source.units], [
    "archives",
    MANY + 3,
    MANY + 3,
  ]);
  const { checksum } = first.source;
  const way = ["rdbms.people", "cassandra.old", "elastic.new", "internal"];
  for (const [i, to] of way.slice(1).entries()) {
    const report = await databases.copy(way[i]!, to);
    assert.deepEqual(
      [report.source.checksum, report.destination.checksum],
      [checksum, checksum],
      `${way[i]} to ${to}`,
    );
    assert.deepEqual(await databases.contentOf(await databases.open(to)), content, to);
  }
  const words = await databases.open("elastic.new");
  assert.equal(await words.count(databases.archives[0]!, { text: "fifth" }, 1_000), MANY / 5);

  // A record changes meanwhile: the last pass takes it.
  const archive = databases.archives[0]!;
  const late = await databases.open("internal");
  await late.append([filledMessage(archive, MANY)], 2e12);
  await late.setPreferences(databases.archives[1]!, { byDefault: "roster", always: [], never: [] });
  const back = ["internal", "elastic.new", "cassandra.old", "rdbms.people"];
  for (const [i, to] of back.slice(1).entries()) {
    const report = await databases.copy(back[i]!, to, { differing: "mirror" });
    assert.deepEqual(report.source, report.destination, `${back[i]} to ${to}`);
    assert.deepEqual([report.added, report.same, report.removed], [1, MANY + 3, 0]);
    assert.notEqual(report.source.checksum, checksum);
  }
  assert.deepEqual(await databases.contentOf(source), await databases.contentOf(late));
});

Deno.test("copyData() takes archives of rooms to Cassandra, Elasticsearch and SQLite, and back", async () => {
  await using databases = await Databases.make();
  const [hall] = databases.roomArchives;
  const content = await databases.contentOfRooms("rdbms.people");
  const stop = new Error("killed");
  await assert.rejects(
    databases.copyBoth("rdbms.people", "cassandra.old", {
      progress(table, done) {
        if (table === "room_archives" && done >= 256) throw stop;
      },
    }),
    stop,
  );
  const [, begun] = await databases.copyBoth("rdbms.people", "cassandra.old");
  assert.equal(begun!.table, "room_archives");
  assert.ok(begun!.same >= 256 && begun!.added > 0, "it goes on behind what was copied");
  assert.equal(begun!.same + begun!.added, OF_ROOMS);
  const { source: { checksum } } = begun!;
  const way = ["rdbms.people", "cassandra.old", "elastic.new", "internal"];
  for (const [i, to] of way.slice(1).entries()) {
    const [, rooms] = await databases.copyBoth(way[i]!, to);
    for (const side of [rooms!.source, rooms!.destination]) {
      assert.deepEqual(side, { units: OF_ROOMS, checksum }, `${way[i]} to ${to}`);
    }
    assert.deepEqual(await databases.contentOfRooms(to), content, to);
  }
  const words = await databases.openRooms("elastic.new");
  assert.equal(await words.count(hall!, { text: "fifth" }, 1_000), 700 / 5);

  // The rooms go on: the last pass takes what came, and removes what has become too old.
  const live = await databases.openRooms("internal");
  await live.append([filledRoomMessage(hall!, 700)], 2e12);
  const { sentAtMs } = filledRoomMessage(hall!, 5);
  assert.equal(
    await live.removeBefore({ sentBeforeMs: sentAtMs, host: "conference.example.com" }, 100),
    5,
  );
  const back = ["internal", "elastic.new", "cassandra.old", "rdbms.people"];
  for (const [i, to] of back.slice(1).entries()) {
    const [people, rooms] = await databases.copyBoth(back[i]!, to, { differing: "mirror" });
    assert.deepEqual([people!.added, people!.removed], [0, 0], "those of people are untouched");
    assert.deepEqual(rooms!.source, rooms!.destination, `${back[i]} to ${to}`);
    assert.deepEqual([rooms!.added, rooms!.same, rooms!.removed], [1, OF_ROOMS - 5, 5]);
  }
  assert.deepEqual(
    await databases.contentOfRooms("rdbms.people"),
    await databases.contentOfRooms("internal"),
  );
});

Deno.test("copyData() replaces the archives of both accounts that have one name", async () => {
  await using databases = await Databases.make();
  const [ofThird] = databases.archives.slice(2);
  const users = await InternalStore.open(databases.options.internal);
  // Six archives are copied at once: with three more, the other one of the name comes behind those.
  for (const name of ["a", "b", "c", NAMES[2]!]) {
    await users.users("example.com").add(name, conformanceCredentials(7));
  }
  const creation = (await users.users("example.com").existing(NAMES)).get(NAMES[2]!)!;
  await users.close();
  const archives = [ofThird!, archiveKeyOf(`${NAMES[2]}@example.com`, creation)];
  assert.notEqual(archives[0], archives[1]);
  const [from, to] = [await databases.open("internal"), await databases.open("rdbms.people")];
  for (const [i, archive] of archives.entries()) {
    await fillArchive(from, archive, { from: 1_000 * i, count: 300 });
  }
  await fillArchive(to, archives[1]!, { from: 5_000, count: 1 });
  await databases.copy("internal", "rdbms.people", { differing: "replace" });
  for (const archive of archives) {
    assert.deepEqual(await archiveContentOf(to, archive), await archiveContentOf(from, archive));
  }
});

Deno.test({
  name: "copyData() of archives is continued after the server was killed",
  // The server of the file ends within the test, and starts again.
  sanitizeOps: false,
  sanitizeResources: false,
  async fn() {
    await using databases = await Databases.make();
    const source = await databases.open("rdbms.people");
    await databases.copy("rdbms.people", "internal");
    for (const name of NAMES) await source.removeAll(`${name}@example.com`);
    await assert.rejects(
      databases.copy("internal", "rdbms.people", {
        async progress(_table, done) {
          if (done > MANY / 2) await sql().kill();
        },
      }),
      { code: "storage/unreachable" },
    );
    await sql().launch();
    const seen: number[] = [];
    const report = await databases.copy("internal", "rdbms.people", {
      progress: (_table, done) => void seen.push(done),
    });
    assert.ok(report.same > MANY / 2, `${report.same} were there`);
    assert.equal(report.same + report.added, MANY + 3);
    assert.deepEqual(report.source, report.destination);
    assert.ok(seen.at(-1)! < MANY / 2 + 4, `${seen.at(-1)} were copied`);
  },
});

Deno.test("copyData() refuses two pools of one keyspace, or of one index", async () => {
  await using databases = await Databases.make();
  for (
    const [from, to] of [["cassandra.old", "cassandra.again"], ["elastic.again", "elastic.new"]]
  ) {
    await assert.rejects(databases.copy(from!, to!), {
      code: "storage/no-backend",
      message: `Cannot copy mam from ${from} to ${to}: both are the same database; correct the ` +
        "address of one of the two pools",
    });
  }
});

Deno.test("copyData() says which kinds a backend may not hold", async () => {
  await using databases = await Databases.make();
  for (const [from, to] of [["internal", "cassandra.old"], ["elastic.new", "internal"]] as const) {
    await assert.rejects(copyData(databases.options, { kind: "users", from, to }), {
      code: "storage/no-backend",
      message: /may not hold users/,
    });
  }
});
