import assert from "node:assert/strict";
import { join } from "node:path";
import { archiveKeyOf } from "./archive_store.ts";
import {
  copiableKinds,
  COPIED_KIND_NAMES,
  copyData,
  inCopyOrder,
  refuseEmptySource,
} from "./copy_data.ts";
import type { CopiedKind } from "./copy_data.ts";
import { InternalStore } from "./internal_store.ts";
import { COLUMNS, COPIED_KINDS, TABLES_LEFT_OUT } from "./sql/copied_tables.ts";
import { sqlServerDatabase } from "./sql/sql_server.ts";
import { SqlStores } from "./sql/sql_stores.ts";
import { preparedDatabase } from "./sql/testing/databases.ts";
import type { ServerKind } from "./sql/testing/servers.ts";
import { SERVER_KINDS, serverDuringTests, TestServer } from "./sql/testing/servers.ts";
import type { SqlPoolOptions } from "./database_pools.ts";
import type { StoresOptions } from "./stores.ts";
import { sqlServerOf } from "./database_pools.ts";
import {
  ACCOUNTS,
  ALICE,
  ARCHIVED,
  ARCHIVED_OF_ROOM,
  contentOf,
  fill,
  ODD_NAMES,
} from "./testing/filled_stores.ts";
import { conformanceArchived } from "./testing/archive_store_conformance.ts";
import { conformanceItem } from "./testing/roster_store_conformance.ts";
import { conformanceCredentials } from "./testing/user_store_conformance.ts";

const servers = SERVER_KINDS.map((kind) => ({ kind, server: serverDuringTests(kind) }));

/** Returns a pool whose database has the present schema and is otherwise empty. */
async function pool(server: TestServer): Promise<SqlPoolOptions> {
  const { address } = await preparedDatabase(server);
  return { scope: "global", driver: server.kind.driver, address, bounds: {} };
}

/** The databases of one test: a file, and a pool for each tag. */
class Databases implements AsyncDisposable {
  readonly options: StoresOptions;
  readonly #directory: string;
  readonly #opened: SqlStores[] = [];

  private constructor(directory: string, pools: ReadonlyMap<string, SqlPoolOptions>) {
    this.#directory = directory;
    const path = join(directory, "store.sqlite");
    const users = new Map([["example.com", { backend: "internal" } as const]]);
    this.options = { internal: { path }, pools, users };
  }

  static async make(pools: Readonly<Record<string, SqlPoolOptions>> = {}): Promise<Databases> {
    const directory = await Deno.makeTempDir({ prefix: "causeway-copy-" });
    return new Databases(directory, new Map(Object.entries(pools)));
  }

