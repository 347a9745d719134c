import assert from "node:assert/strict";
import { conformanceArchived } from "../testing/archive_store_conformance.ts";
import { conformanceMessage } from "../testing/offline_store_conformance.ts";
import { conformanceItem } from "../testing/roster_store_conformance.ts";
import { conformanceRequest } from "../testing/subscription_request_store_conformance.ts";
import { conformanceCredentials } from "../testing/user_store_conformance.ts";
import type { PoolBounds } from "./connection_pool.ts";
import { PATIENT } from "../testing/patient_bounds.ts";
import { preparedDatabase, withConnection } from "./testing/databases.ts";
import { SERVER_KINDS, serverDuringTests, TestServer } from "./testing/servers.ts";
import { placeOf, sqlServerDatabase } from "./sql_server.ts";
import { SqlStores } from "./sql_stores.ts";

/** Something that a store does for those who use it. */
interface Operation {
  readonly name: string;
  readonly isWrite: boolean;
  /**
   * `room` for a change that puts something in, `frees` for one that only takes away; `none` for reads, and
   * for changes that find nothing to change.
   */
  readonly needs: "room" | "frees" | "none";
  run(stores: SqlStores): Promise<unknown>;
}

const [ALICE, BOB] = ["alice@example.com", "bob@example.com"];
const ELEMENT = { namespace: "urn:x", name: "x" };
const own = (stores: SqlStores) => stores.privateStorage("example.com");
const pep = (stores: SqlStores) => stores.pep("example.com");
const rooms = (stores: SqlStores) => stores.rooms("muclight.example.com");
const ROOM = "room@muclight.example.com";
const muc = (stores: SqlStores) => stores.muc("conference.example.com");
const HALL = "hall@conference.example.com";
const users = (stores: SqlStores) => stores.users("example.com");
const offline = (stores: SqlStores) => stores.offlineMessages("example.com");
const CLAIM = { id: new Uint8Array(16).fill(1), nowMs: 1, forMs: 1_000 };
const PAGE = { limit: 10, from: "start" } as const;
const FIRST = { after: 0, limit: 10 };

function reads(name: string, run: Operation["run"]): Operation {
  return { name, isWrite: false, needs: "none", run };
}

function writes(name: string, run: Operation["run"]): Operation {
  return { name, isWrite: true, needs: "room", run };
}

function frees(name: string, run: Operation["run"]): Operation {
  return { name, isWrite: true, needs: "frees", run };
}

/** A change that finds nothing to change. */
function finds(name: string, run: Operation["run"]): Operation {
  return { name, isWrite: true, needs: "none", run };
}

