import assert from "node:assert/strict";
import { Attribute, Change } from "ldapts";
import type { Client } from "ldapts";
import { DIRECTORY_BASE, DirectoryServer, personLdif } from "../../../harness/databases/mod.ts";
import { archiveKeyOf } from "../archive_store.ts";
import { listUsers } from "../user_store.ts";
import type { UserStore } from "../user_store.ts";
import {
  changeDirectory,
  directoryDuringTests,
  placeOf,
  poolOf,
  storesAt,
} from "./testing/directory.ts";

const CROWD = Array.from({ length: 1_300 }, (_, i) => `crowd${String(i).padStart(4, "0")}`);
/** Localparts with characters that mean something to filters, names or patterns. */
const HOSTILE = ["a*", "a(b", "a)(uid=", "back\\slash", "a|b", "%u", "é*ü", "plus+eq=,"];

/** Returns whether a password is right. */
async function isRight(users: UserStore, localpart: string, password: string): Promise<boolean> {
  return await users.checkPassword!(localpart, password) !== undefined;
}

const directory = directoryDuringTests({
  ldif: [
    personLdif({ uid: "Alice", password: "wonder land é" }),
    personLdif({ uid: "bob", password: "builder", attributes: { employeeType: "disabled" } }),
    personLdif({ uid: "nopassword" }),
    personLdif({ uid: "twin", password: "one" }),
    personLdif({ uid: "carol@example.com", password: "christmas" }),
    ...CROWD.map((uid) => personLdif({ uid })),
    ...HOSTILE.map((uid) => personLdif({ uid, password: `of ${uid}` })),
    personLdif({ uid: "twin2", password: "two", attributes: { mail: "twin" } }),
  ].join(""),
});

Deno.test("LdapUserStore checks passwords by logging in as the entry", async () => {
  await using stores = storesAt(poolOf(directory().port));
  const users = stores.users(placeOf(), "example.com");
  const check = (name: string, password: string) => isRight(users, name, password);
  assert.equal(await check("alice", "wonder land é"), true);
  assert.equal(await check("alice", "wonder land e"), false);
  assert.equal(await check("nobody", "wonder land é"), false);
  assert.equal(await check("nopassword", "x"), false);
  assert.equal(await check("", "x"), false);
});

Deno.test("LdapUserStore refuses an empty password, which the server takes for no login", async () => {
  await using stores = storesAt(poolOf(directory().port));
  const users = stores.users(placeOf(), "example.com");
  assert.equal(await isRight(users, "alice", ""), false);
});