  async open(name: string): Promise<SqlStores> {
    const tag = name.slice("rdbms.".length);
    const stores = name === "internal"
      ? await InternalStore.open(this.options.internal)
      : new SqlStores(sqlServerDatabase(sqlServerOf(tag, this.options.pools.get(tag)!)));
    this.#opened.push(stores);
    return stores;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const stores of this.#opened) await stores.close();
    await Deno.remove(this.#directory, { recursive: true });
  }
}

async function copyAll(
  { options }: Databases,
  [from, to]: readonly [string, string],
  differing: "keep" | "replace" | "mirror" = "keep",
) {
  const reports = [];
  for (const kind of inCopyOrder(COPIED_KIND_NAMES, differing)) {
    reports.push(...await copyData(options, { kind, from, to, differing }));
  }
  return Object.fromEntries(
    reports.map(({ table, source, destination, ...counts }) => {
      if (counts.kept === 0) assert.deepEqual(destination, source, `${table} is the same at both`);
      else assert.notEqual(destination.checksum, source.checksum);
      return [table, counts];
    }),
  );
}

const NONE = { added: 0, same: 0, replaced: 0, removed: 0, kept: 0, keptNames: [] };
const ALL = ACCOUNTS + ODD_NAMES.length + 1;

/** Copies to a second database, and from there to a third. */
async function goAround(databases: Databases, way: readonly string[]): Promise<void> {
  const [first, ...others] = way as [string, ...string[]];
  const source = await databases.open(first);
  await fill(source);
  const content = await contentOf(source);
  let from = first;
  for (const to of others) {
    const copied = await copyAll(databases, [from, to]);
    assert.deepEqual(copied, {
      users: { ...NONE, added: ALL },
      secrets: { ...NONE, added: 1 },
      rosters: { ...NONE, added: 2 },
      private_storage: { ...NONE, added: 2 },
      vcards: { ...NONE, added: 2 },
      last_activity: { ...NONE, added: 2 },
      privacy: { ...NONE, added: 2 },
      offline_messages: { ...NONE, added: 2 },
      pep_nodes: { ...NONE, added: 2 },
      muc_light_rooms: { ...NONE, added: 2 },
      muc_light_blocks: { ...NONE, added: 2 },
      muc_rooms: { ...NONE, added: 2 },
      archives: { ...NONE, added: ARCHIVED },
      room_archives: { ...NONE, added: 4 * ARCHIVED_OF_ROOM },
    });
    const destination = await databases.open(to);
    assert.deepEqual(await contentOf(destination), content, `${from} to ${to}`);
    assert.deepEqual(await copyAll(databases, [from, to]), {
      users: { ...NONE, same: ALL },
      secrets: { ...NONE, same: 1 },
      rosters: { ...NONE, same: 2 },
      private_storage: { ...NONE, same: 2 },
      vcards: { ...NONE, same: 2 },
      last_activity: { ...NONE, same: 2 },
      privacy: { ...NONE, same: 2 },
      offline_messages: { ...NONE, same: 2 },
      pep_nodes: { ...NONE, same: 2 },
      muc_light_rooms: { ...NONE, same: 2 },
      muc_light_blocks: { ...NONE, same: 2 },
      muc_rooms: { ...NONE, same: 2 },
      archives: { ...NONE, same: ARCHIVED },
      room_archives: { ...NONE, same: 4 * ARCHIVED_OF_ROOM },
    });
    from = to;
  }
}

// Nothing tells databases of SQL Server apart.
for (const { kind, server } of servers.filter(({ kind }) => kind.driver !== "mssql")) {
  Deno.test(`copyData() refuses two pools of one database of ${kind.name}`, async () => {
    const here = await pool(server());
    await using databases = await Databases.make({ here, again: here });
    const way = { from: "rdbms.here", to: "rdbms.again" };
    for (const copied of ["users", "mam"] as const) {
      await assert.rejects(copyData(databases.options, { kind: copied, ...way }), {
        code: "storage/no-backend",
        message: /: both are the same database; /,
      });
    }
  });
}

for (const { kind, server } of servers) {
  Deno.test(`copyData() between the built-in store and ${kind.name}, and back`, async () => {
    await using databases = await Databases.make({ here: await pool(server()) });
    await using back = await Databases.make({ here: databases.options.pools.get("here")! });
    await goAround(databases, ["internal", "rdbms.here"]);
    await copyAll(back, ["rdbms.here", "internal"]);
    assert.deepEqual(
      await contentOf(await back.open("internal")),
      await contentOf(await databases.open("internal")),
    );
  });

  Deno.test(`copyData() keeps other data of ${kind.name} and names them, or replaces them`, async () => {
    await using databases = await Databases.make({ here: await pool(server()) });
    const way = ["internal", "rdbms.here"] as const;
    const source = await databases.open("internal");
    await fill(source);
    await copyAll(databases, way);
    const destination = await databases.open("rdbms.here");
    await destination.users("example.com").setPassword("user5", conformanceCredentials(99));
    const { version } = await destination.rosters().find(ALICE, "dave@example.com");
    const item = conformanceItem("dave@example.com");
    await destination.rosters().write(ALICE, { expected: version, contact: item.jid, item });
    for (const name of ["user1", "nobody"]) {
      await destination.vcards("example.com").write(name, "<other/>");
    }
    const changed = await contentOf(destination);

    const kept = await copyAll(databases, way);
    assert.deepEqual(kept["users"], {
      ...NONE,
      same: ALL - 1,
      kept: 1,
      keptNames: ["user5@example.com"],
    });
    assert.deepEqual(kept["rosters"], { ...NONE, same: 1, kept: 1, keptNames: [ALICE] });
    const { keptNames, ...vcards } = kept["vcards"]!;
    assert.deepEqual({ ...vcards, keptNames: [] }, { ...NONE, kept: 2 });
    assert.deepEqual(keptNames.toSorted(), ["an account that is not there", "user1@example.com"]);
    assert.deepEqual(await contentOf(destination), changed);

    const replaced = await copyAll(databases, way, "replace");
    assert.deepEqual(replaced["users"], { ...NONE, same: ALL - 1, replaced: 1 });
    assert.deepEqual(replaced["rosters"], { ...NONE, same: 1, replaced: 1 });
    assert.deepEqual(await contentOf(destination), await contentOf(source));
  });

  Deno.test(`copyData() can make ${kind.name} the same as the source`, async () => {
    await using databases = await Databases.make({ here: await pool(server()) });
    const way = ["internal", "rdbms.here"] as const;
    const source = await databases.open("internal");
    await fill(source);
    await copyAll(databases, way);
    // The service went on: accounts came, changed and went.
    const users = source.users("example.com");
    await users.add("new", conformanceCredentials(1));
    await users.setPassword("user5", conformanceCredentials(99));
    const gone = ["user0", "user7", "user120", ...ODD_NAMES];
    for (const name of gone) await users.remove(name);
    await source.vcards("example.com").remove("user1");

    const last = await copyAll(databases, way, "mirror");
    assert.deepEqual(last["users"], {
      ...NONE,
      added: 1,
      replaced: 1,
      removed: gone.length,
      same: ALL - gone.length - 1,
    });
    assert.deepEqual(last["vcards"], { ...NONE, same: 1, removed: 1 });
    assert.deepEqual(
      await contentOf(await databases.open("rdbms.here")),
      await contentOf(source),
    );
    assert.deepEqual((await copyAll(databases, way, "mirror"))["users"], {
      ...NONE,
      same: ALL - gone.length + 1,
    });
  });

  Deno.test(`copyData() removes from ${kind.name} the archive of an account that was deleted`, async () => {
    await using databases = await Databases.make({ here: await pool(server()) });
    const way = ["internal", "rdbms.here"] as const;
    const source = await databases.open("internal");
    const users = source.users("example.com");
    await users.add("alice", conformanceCredentials(1));
    const archive = archiveKeyOf(
      "alice@example.com",
      (await users.existing(["alice"])).get("alice")!,
    );
    await source.archives().append([conformanceArchived(1, { archive })], 1_700_000_000_000);
    await copyAll(databases, way);
    const countThere = async () =>
      await (await databases.open("rdbms.here")).archives().count(archive, {}, 10);
    assert.equal(await countThere(), 1);
    await source.archives().removeAll("alice@example.com");
    await users.remove("alice");
    await copyAll(databases, way, "mirror");
    assert.equal(await countThere(), 0);
  });

  Deno.test(`copyData() to ${kind.name} is continued after the server was killed`, async () => {
    await using own = await TestServer.start(kind);
    await using databases = await Databases.make({ here: await pool(own) });
    const source = await databases.open("internal");
    await fill(source);
    const batches: (readonly [number, number | undefined])[] = [];
    const copy = { kind: "users", from: "internal", to: "rdbms.here" } as const;
    await assert.rejects(
      copyData(databases.options, {
        ...copy,
        async progress(_table, done, total) {
          batches.push([done, total]);
          await own.kill();
        },
      }),
      { code: "storage/unreachable" },
    );
    assert.deepEqual(batches, [[200, ALL]]);
    await own.launch();
    const [users] = await copyData(databases.options, copy);
    assert.deepEqual([users!.same, users!.added], [200, ALL - 200]);
    for (const each of COPIED_KIND_NAMES) {
      await copyData(databases.options, { ...copy, kind: each });
    }
    assert.deepEqual(
      await contentOf(await databases.open("rdbms.here")),
      await contentOf(source),
    );
  });
}

Deno.test("copyData() names data of accounts that are elsewhere, as in a directory", async () => {
  const [here, people] = [await pool(servers[0]!.server()), await pool(servers[0]!.server())];
  await using databases = await Databases.make({ here, people });
  const users = new Map([["example.com", { backend: "rdbms", pool: "people" } as const]]);
  const options = { ...databases.options, users };
  const [source, destination, accounts] = await Promise.all(
    ["internal", "rdbms.here", "rdbms.people"].map((name) => databases.open(name)),
  );
  for (const name of ["alice", "bob"]) {
    await accounts!.users("example.com").add(name, conformanceCredentials(1));
  }
  for (const [i, stores] of [source!, destination!].entries()) {
    for (const name of ["alice", "nobody"]) {
      await stores.vcards("example.com").write(name, `<vCard>${i}</vCard>`);
    }
  }
  const [vcards] = await copyData(options, { kind: "vcard", from: "internal", to: "rdbms.here" });
  assert.deepEqual(vcards!.keptNames.toSorted(), [
    "alice@example.com",
    "an account that is not there",
  ]);
});

Deno.test("refuseEmptySource() refuses a source that has nothing of what the destination has", async () => {
  await using databases = await Databases.make({ here: await pool(servers[0]!.server()) });
  const [source, destination] = await Promise.all(
    ["internal", "rdbms.here"].map((name) => databases.open(name)),
  );
  const refused = async (...kinds: readonly CopiedKind[]) => {
    const options = { from: "internal", to: "rdbms.here", kinds };
    return await refuseEmptySource(databases.options, options).then(() => "", ({ code }) => code);
  };
  const empty = "storage/empty-source";
  await source!.secret("enumeration");
  assert.equal(await refused(...COPIED_KIND_NAMES), "", "both are empty");
  // As where the accounts are in a directory.
  await destination!.vcards("example.com").write("alice", "<vCard/>");
  await destination!.archives().append([conformanceArchived(1)], 1);
  for (const kinds of [COPIED_KIND_NAMES, ["vcard"], ["mam"]] as const) {
    assert.equal(await refused(...kinds), empty, kinds.join());
  }
  assert.equal(await refused("roster"), "");
  await source!.lastLogouts("example.com").note([{ localpart: "alice", atMs: 1, status: "" }]);
  assert.equal(await refused("vcard"), empty);
  assert.equal(await refused("vcard", "last"), "", "her vCard may be gone");
  await destination!.users("example.com").add("alice", conformanceCredentials(1));
  assert.equal(await refused("vcard", "last"), "");
  assert.equal(await refused("users", "vcard", "last"), empty);
  await source!.users("example.com").add("bob", conformanceCredentials(1));
  assert.equal(await refused("users", "vcard", "last"), "");
});

Deno.test("copyData() between the servers", async () => {
  const pools = await Promise.all(servers.map(({ server }) => pool(server())));
  const named = pools.map((each, i) => [tagOf(servers[i]!.kind), each] as const);
  await using databases = await Databases.make(Object.fromEntries(named));
  await goAround(databases, [...named.map(([tag]) => `rdbms.${tag}`), "internal"]);
});

function tagOf({ name }: ServerKind): string {
  return name.toLowerCase();
}

Deno.test("copyData() refuses backends that are not there", async () => {
  await using databases = await Databases.make();
  const copy = (from: string, to: string) =>
    copyData(databases.options, { kind: "users", from, to });
  await assert.rejects(copy("internal", "internal"), { code: "storage/no-backend" });
  await assert.rejects(copy("rdbms.nowhere", "internal"), {
    code: "storage/no-backend",
    message: "Cannot use the backend rdbms.nowhere: the configuration has internal",
  });
  await assert.rejects(copy("internal", "rdbms.nowhere"), { code: "storage/cannot-open" });
  assert.throws(() => Deno.statSync(databases.options.internal.path), Deno.errors.NotFound);
});

Deno.test("copiableKinds() refuses backends between which nothing can be copied", () => {
  assert.throws(() => copiableKinds("redis.default", "internal"), {
    code: "storage/no-backend",
    message:
      "Cannot copy from redis.default to internal: no kind of data can be copied between them",
  });
  assert.throws(() => copiableKinds("internal", "internal"), {
    code: "storage/no-backend",
    message: "Cannot copy from internal to internal: both are the same backend",
  });
  assert.deepEqual(copiableKinds("internal", "elastic.logs"), ["mam"]);
});

Deno.test("every table belongs to a kind of data, or is left out for a reason", () => {
  const copied = Object.values(COPIED_KINDS).flat().flatMap(({ tables }) => [...tables]);
  assert.deepEqual(
    [...copied, ...Object.keys(TABLES_LEFT_OUT)].toSorted(),
    Object.keys(COLUMNS).toSorted(),
  );
});

Deno.test("inCopyOrder() copies accounts first, and last where what is gone is removed", () => {
  assert.deepEqual(inCopyOrder(["mam", "vcard", "users"], "keep"), ["users", "vcard", "mam"]);
  assert.deepEqual(inCopyOrder(["mam", "vcard", "users"], "mirror"), ["vcard", "mam", "users"]);
});
