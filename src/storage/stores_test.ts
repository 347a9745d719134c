import assert from "node:assert/strict";
import { mock } from "node:test";
import { ManualClock } from "../base/mod.ts";
import { MemoryLogger, MetricsRegistry } from "../observe/mod.ts";
import { archiveKeyOf } from "./archive_store.ts";
import { InternalStore } from "./internal_store.ts";
import { emptyDatabase, preparedDatabase } from "./sql/testing/databases.ts";
import { SERVER_KINDS, serverDuringTests, TestServer } from "./sql/testing/servers.ts";
import type { SqlAddress } from "./sql/sql_server.ts";
import { SqlMucStore } from "./sql/sql_muc_store.ts";
import { SqlRoomStore } from "./sql/sql_room_store.ts";
import { withPath } from "./sql/testing/sqlite.ts";
import { Stores } from "./stores.ts";
import type { SqlPoolOptions } from "./database_pools.ts";
import type { StoresOptions } from "./stores.ts";
import { conformanceArchived } from "./testing/archive_store_conformance.ts";
import { conformanceMessage } from "./testing/offline_store_conformance.ts";
import { conformanceCredentials, keysOf } from "./testing/user_store_conformance.ts";

const [POSTGRES] = SERVER_KINDS;
const server = serverDuringTests(POSTGRES!);

/** Returns the pools of the databases that could not be reached at the last attempt to connect. */
function unreachable(stores: Stores): readonly string[] {
  return stores.databases().filter(({ lastFailure }) => lastFailure !== undefined)
    .map(({ pool }) => pool);
}

function optionsWith(
  path: string,
  address: SqlAddress,
  pool: Partial<SqlPoolOptions> = {},
): StoresOptions {
  return {
    internal: { path },
    pools: new Map([
      ["default", {
        scope: "global",
        driver: "pgsql",
        address,
        bounds: { workers: 1 },
        ...pool,
      }],
    ]),
    users: new Map([
      ["example.com", { backend: "rdbms", pool: "default" }],
      ["example.org", { backend: "rdbms", pool: "default" }],
      ["dc1.example.com", { backend: "internal" }],
    ]),
  };
}

Deno.test("Stores of two nodes share the accounts and the secret of a database, and nothing else", () =>
  withPath(async (path) => {
    const { address } = await preparedDatabase(server());
    await using one = await Stores.open(optionsWith(path, address));
    await using other = await Stores.open(optionsWith(`${path}.other`, address));
    await one.users("example.com").add("alice", conformanceCredentials(1));
    assert.deepEqual(
      await keysOf(other.users("example.com"), "alice"),
      conformanceCredentials(1),
    );
    assert.equal(await other.users("example.org").exists("alice"), false);
    await one.users("dc1.example.com").add("bob", conformanceCredentials(1));
    assert.equal(await other.users("dc1.example.com").exists("bob"), false);
    const secrets = await Promise.all(
      [one, other, one].map((each) => each.secret("enumeration", "example.com")),
    );
    assert.equal(secrets[0]!.length, 32);
    assert.deepEqual(secrets[0], secrets[1]);
    assert.notDeepEqual(await one.secret("enumeration", "dc1.example.com"), secrets[0]);
  }));