/** Every method of every store. A change that finds nothing to change is one, too. */
const OPERATIONS: readonly Operation[] = [
  reads("users.credentials", (stores) => users(stores).credentials("alice")),
  reads("users.exists", (stores) => users(stores).exists("alice")),
  reads("users.list", (stores) => users(stores).list()),
  reads("users.credentialShapes", (stores) => users(stores).credentialShapes()),
  writes("users.add", (stores) => users(stores).add("carol", conformanceCredentials(3))),
  writes(
    "users.setPassword",
    (stores) => users(stores).setPassword("alice", conformanceCredentials(2)),
  ),
  writes("users.complete", (stores) => users(stores).complete("alice", conformanceCredentials(1))),
  frees("users.remove", (stores) => users(stores).remove("carol")),
  reads("requests.ofContact", (stores) => stores.subscriptionRequests().ofContact(BOB)),
  reads("requests.contacts", (stores) => stores.subscriptionRequests().contacts()),
  reads("requests.count", (stores) => stores.subscriptionRequests().count()),
  writes("requests.change", (stores) =>
    stores.subscriptionRequests().change([
      { kind: "keep", request: conformanceRequest(ALICE, BOB) },
    ])),
  reads("rosters.read", (stores) => stores.rosters().read(ALICE)),
  reads("rosters.find", (stores) => stores.rosters().find(ALICE, BOB)),
  reads("rosters.contacts", (stores) => stores.rosters().contacts(ALICE)),
  reads("rosters.subscription", (stores) => stores.rosters().subscription(ALICE, BOB)),
  reads("rosters.subscriptions", (stores) => stores.rosters().subscriptions([ALICE], BOB)),
  writes(
    "rosters.write",
    (stores) =>
      stores.rosters().write(ALICE, { expected: 0, contact: BOB, item: conformanceItem(BOB) }),
  ),
  writes(
    "rosters.fill",
    (stores) => stores.rosters().fill(ALICE, [conformanceItem("carol@example.com")]),
  ),
  frees("rosters.removeAll", (stores) => stores.rosters().removeAll(ALICE)),
  reads("private.read", (stores) => own(stores).read("alice", ELEMENT)),
  reads("private.all", (stores) => own(stores).all("alice")),
  writes(
    "private.change",
    (stores) =>
      own(stores).change("alice", [{ ...ELEMENT, xml: "<x xmlns='urn:x'/>" }], {
        maxElements: 10,
        maxBytes: 1_000,
      }),
  ),
  frees("private.removeAll", (stores) => own(stores).removeAll("bob")),
  reads("vcards.read", (stores) => stores.vcards("example.com").read("alice")),
  writes("vcards.write", (stores) => stores.vcards("example.com").write("alice", "<vCard/>")),
  writes(
    "vcards.replace",
    (stores) => stores.vcards("example.com").replace("bob", "<vCard/>", "<vCard><FN/></vCard>"),
  ),
  frees("vcards.remove", (stores) => stores.vcards("example.com").remove("bob")),
  reads(
    "vcards.search",
    (stores) =>
      stores.vcards("example.com").search([{ field: "fn", text: "a" }], {
        limit: 1,
        findsAll: true,
      }),
  ),
  reads("last.read", (stores) => stores.lastLogouts("example.com").read("alice")),
  writes(
    "last.note",
    (stores) =>
      stores.lastLogouts("example.com").note([{ localpart: "alice", atMs: 1, status: "" }]),
  ),
  frees("last.remove", (stores) => stores.lastLogouts("example.com").remove("bob")),
  reads("privacy.read", (stores) => stores.privacyLists("example.com").read("alice")),
  reads("privacy.versions", (stores) => stores.privacyLists("example.com").versions(["alice"])),
  writes(
    "privacy.write",
    (stores) =>
      stores.privacyLists("example.com").write("alice", { expected: 0, defaultName: undefined }),
  ),
  frees("privacy.removeAll", (stores) => stores.privacyLists("example.com").removeAll("alice")),
  reads("offline.claimed", (stores) => offline(stores).claimed("alice", CLAIM.id, FIRST)),
  reads("offline.waiting", (stores) => offline(stores).waiting(["alice"], 0)),
  reads("offline.all", (stores) => offline(stores).all("alice")),
  writes("offline.keep", (stores) =>
    offline(stores).keep("alice", [conformanceMessage("x")], {
      maxMessages: 1_000,
      maxBytes: 1_000,
    })),
  writes("offline.claim", (stores) => offline(stores).claim("bob", CLAIM)),
  finds(
    "offline.renew",
    (stores) => offline(stores).renew([{ localpart: "bob", id: CLAIM.id }], 2),
  ),
  frees("offline.release", (stores) => offline(stores).release("bob", CLAIM.id, [1])),
  frees("offline.remove", (stores) => offline(stores).remove("bob", CLAIM.id, [1])),
  frees("offline.removeAll", (stores) => offline(stores).removeAll("bob")),
  // It reads first, and nothing has expired.
  reads("offline.removeExpired", (stores) => offline(stores).removeExpired(2)),
  reads("pep.nodes", (stores) => pep(stores).nodes("alice")),
  reads("pep.node", (stores) => pep(stores).node("alice", "urn:x")),
  reads("pep.newest", (stores) => pep(stores).newest("alice", "urn:x", 10)),
  reads("pep.items", (stores) => pep(stores).items("alice", "urn:x", ["i"])),
  reads(
    "pep.lastItems",
    (stores) =>
      pep(stores).lastItems({ localparts: ["alice"], nodes: ["urn:x"], maxPayloadBytes: 10 }),
  ),
  writes(
    "pep.publish",
    (stores) =>
      pep(stores).publish("alice", {
        node: "urn:x",
        expected: undefined,
        config: "{}",
        item: { id: "i", xml: "<x/>" },
        maxItems: 1,
      }, { maxNodes: 10, maxBytes: 1_000 }),
  ),
  writes(
    "pep.configure",
    (stores) =>
      pep(stores).configure("bob", { node: "urn:x", expected: "{}", config: "{}", maxItems: 1 }),
  ),
  writes(
    "pep.retract",
    (stores) => pep(stores).retract("bob", { node: "urn:x", expected: "{}", ids: ["i"] }),
  ),
  frees("pep.remove", (stores) => pep(stores).remove("bob", { node: "urn:x", expected: "{}" })),
  frees("pep.removeAll", (stores) => pep(stores).removeAll("bob")),
  reads("archives.read", (stores) => stores.archives().read(ALICE, {}, PAGE)),
  reads("archives.count", (stores) => stores.archives().count(ALICE, {}, 10)),
  reads("archives.ends", (stores) => stores.archives().ends(ALICE)),
  reads("archives.preferences", (stores) => stores.archives().preferences(ALICE)),
  writes("archives.append", (stores) => stores.archives().append([conformanceArchived(1)], 1)),
  writes(
    "archives.setPreferences",
    (stores) =>
      stores.archives().setPreferences(BOB, { byDefault: "always", always: [], never: [] }),
  ),
  reads("rooms.read", (stores) => rooms(stores).read(ROOM)),
  reads("rooms.roomsOf", (stores) => rooms(stores).roomsOf(ALICE, { limit: 1 })),
  reads("rooms.countRoomsOf", (stores) => rooms(stores).countRoomsOf([ALICE])),
  reads("rooms.blocks", (stores) => rooms(stores).blocks(ALICE)),
  reads(
    "rooms.blocking",
    (stores) => rooms(stores).blocking([ALICE], [{ kind: "user", jid: BOB }]),
  ),
  writes(
    "rooms.create",
    (stores) =>
      rooms(stores).create(`${crypto.randomUUID()}@muclight.example.com`, {
        config: "{}",
        occupants: [{ jid: BOB, affiliation: "owner" }],
      }),
  ),
  // Nobody is in the room, so that it is not changed.
  reads("rooms.takeNumber", (stores) => rooms(stores).takeNumber(ROOM, ALICE)),
  reads("rooms.messages", (stores) => rooms(stores).messages(ROOM, { limit: 1 })),
  reads("rooms.unarchived", (stores) => rooms(stores).unarchived(ROOM, 1)),
  reads("rooms.overdue", (stores) => rooms(stores).overdue({ limit: 1, sentBeforeMs: 1 })),
  finds(
    "rooms.markArchived",
    (stores) => rooms(stores).markArchived(ROOM, { creation: 1, number: 1 }),
  ),
  writes("rooms.change", async (stores) => {
    const { version = 1 } = await rooms(stores).read(ROOM) ?? {};
    return await rooms(stores).change(ROOM, { expected: version, config: "{}" });
  }),
  frees("rooms.destroy", (stores) => rooms(stores).destroy(ROOM, 1)),
  writes(
    "rooms.changeBlocks",
    (stores) =>
      rooms(stores).changeBlocks(BOB, {
        added: [{ kind: "user", jid: `${crypto.randomUUID()}@example.com` }],
        removed: [],
      }, 1_000),
  ),
  frees("rooms.removeUser", (stores) => rooms(stores).removeUser("carol@example.com")),
  frees(
    "archives.removeBefore",
    (stores) => stores.archives().removeBefore({ sentBeforeMs: 1, archive: BOB }, 1),
  ),
  reads("archives.hasUnowned", (stores) => stores.archives().hasUnowned!()),
  frees("archives.closeUnowned", (stores) => stores.archives().closeUnowned!("x@example.com")),
  reads("archives.clockMs", (stores) => stores.archives().clockMs!()),
  reads("muc.read", (stores) => muc(stores).read(HALL)),
  reads("muc.messages", (stores) => muc(stores).messages(HALL, { limit: 1 })),
  reads("muc.unarchived", (stores) => muc(stores).unarchived(HALL, 1)),
  reads("muc.overdue", (stores) => muc(stores).overdue({ limit: 1, sentBeforeMs: 1 })),
  finds(
    "muc.markArchived",
    (stores) => muc(stores).markArchived(HALL, { creation: 1, number: 1 }),
  ),
  reads("roomNames.list", (stores) => stores.roomNames("muc").list({ limit: 1 })),
  reads("roomNames.existing", (stores) => stores.roomNames("muc_light").existing([ROOM])),
  reads("muc.list", (stores) => muc(stores).list({ limit: 1 })),
  writes(
    "muc.create",
    (stores) =>
      muc(stores).create(`${crypto.randomUUID()}@conference.example.com`, {
        config: "{}",
        isListed: true,
        affiliates: [],
        creator: BOB,
        maxCreated: 1_000,
      }),
  ),
  writes("muc.change", async (stores) => {
    const { version = 1 } = await muc(stores).read(HALL) ?? {};
    return await muc(stores).change(HALL, { expected: version, config: "{}" });
  }),
  writes(
    "muc.post",
    (stores) =>
      muc(stores).post(HALL, {
        id: crypto.randomUUID(),
        sentAtMs: 1,
        stanza: "<message/>",
        keep: 1,
      }),
  ),
  frees("muc.destroy", (stores) => muc(stores).destroy(HALL, 1)),
  frees("muc.removeUser", (stores) => muc(stores).removeUser("carol@example.com")),
  frees("archives.removeAll", (stores) => stores.archives().removeAll(BOB)),
  writes("secret", (stores) => stores.secret("fakes")),
];

