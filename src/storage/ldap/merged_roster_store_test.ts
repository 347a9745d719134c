import assert from "node:assert/strict";
import { DIRECTORY_BASE, groupLdif, personLdif } from "../../../harness/databases/mod.ts";
import { InternalStore } from "../internal_store.ts";
import { rosterStoreConformance } from "../testing/roster_store_conformance.ts";
import type { RosterItem } from "../roster_store.ts";
import type { SharedRosterOptions } from "./shared_roster.ts";
import { directoryDuringTests, placeOf, poolOf, storesAt } from "./testing/directory.ts";

const MANY = Array.from({ length: 120 }, (_, i) => `member${String(i).padStart(3, "0")}`);

const directory = directoryDuringTests({
  ldif: [
    personLdif({ uid: "alice", attributes: { cn: "Alice" } }),
    personLdif({ uid: "Bob", attributes: { cn: "Bob B." } }),
    personLdif({ uid: "carol", attributes: { cn: "Carol" } }),
    personLdif({ uid: "o'neil)(cn=*", attributes: { cn: "O" } }),
    ...MANY.map((uid) => personLdif({ uid })),
    groupLdif("dev", "Developers (*)", ["alice", "bob", "o'neil)(cn=*", "ghost"]),
    groupLdif("choir", "Choir", ["bob", "alice"]),
    groupLdif("all", "Everybody", ["carol", ...MANY]),
    ...["alice", "carol"].map((uid) =>
      `dn: cn=of ${uid},ou=groups,${DIRECTORY_BASE}
objectClass: groupOfNames
ou: of names
member: employeeNumber=${
        [...uid].map((c) => c.charCodeAt(0).toString(16)).join("")
      },ou=people,${DIRECTORY_BASE}

`
    ),
  ].join(""),
});

const OPTIONS: SharedRosterOptions = {
  base: DIRECTORY_BASE,
  deref: "never",
  groupAttribute: "cn",
  groupDescription: "description",
  userDescription: "cn",
  userUid: "uid",
  memberAttribute: "memberUid",
  memberFormat: "%u",
  memberExpression: undefined,
  rosterFilter: "",
  groupFilter: "(&(objectClass=posixGroup)(cn=%g))",
  userFilter: "(&(objectClass=inetOrgPerson)(uid=%u))",
  filter: "",
  checksAccounts: true,
  hasOwnRoster: true,
  accounts: { maxValues: 100, lifetimeMs: 60_000 },
  groups: { maxValues: 100, lifetimeMs: 60_000 },
};

async function setUp(changes: Partial<SharedRosterOptions> = {}) {
  const file = await Deno.makeTempFile({ suffix: ".sqlite" });
  const internal = await InternalStore.open({ path: file });
  const stores = storesAt(poolOf(directory().port));
  const rosters = stores.rosters({ pool: "default", options: { ...OPTIONS, ...changes } }, {
    own: internal.rosters(),
    users: stores.users(placeOf(), "example.com"),
    domainpart: "example.com",
  });
  return {
    rosters,
    own: internal.rosters(),
    async [Symbol.asyncDispose]() {
      await stores.close();
      await internal.close();
      await Deno.remove(file);
    },
  };
}

const ITEM: RosterItem = {
  jid: "bob@example.com",
  name: "",
  groups: [],
  subscription: "none",
  isAsking: false,
  isApproved: false,
  isListed: true,
  request: undefined,
};