Deno.test("Stores.removeAccount() deletes the account and its data, wherever each of them is", () =>
  withPath(async (path) => {
    const { address } = await preparedDatabase(server());
    const options = optionsWith(path, address);
    await using stores = await Stores.open({
      ...options,
      data: new Map([["private", new Map([["example.com", { backend: "internal" as const }]])]]),
    });
    const bounds = { maxElements: 1, maxBytes: 9 };
    const change = { namespace: "urn:example", name: "x", xml: "<x/>" };
    for (const host of ["example.com", "example.org"]) {
      await stores.users(host).add("alice", conformanceCredentials(1));
      await stores.privateStorage(host).change("alice", [change], bounds);
      await stores.vcards(host).write("alice", "<vCard/>");
      await stores.privacyLists(host).write("alice", { expected: 0, defaultName: "a" });
      await stores.rooms(host, `rooms.${host}`).create(`room@rooms.${host}`, {
        config: "{}",
        occupants: [{ jid: `alice@${host}`, affiliation: "owner" }],
      });
      await stores.muc(host, `muc.${host}`).create(`room@muc.${host}`, {
        config: "{}",
        isListed: true,
        affiliates: [{ jid: `alice@${host}`, affiliation: "owner", reason: "" }],
        creator: `alice@${host}`,
        maxCreated: 1,
      });
      await stores.pep(host).publish("alice", {
        node: "urn:example",
        expected: undefined,
        config: "",
        item: { id: "x", xml: "<x/>" },
        maxItems: 1,
      }, { maxNodes: 1, maxBytes: 9 });
      await stores.rosters(host).write(`alice@${host}`, {
        expected: 0,
        contact: "bob@example.com",
        item: {
          jid: "bob@example.com",
          name: "",
          groups: [],
          subscription: "both",
          isAsking: false,
          isApproved: false,
          isListed: true,
          request: undefined,
        },
      });
    }
    await using internal = await InternalStore.open({ path });
    assert.deepEqual(await internal.privateStorage("example.com").all("alice"), ["<x/>"]);
    assert.deepEqual(await internal.privateStorage("example.org").all("alice"), []);
    assert.equal(await stores.removeAccount("alice", "example.com"), true);
    assert.equal(await stores.users("example.com").exists("alice"), false);
    assert.equal(await stores.vcards("example.com").read("alice"), undefined);
    assert.equal(await stores.vcards("example.org").read("alice"), "<vCard/>");
    assert.equal((await stores.privacyLists("example.com").read("alice")).version, 0);
    const roomAt = (host: string) => stores.rooms(host, `rooms.${host}`).read(`room@rooms.${host}`);
    assert.equal(await roomAt("example.com"), undefined);
    assert.equal((await roomAt("example.org"))?.occupants.length, 1);
    const ownersAt = async (host: string) =>
      (await stores.muc(host, `muc.${host}`).read(`room@muc.${host}`))?.affiliates.length;
    assert.equal(await ownersAt("example.com"), 0);
    assert.equal(await ownersAt("example.org"), 1);
    assert.equal((await stores.privacyLists("example.org").read("alice")).defaultName, "a");
    assert.deepEqual(await stores.pep("example.com").nodes("alice"), []);
    assert.equal((await stores.pep("example.org").newest("alice", "urn:example", 1)).length, 1);
    const contacts = async (host: string) =>
      (await stores.rosters(host).read(`alice@${host}`)).items.map(({ jid }) => jid);
    assert.deepEqual(await contacts("example.com"), []);
    assert.deepEqual(await contacts("example.org"), ["bob@example.com"]);
    assert.deepEqual(await internal.privateStorage("example.com").all("alice"), []);
    assert.deepEqual(await stores.privateStorage("example.org").all("alice"), ["<x/>"]);
    assert.equal(await stores.removeAccount("alice", "example.com"), false);
  }));

Deno.test("Stores.removeAccount() ends subscriptions in rosters of other databases, too", () =>
  withPath(async (path) => {
    const { address } = await preparedDatabase(server());
    await using stores = await Stores.open({
      ...optionsWith(path, address),
      data: new Map([["roster", new Map([["example.org", { backend: "internal" as const }]])]]),
    });
    const [alice, bob] = ["alice@example.com", "bob@example.org"];
    const both = (jid: string) => ({
      jid,
      name: "",
      groups: [],
      subscription: "both" as const,
      isAsking: false,
      isApproved: false,
      isListed: true,
      request: undefined,
    });
    await stores.users("example.com").add("alice", conformanceCredentials(1));
    await stores.rosters("example.com").fill(alice, [both(bob), both("carol@elsewhere.example")]);
    await stores.rosters("example.org").fill(bob, [both(alice), both("dave@example.com")]);
    assert.equal(await stores.removeAccount("alice", "example.com"), true);
    const { items } = await stores.rosters("example.org").read(bob);
    assert.deepEqual(items.map(({ jid, subscription }) => [jid, subscription]), [
      [alice, "none"],
      ["dave@example.com", "both"],
    ]);
  }));

Deno.test("Stores.removeAccount() deletes data that was written until the account was gone", () =>
  withPath(async (path) => {
    const { address } = await preparedDatabase(server());
    await using stores = await Stores.open(optionsWith(path, address));
    await stores.users("example.com").add("alice", conformanceCredentials(1));
    const users = stores.users.bind(stores);
    stores.users = (host) => {
      const store = users(host);
      const remove = store.remove.bind(store);
      store.remove = async (localpart) => {
        const bounds = { maxMessages: 9, maxBytes: 999 };
        // Another node has found the account just before.
        await stores.offlineMessages(host).keep(localpart, [conformanceMessage("1")], bounds);
        return await remove(localpart);
      };
      return store;
    };
    assert.equal(await stores.removeAccount("alice", "example.com"), true);
    assert.deepEqual(await stores.offlineMessages("example.com").all("alice"), []);
  }));