/** Short times, so that a database that does not answer makes a short test. */
const IMPATIENT: PoolBounds = {
  workers: 2,
  maxWaiting: 2 * OPERATIONS.length,
  waitTimeoutMs: 800,
  connectTimeoutMs: 800,
  statementTimeoutMs: 800,
};

/** Runs all operations at once. Returns the code of the error of each, or "done". */
async function outcomes(stores: SqlStores): Promise<ReadonlyMap<string, string>> {
  return new Map(
    await Promise.all(
      OPERATIONS.map(async (each) => [each.name, await outcomeOf(each, stores)] as const),
    ),
  );
}

/** Runs one operation. Returns the code of its error, or "done". */
async function outcomeOf({ run }: Operation, stores: SqlStores): Promise<string> {
  try {
    await run(stores);
    return "done";
  } catch (thrown) {
    return String((thrown as { readonly code?: unknown }).code ?? thrown);
  }
}

/** Puts something there for the operations that change or remove what is there. */
async function seed(stores: SqlStores): Promise<void> {
  await users(stores).setPassword("alice", { ...conformanceCredentials(1), sha1: undefined });
  await stores.rosters().write(BOB, { expected: 0, contact: ALICE, item: conformanceItem(ALICE) });
  await stores.vcards("example.com").write("bob", "<vCard/>");
  const bounds = { maxMessages: 10, maxBytes: 10_000 };
  await offline(stores).keep("bob", [conformanceMessage("x")], bounds);
  await pep(stores).publish("bob", {
    node: "urn:x",
    expected: undefined,
    config: "{}",
    item: { id: "i", xml: "<x/>" },
    maxItems: 1,
  }, { maxNodes: 10, maxBytes: 1_000 });
  await rooms(stores).create(ROOM, {
    config: "{}",
    occupants: [{ jid: BOB, affiliation: "owner" }],
  });
  await muc(stores).create(HALL, {
    config: "{}",
    isListed: true,
    affiliates: [],
    creator: BOB,
    maxCreated: 1_000,
  });
}