Deno.test("MergedRosterStore adds the members of an account's groups to its own contacts", async () => {
  await using world = await setUp();
  const { rosters } = world;
  const friend = { ...ITEM, jid: "dave@example.org", name: "Dave" };
  await rosters.write("alice@example.com", { expected: 0, contact: friend.jid, item: friend });
  const { items } = await rosters.read("alice@example.com");
  assert.deepEqual(
    items.map(({ jid, name, groups, subscription }) => ({ jid, name, groups, subscription })),
    [
      {
        jid: "bob@example.com",
        name: "Bob B.",
        groups: ["Choir", "Developers (*)"],
        subscription: "both",
      },
      { jid: "dave@example.org", name: "Dave", groups: [], subscription: "none" },
    ],
  );
  assert.equal(await rosters.subscription("alice@example.com", "bob@example.com"), "both");
  assert.equal(await rosters.subscription("bob@example.com", "alice@example.com"), "both");
  assert.equal(await rosters.subscription("alice@example.com", "carol@example.com"), undefined);
  const contacts = await rosters.contacts("alice@example.com");
  assert.deepEqual(contacts.map(({ jid, reverse }) => ({ jid, reverse })), [
    { jid: "bob@example.com", reverse: "both" },
  ]);
  assert.deepEqual((await rosters.read("stranger@example.com")).items, []);
});

Deno.test("MergedRosterStore refuses changes of a contact that the directory gives", async () => {
  await using world = await setUp();
  const { rosters, own } = world;
  const refused = { code: "storage/managed-elsewhere" };
  const { version } = await rosters.find("alice@example.com", "bob@example.com");
  const write = { expected: version, contact: "bob@example.com" };
  await assert.rejects(rosters.write("alice@example.com", { ...write, item: undefined }), refused);
  await assert.rejects(rosters.write("alice@example.com", { ...write, item: ITEM }), refused);
  const there = await rosters.fill("alice@example.com", [ITEM, { ...ITEM, jid: "x@example.org" }]);
  assert.deepEqual([...there], ["bob@example.com"]);
  assert.deepEqual((await own.read("alice@example.com")).items.map(({ jid }) => jid), [
    "x@example.org",
  ]);
});

Deno.test("MergedRosterStore merges an own item with that of the directory", async () => {
  await using world = await setUp();
  const { rosters, own } = world;
  const item = { ...ITEM, name: "Bobby", groups: ["Friends"], isAsking: true };
  await own.write("alice@example.com", { expected: 0, contact: item.jid, item });
  const found = await rosters.find("alice@example.com", "bob@example.com");
  assert.deepEqual(found.item, {
    ...item,
    groups: ["Friends", "Choir", "Developers (*)"],
    subscription: "both",
    isAsking: false,
  });
});

Deno.test("MergedRosterStore instead of the own roster lets nobody add a contact", async () => {
  await using world = await setUp({ hasOwnRoster: false });
  const { rosters, own } = world;
  const item = { ...ITEM, jid: "dave@example.org" };
  await own.write("alice@example.com", { expected: 0, contact: item.jid, item });
  const { items } = await rosters.read("alice@example.com");
  assert.deepEqual(items.map(({ jid }) => jid), ["bob@example.com"]);
  await assert.rejects(
    rosters.write("alice@example.com", { expected: 0, contact: item.jid, item }),
    { code: "storage/managed-elsewhere" },
  );
});

Deno.test("SharedRoster reads large groups, whoever the roster filter gives them to", async () => {
  await using world = await setUp({ rosterFilter: "(&(objectClass=posixGroup)(cn=all))" });
  const { items } = await world.rosters.read("alice@example.com");
  assert.deepEqual(
    items.map(({ jid }) => jid),
    ["carol", ...MANY].map((name) => `${name}@example.com`),
  );
});

Deno.test("SharedRoster finds members by distinguished names", async () => {
  await using world = await setUp({
    groupAttribute: "ou",
    groupDescription: "ou",
    memberAttribute: "member",
    memberFormat: `employeeNumber=%u,ou=people,${DIRECTORY_BASE}`,
    rosterFilter: "(objectClass=groupOfNames)",
    groupFilter: "(&(objectClass=groupOfNames)(ou=%g))",
    userFilter: "(employeeNumber=%u)",
  });
  const { items } = await world.rosters.read("bob@example.com");
  assert.deepEqual(items.map(({ jid, groups }) => [jid, groups]), [
    ["alice@example.com", ["of names"]],
    ["carol@example.com", ["of names"]],
  ]);
});

rosterStoreConformance("MergedRosterStore without shared groups", async () => {
  const world = await setUp({ rosterFilter: "(cn=no such group)" });
  return {
    rosters: () => world.rosters,
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
});