Deno.test("Stores.removeAccount() leaves the data of who takes the name at once", () =>
  withPath(async (path) => {
    const { address } = await preparedDatabase(server());
    await using stores = await Stores.open(optionsWith(path, address));
    await stores.users("example.com").add("alice", conformanceCredentials(1));
    const users = stores.users.bind(stores);
    stores.users = (host) => {
      const store = users(host);
      const remove = store.remove.bind(store);
      store.remove = async (localpart) => {
        const wasThere = await remove(localpart);
        await store.add(localpart, conformanceCredentials(2));
        await stores.vcards(host).write(localpart, "<vCard/>");
        return wasThere;
      };
      return store;
    };
    assert.equal(await stores.removeAccount("alice", "example.com"), true);
    assert.equal(await stores.vcards("example.com").read("alice"), "<vCard/>");
  }));

Deno.test("Stores.addAccount() removes messages that a dying node kept for an earlier owner of the name", () =>
  withPath(async (path) => {
    const { address } = await preparedDatabase(server());
    await using stores = await Stores.open(optionsWith(path, address));
    const [host, bounds] = ["example.com", { maxMessages: 9, maxBytes: 999 }];
    const credentials = conformanceCredentials(1);
    const keep = async (localpart: string) => {
      await stores.offlineMessages(host).keep(localpart, [conformanceMessage("1")], bounds);
      return (await stores.offlineMessages(host).all(localpart)).length;
    };
    assert.deepEqual([await keep("alice"), await keep("bob")], [1, 1]);
    await stores.addAccount("alice", host, credentials);
    assert.deepEqual(await stores.offlineMessages(host).all("alice"), []);
    assert.equal((await stores.offlineMessages(host).all("bob")).length, 1);
    assert.equal(await keep("alice"), 1);
    await assert.rejects(stores.addAccount("alice", host, credentials), /exists/);
    assert.equal((await stores.offlineMessages(host).all("alice")).length, 1, "they are its own");
  }));

Deno.test("Stores.addAccount() leaves messages for somebody who takes the name at the same moment", () =>
  withPath(async (path) => {
    const { address } = await preparedDatabase(server());
    await using stores = await Stores.open(optionsWith(path, address));
    const [host, id] = ["example.com", new Uint8Array(16).fill(1)];
    const bounds = { maxMessages: 9, maxBytes: 999 };
    const users = stores.users.bind(stores);
    let isFirst = true;
    stores.users = (domainpart) => {
      const store = users(domainpart);
      const exists = store.exists.bind(store);
      store.exists = async (localpart) => {
        const found = await exists(localpart);
        if (!isFirst) return found;
        isFirst = false;
        await store.add(localpart, conformanceCredentials(1));
        await stores.offlineMessages(host).keep(localpart, [conformanceMessage("1")], bounds);
        return found;
      };
      return store;
    };
    await assert.rejects(stores.addAccount("alice", host, conformanceCredentials(2)), /exists/);
    const claimed = await stores.offlineMessages(host)
      .claim("alice", { id, nowMs: 0, forMs: 1_000 });
    assert.equal(claimed, 1);
  }));

Deno.test("Stores keeps the archive of who takes a name at once, and gives nobody an archive of 0.1.0", () =>
  withPath(async (path) => {
    const { address } = await preparedDatabase(server());
    await using stores = await Stores.open(optionsWith(path, address));
    const [alice, host, nowMs] = ["alice@example.com", "example.com", 1_700_000_000_000];
    const creationOf = async () => (await stores.users(host).existing(["alice"])).get("alice")!;
    const count = async (creation: string) =>
      await stores.archives(host).count(archiveKeyOf(alice, creation), {}, 10);
    const fill = async (creation: string) => {
      const archive = archiveKeyOf(alice, creation);
      await stores.archives(host).append([conformanceArchived(1, { archive })], nowMs);
    };
    await stores.addAccount("alice", host, conformanceCredentials(1));
    const first = await creationOf();
    await fill(first);
    assert.equal(await stores.users(host).remove("alice"), true);
    await stores.addAccount("alice", host, conformanceCredentials(2));
    const second = await creationOf();
    await fill(second);
    await stores.removeData("alice", host, { isGone: true });
    assert.deepEqual([await count(first), await count(second)], [0, 1]);
    await stores.removeAccount("alice", host);
    await fill("");
    await server().asRoot("UPDATE archives SET owner_key = NULL", address.database);
    await stores.addAccount("alice", host, conformanceCredentials(3));
    assert.equal(await count(await creationOf()), 0);
  }));