function expectAll(found: ReadonlyMap<string, string>, code: RegExp): void {
  for (const [name, outcome] of found) assert.match(outcome, code, name);
}

/** Repeats all operations until each is done: a database comes back in its own time. */
async function untilDone(stores: SqlStores): Promise<void> {
  const endMs = performance.now() + 30_000;
  for (;;) {
    const found = await outcomes(stores);
    const failed = [...found].filter(([, outcome]) => outcome !== "done");
    if (failed.length === 0) return;
    if (performance.now() > endMs) assert.fail(`Still failing: ${failed.join("; ")}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await users(stores).remove("carol").catch(() => {}); // a later `users.add` adds the account again
  }
}

for (const kind of SERVER_KINDS) {
  const server = serverDuringTests(kind);
  const open = async (bounds: PoolBounds = PATIENT, at: TestServer = server()) => {
    const prepared = await preparedDatabase(at);
    {
      await using patient = new SqlStores(sqlServerDatabase(prepared));
      await users(patient).add("alice", conformanceCredentials(1));
    }
    const options = { ...prepared, bounds };
    const stores = new SqlStores(sqlServerDatabase(options));
    await untilReached(stores);
    return { options, stores, [Symbol.asyncDispose]: () => stores.close() };
  };

  Deno.test(`${kind.name}: every store names a database that is gone, and uses it again`, async () => {
    await using own = await TestServer.start(kind);
    await using fixture = await open(PATIENT, own);
    await own.kill();
    await assert.rejects(users(fixture.stores).exists("alice")); // notices that connections ended
    expectAll(await outcomes(fixture.stores), /^storage\/unreachable$/);
    await own.launch();
    await untilDone(fixture.stores);
  });

  Deno.test(`${kind.name}: every store gives up on a database that stands still, and no other waits`, async () => {
    await using other = await TestServer.start(kind);
    await using elsewhere = await open(PATIENT, other);
    await using fixture = await open(IMPATIENT);
    const resume = server().suspend();
    try {
      const waiting = outcomes(fixture.stores);
      expectAll(await outcomes(elsewhere.stores), /^done$/);
      expectAll(await waiting, /^storage\/(timeout|unreachable)$/);
    } finally {
      resume();
    }
    await untilReached(fixture.stores);
  });

  Deno.test(`${kind.name}: every store names a full pool, and those who wait already are served`, async () => {
    await using fixture = await open({ ...PATIENT, workers: 1, maxWaiting: 1 });
    const blocker = await server().connect(fixture.options.address.database);
    try {
      // Whoever has the only connection waits for this lock.
      await blocker.execute(kind.engine.dialect.begin);
      await blocker.execute(
        `UPDATE users SET sha1_iterations = 7 WHERE localpart = ${kind.text("alice")}`,
      );
      const holder = users(fixture.stores).setPassword("alice", conformanceCredentials(2));
      await turn();
      const waiter = users(fixture.stores).exists("alice");
      await turn();
      expectAll(await outcomes(fixture.stores), /^storage\/pool-full$/);
      await blocker.execute(kind.engine.dialect.rollback);
      assert.deepEqual(await Promise.all([holder, waiter]), [true, true]);
    } finally {
      await blocker.close();
    }
    await using calm = await open();
    await untilDone(calm.stores);
  });

  Deno.test(`${kind.name}: every store that writes names a read-only database, and the others read`, async () => {
    await using fixture = await open();
    const { database } = fixture.options.address;
    const setReadOnly = async (isOn: boolean) => {
      await server().asRoot(kind.setReadOnly(database, isOn));
      await server().endSessions(database); // PostgreSQL's sessions keep what they began with
    };
    await fixture.stores.rosters().write(BOB, {
      expected: 0,
      contact: ALICE,
      item: conformanceItem(ALICE),
    });
    const before = await fixture.stores.rosters().read(BOB);
    await setReadOnly(true);
    try {
      await untilReached(fixture.stores);
      const found = await outcomes(fixture.stores);
      for (const { name, isWrite } of OPERATIONS) {
        // A write that finds nothing to do need not fail.
        const expected = isWrite ? /^storage\/read-only$/ : /^done$/;
        assert.match(found.get(name)!, expected, name);
      }
      assert.deepEqual(await fixture.stores.rosters().read(BOB), before);
    } finally {
      await setReadOnly(false);
    }
    await untilReached(fixture.stores);
    await untilDone(fixture.stores);
  });

  Deno.test(`${kind.name}: every store refuses a schema that became newer than the program`, async () => {
    await using fixture = await open();
    const { options, stores } = fixture;
    const execute = (sql: string) => withConnection(options, (each) => each.execute(sql));
    await execute("INSERT INTO causeway_schema VALUES (99, 'x', 1)");
    assert.notEqual(stores.schemaVersion, 99);
    await stores.refreshSchemaVersion();
    assert.equal(stores.schemaVersion, 99);
    await execute("UPDATE causeway_schema_floor SET lowest = 99");
    await server().endSessions(options.address.database);
    await assert.rejects(users(stores).exists("alice")); // notices that its session has ended
    expectAll(await outcomes(stores), /^storage\/schema-too-new$/);
    await execute("UPDATE causeway_schema_floor SET lowest = 1");
    await untilDone(stores); // what was added does not concern it
  });

  Deno.test(`${kind.name}: a server that accepts no more connections is named, and open ones serve on`, async () => {
    await using own = await TestServer.start(kind);
    await using served = await open({ ...PATIENT, workers: 1 }, own);
    const held = [];
    try {
      for (;;) {
        try {
          const limits = { connectTimeoutMs: 30_000, statementTimeoutMs: 30_000 };
          held.push(await kind.engine.connect(served.options.address, limits));
        } catch {
          break; // that was one too many
        }
      }
      expectAll(await outcomes(served.stores), /^done$/);
      const late = { stores: new SqlStores(sqlServerDatabase(served.options)) };
      try {
        await assert.rejects(users(late.stores).exists("alice"), {
          code: "storage/too-many-connections",
          retryable: true,
          message: `Cannot connect to ${placeOf(served.options)}: it accepts no more connections`,
        });
      } finally {
        await late.stores.close();
      }
    } finally {
      await Promise.all(held.map((each) => each.close()));
    }
    await using again = new SqlStores(sqlServerDatabase(served.options));
    await untilDone(again);
  });

  Deno.test(`${kind.name}: every store that writes names a full disk, what it frees is freed, and the others read`, async () => {
    await using fixture = await open();
    const { options, stores } = fixture;
    await seed(stores);
    await server().fillDisk(options.address.database);
    const before = await stores.rosters().read(BOB);
    const wrong: string[] = [];
    // One after another: what is freed is freed last.
    const order = { room: 0, none: 1, frees: 2 } as const;
    for (const each of OPERATIONS.toSorted((a, b) => order[a.needs] - order[b.needs])) {
      const outcome = await outcomeOf(each, stores);
      const expected = each.needs === "room" ? "storage/full" : "done";
      if (outcome !== expected) wrong.push(`${each.name}: ${outcome}, not ${expected}`);
    }
    assert.deepEqual(wrong, []);
    assert.deepEqual(await stores.rosters().read(BOB), before);
  });

  Deno.test(`${kind.name}: a roster whose item cannot be written keeps its version`, async () => {
    await using fixture = await open();
    const { options, stores } = fixture;
    const { database } = options.address;
    const rosters = stores.rosters();
    const item = conformanceItem(BOB);
    const version = await rosters.write(ALICE, { expected: 0, contact: BOB, item });
    await server().failInsertions(database, { table: "roster_items" });
    const before = await rosters.read(ALICE);
    await assert.rejects(
      rosters.write(ALICE, {
        expected: version!,
        contact: BOB,
        item: conformanceItem(BOB, { subscription: "both" }),
      }),
      { code: "storage/full", retryable: true },
    );
    assert.deepEqual(await rosters.read(ALICE), before);
    await assert.rejects(
      rosters.write(BOB, { expected: 0, contact: ALICE, item: conformanceItem(ALICE) }),
      { code: "storage/full" },
    );
    assert.equal((await rosters.read(BOB)).version, 0, "no empty roster is left behind");
  });
}

/** Resolves when what needs no answer from elsewhere has been done. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Waits until a session that was ended has been replaced. */
async function untilReached(stores: SqlStores): Promise<void> {
  const endMs = performance.now() + 30_000;
  for (let good = 0; good < 3;) {
    try {
      await users(stores).exists("alice");
      good++;
    } catch (thrown) {
      if (performance.now() > endMs) throw thrown;
      good = 0;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