Deno.test("LdapUserStore finds names with characters of filters, and no other name by them", async () => {
  await using stores = storesAt(poolOf(directory().port));
  const users = stores.users(placeOf(), "example.com");
  for (const name of HOSTILE.filter((each) => !/["&'/:<>@]/.test(each))) {
    assert.equal(await users.exists(name), true, name);
    assert.equal(await isRight(users, name, `of ${name}`), true, name);
    assert.equal(await isRight(users, name, "builder"), false, name);
  }
  for (
    const name of ["*", "b*", "bob)(uid=*", "*)(objectClass=*", "bob)", "bo\\62", "\0", "b\0b"]
  ) {
    assert.equal(await users.exists(name), false, name);
    assert.equal(await isRight(users, name, "builder"), false, name);
  }
});

Deno.test("LdapUserStore lists a directory page by page, beyond the limit of one answer", async () => {
  await using stores = storesAt(poolOf(directory().port));
  const users = stores.users(placeOf({ filter: "(uid=crowd*)" }), "example.com");
  assert.deepEqual(await Array.fromAsync(listUsers(users, 400)), CROWD);
  assert.deepEqual(await users.list({ after: "crowd1297", limit: 10 }), ["crowd1298", "crowd1299"]);
  const asked = [...CROWD.slice(0, 180), "nobody", "bob"];
  const found = await users.existing(asked);
  assert.deepEqual([...found.keys()].toSorted(), CROWD.slice(0, 180));
});

Deno.test("LdapUserStore applies the filters and formats of its configuration", async () => {
  await using stores = storesAt(poolOf(directory().port));
  const enabled = stores.users(
    placeOf({
      localFilter: { operation: "notequal", attribute: "employeeType", values: ["disabled"] },
    }),
    "example.com",
  );
  assert.equal(await enabled.exists("alice"), true);
  assert.equal(await enabled.exists("bob"), false);
  assert.equal(await isRight(enabled, "bob", "builder"), false);
  const uids = [{ attribute: "uid", format: "%u@example.com" }];
  const named = stores.users(placeOf({ uids }), "example.com");
  assert.equal(await isRight(named, "carol", "christmas"), true);
  assert.equal(await named.exists("alice"), false);
  const other = stores.users(placeOf({ filter: "(employeeType=disabled)" }), "example.com");
  assert.equal(await other.exists("bob"), true);
  assert.equal(await other.exists("alice"), false);
});

Deno.test("LdapUserStore refuses a name that two entries have", async () => {
  await using stores = storesAt(poolOf(directory().port));
  const uids = [{ attribute: "uid", format: "%u" }, { attribute: "mail", format: "%u" }];
  const users = stores.users(placeOf({ uids }), "example.com");
  await assert.rejects(users.checkPassword!("twin", "one"), { code: "storage/ambiguous" });
});

Deno.test("LdapUserStore changes nothing", async () => {
  await using stores = storesAt(poolOf(directory().port));
  const users = stores.users(placeOf(), "example.com");
  const credentials = { sha1: undefined, sha256: undefined! };
  for (
    const change of [
      users.add("new", credentials),
      users.remove("alice"),
      users.setPassword("alice", credentials),
      users.credentials("alice"),
    ]
  ) await assert.rejects(change, { code: "storage/managed-elsewhere" });
  assert.equal(await users.exists("alice"), true);
});

Deno.test("LdapUserStore tells an account from an earlier one of its name by entryUUID", async () => {
  await using stores = storesAt(poolOf(directory().port));
  const users = stores.users(placeOf(), "example.com");
  const creationOf = async () => (await users.existing(["newcomer"])).get("newcomer");
  const change = (work: (client: Client) => Promise<void>) =>
    changeDirectory(directory().port, work);
  const dn = `employeeNumber=4711,ou=people,${DIRECTORY_BASE}`;
  const add = (password: string) =>
    change((client) =>
      client.add(dn, {
        objectClass: "inetOrgPerson",
        cn: "New",
        sn: "Comer",
        uid: "newcomer",
        userPassword: password,
      })
    );
  assert.equal(await creationOf(), undefined);
  await add("first");
  const first = await creationOf();
  assert.match(first!, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  assert.deepEqual(await users.checkPassword!("newcomer", "first"), { creation: first });
  const mail = new Attribute({ type: "mail", values: ["new@example.com"] });
  await change((client) =>
    client.modify(dn, new Change({ operation: "replace", modification: mail }))
  );
  assert.equal(await creationOf(), first, "a change is no new account");

  await change((client) => client.del(dn));
  assert.equal(await creationOf(), undefined);
  await add("second");
  const second = await creationOf();
  assert.notEqual(second, first);
  assert.deepEqual(await users.checkPassword!("newcomer", "second"), { creation: second });
  const jid = "newcomer@example.com";
  assert.notEqual(archiveKeyOf(jid, second!), archiveKeyOf(jid, first!));
});

Deno.test("a backup of a directory is made while it is used, and restored with the ids of accounts", async () => {
  const asked = ["alice", "bob", "crowd0000", "crowd1299", "plus+eq=,"];
  const accountsAt = async (port: number) => {
    await using stores = storesAt(poolOf(port));
    const users = stores.users(placeOf(), "example.com");
    assert.equal(await isRight(users, "alice", "wonder land é"), true);
    assert.equal(await isRight(users, "alice", "wonder land e"), false);
    const names = await Array.fromAsync(listUsers(users, 400));
    return { names, creations: await users.existing(asked) };
  };
  const before = await accountsAt(directory().port);
  assert.deepEqual([...before.creations.keys()].toSorted(), asked);
  const backup = await directory().backUp();
  await using restored = await DirectoryServer.start({ ldif: backup, isBackup: true });
  assert.deepEqual(await accountsAt(restored.port), before);
});

Deno.test("LdapUserStore takes another attribute for the id, and none where an entry has none", async () => {
  await using stores = storesAt(poolOf(directory().port));
  const byType = stores.users(placeOf({ idAttribute: "employeeType" }), "example.com");
  assert.deepEqual(
    await byType.existing(["alice", "bob"]),
    new Map([["alice", ""], ["bob", "disabled"]]),
  );
  assert.deepEqual(await byType.checkPassword!("bob", "builder"), { creation: "disabled" });
  // Spaces and letters beyond ASCII do not belong in the keys of archives.
  const byName = stores.users(placeOf({ idAttribute: "cn" }), "example.com");
  const [id] = (await byName.existing(["crowd0001"])).values();
  assert.match(id!, /^[!-~]+$/);
});