Deno.test("Stores.removeAccount() leaves the data of the next owner of the name alone", () =>
  withPath(async (path) => {
    const { address } = await preparedDatabase(server());
    await using stores = await Stores.open(optionsWith(path, address));
    const users = stores.users("example.com");
    await stores.addAccount("alice", "example.com", conformanceCredentials(1));
    const creation = (await users.existing(["alice"])).get("alice")!;
    assert.equal(await stores.removeAccount("alice", "example.com", { creation }), true);
    await stores.addAccount("alice", "example.com", conformanceCredentials(2));
    await stores.vcards("example.com").write("alice", "<vCard xmlns='vcard-temp'/>");
    assert.equal(await stores.removeAccount("alice", "example.com", { creation }), false);
    assert.equal(
      await stores.vcards("example.com").read("alice"),
      "<vCard xmlns='vcard-temp'/>",
    );
    assert.equal(await users.exists("alice"), true);
  }));

Deno.test("Stores.removeAccount() keeps the account while its data cannot be deleted", () =>
  withPath(async (path) => {
    const { address } = await emptyDatabase(server());
    const options = optionsWith(path, address);
    await using stores = await Stores.open({
      ...options,
      users: new Map([["example.com", { backend: "internal" }]]),
      data: new Map([["private", options.users]]),
    });
    await stores.users("example.com").add("alice", conformanceCredentials(1));
    await assert.rejects(stores.removeAccount("alice", "example.com"), {
      code: "storage/schema-missing",
    });
    assert.equal(await stores.users("example.com").exists("alice"), true);
  }));

Deno.test("Stores gives each host connections of its own with the scope host", () =>
  withPath(async (path) => {
    const { address } = await preparedDatabase(server());
    const sessions = async () => {
      const rows = await server().asRoot(
        `SELECT COUNT(*) AS sessions FROM pg_stat_activity WHERE datname = '${address.database}'`,
      );
      return Number(rows[0]!["sessions"]);
    };
    const untilThere = async (count: number, scope: string) => {
      // The server notices by and by that others have gone.
      for (let tries = 0; tries < 3_000 && await sessions() !== count; tries++) {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      assert.equal(await sessions(), count, scope);
    };
    for (const [scope, expected] of [["global", 1], ["host", 2]] as const) {
      await using stores = await Stores.open(optionsWith(path, address, { scope }));
      for (const host of ["example.com", "example.org"]) {
        await stores.users(host).exists("alice");
        await stores.users(host).exists("bob");
      }
      await untilThere(expected, scope);
      await stores.close();
      await untilThere(0, scope);
    }
  }));

Deno.test("Stores.observe() measures statements, counts failures and logs changes", () =>
  withPath(async (path) => {
    await using own = await TestServer.start(POSTGRES!);
    const { address } = await preparedDatabase(own);
    await using stores = await Stores.open(optionsWith(path, address));
    const metrics = new MetricsRegistry(new ManualClock());
    const logger = new MemoryLogger();
    stores.observe({ metrics, logger });
    const users = stores.users("example.com");
    await users.add("alice", conformanceCredentials(1));
    await assert.rejects(users.add("alice", conformanceCredentials(1)));
    await own.kill();
    for (let tries = 0; tries < 3; tries++) await assert.rejects(users.exists("alice"));
    assert.deepEqual(unreachable(stores), ["rdbms.default"]);
    const text = await metrics.prometheus();
    assert.match(text, /causeway_storage_up\{pool="rdbms\.default"\} 0/);
    assert.match(text, /causeway_storage_up\{pool="internal"\} 1/);
    assert.match(
      text,
      /causeway_storage_failures_total\{pool="rdbms\.default",code="storage\/unreachable"\} 3/,
    );
    assert.ok(!text.includes("storage/conflict"), "an account that exists is no failure");
    assert.match(
      text,
      /causeway_storage_statement_time_seconds_count\{pool="rdbms\.default"\} [23]/,
    );
    await own.launch();
    for (let tries = 0; tries < 1_200; tries++) {
      if (await users.exists("alice").catch(() => false)) break;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.deepEqual(unreachable(stores), []);
    assert.deepEqual(logger.entries.map(({ event }) => event), ["storage.down", "storage.up"]);
  }));

Deno.test("Stores.databases() notices without requests that a database is gone, and that it is back", () =>
  withPath(async (path) => {
    await using own = await TestServer.start(POSTGRES!);
    const { address } = await preparedDatabase(own);
    await using stores = await Stores.open(optionsWith(path, address));
    const logger = new MemoryLogger();
    stores.observe({ metrics: new MetricsRegistry(new ManualClock()), logger });
    const untilFailures = async (expected: readonly string[]) => {
      const read = () => unreachable(stores);
      for (let tries = 0; tries < 1_200 && String(read()) !== String(expected); tries++) {
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      assert.deepEqual(read(), expected);
    };
    await stores.users("example.com").exists("alice");
    await own.kill();
    await untilFailures(["rdbms.default"]);
    await own.launch();
    await untilFailures([]);
    assert.deepEqual(logger.entries.map(({ event }) => event), ["storage.down", "storage.up"]);
  }));

Deno.test("Stores.probe() returns what may pass, and throws what stays", () =>
  withPath(async (path) => {
    const { address } = await emptyDatabase(server());
    {
      await using stores = await Stores.open(optionsWith(path, { ...address, port: 1 }));
      const failures = await stores.probe();
      assert.deepEqual(failures.map(({ pool, error }) => [pool, error.code]), [
        ["rdbms.default", "storage/unreachable"],
      ]);
    }
    await using stores = await Stores.open(optionsWith(path, address));
    await assert.rejects(stores.probe(), { code: "storage/schema-missing" });
  }));

Deno.test("Stores.prepare() refuses a pool that cannot connect, and use() moves requests to another one", () =>
  withPath(async (path) => {
    const { address } = await preparedDatabase(server());
    const options = optionsWith(path, address);
    await using stores = await Stores.open(options);
    const metrics = new MetricsRegistry(new ManualClock());
    stores.observe({ metrics, logger: new MemoryLogger() });
    const users = stores.users("example.com"); // as the parts of a node keep it
    const archives = stores.archives("example.com");
    await users.add("alice", conformanceCredentials(1));
    assert.deepEqual((await stores.prepare(options)).pools, [], "nothing differs");

    const wrong = { ...address, database: `${address.database}_that_is_not_there` };
    await assert.rejects(stores.prepare(optionsWith(path, wrong)), /that_is_not_there/);
    assert.equal(await users.exists("alice"), true);

    const wider = optionsWith(path, address, { bounds: { workers: 3 } });
    await (await stores.prepare(wider)).discard();
    assert.equal(stores.databases()[1]!.maxConnections, 1);
    const prepared = await stores.prepare(wider);
    assert.deepEqual(prepared.pools, ["rdbms.default"]);
    const reads = Array.from({ length: 20 }, () => users.exists("alice"));
    prepared.use();
    assert.deepEqual(new Set(await Promise.all(reads)), new Set([true]), "no request is lost");
    assert.equal(stores.databases()[1]!.maxConnections, 3);
    assert.equal(await users.exists("alice"), true);
    assert.equal(stores.archives("example.org"), archives);
    assert.deepEqual((await stores.prepare(wider)).pools, []);
    metrics.close();
  }));

Deno.test("Stores wait with the end of a replaced pool for secrets and for the rooms of an account", () =>
  withPath(async (path) => {
    const { address } = await preparedDatabase(server());
    let workers = 1;
    await using stores = await Stores.open(optionsWith(path, address, { bounds: { workers } }));
    const next = () =>
      stores.prepare(optionsWith(path, address, { bounds: { workers: ++workers } }));
    await stores.secret("enumeration", "example.com");
    const first = await next();
    const secrets = Array.from({ length: 9 }, () => stores.secret("enumeration", "example.com"));
    first.use();
    assert.equal(new Set((await Promise.all(secrets)).map(String)).size, 1);

    const prototypes: readonly { removeUser(user: string): Promise<unknown> }[] = [
      SqlRoomStore.prototype,
      SqlMucStore.prototype,
    ];
    for (const prototype of prototypes) {
      const prepared = await next();
      const { removeUser } = prototype;
      let replaced = 0;
      const mocked = mock.method(
        prototype,
        "removeUser",
        async function (this: unknown, user: string) {
          const removing = removeUser.call(this, user);
          await Promise.resolve(); // the call is under way
          prepared.use();
          replaced++;
          return await removing;
        },
      );
      await stores.removeData("alice", "example.com");
      mocked.mock.restore();
      assert.equal(replaced, 1);
      assert.equal(stores.databases()[1]!.maxConnections, workers);
    }
  }));
