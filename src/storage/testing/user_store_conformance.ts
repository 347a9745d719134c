import assert from "node:assert/strict";
import type { CompleteCredentials, ScramCredentials } from "../../xmpp/sasl/mod.ts";
import type { UserStore } from "../user_store.ts";
import { listUsers } from "../user_store.ts";

/** One backend, empty, opened for one test. */
export interface UserStoreFixture extends AsyncDisposable {
  /** The accounts of a domain; each call may be answered by an object of its own. */
  users(domainpart: string): UserStore;
}

/** Credentials whose every part differs from those of another seed below 200. */
export function conformanceCredentials(seed: number): CompleteCredentials {
  const bytes = (length: number, offset: number) => new Uint8Array(length).fill(seed + offset);
  return {
    sha1: {
      salt: bytes(16, 1),
      iterations: 10_000 + seed,
      storedKey: bytes(20, 2),
      serverKey: bytes(20, 3),
    },
    sha256: {
      salt: bytes(24, 4),
      iterations: 20_000 + seed,
      storedKey: bytes(32, 5),
      serverKey: bytes(32, 6),
    },
  };
}

/** Returns the keys of an account, without what tells it from others of its name. */
export async function keysOf(
  users: Pick<UserStore, "credentials">,
  localpart: string,
): Promise<ScramCredentials | undefined> {
  const credentials = await users.credentials(localpart);
  if (credentials === undefined) return undefined;
  const { creation: _, ...keys } = credentials;
  return keys;
}

type Check = (fixture: UserStoreFixture) => Promise<void>;

const CHECKS: Readonly<Record<string, Check>> = {
  async "credentials() returns the credentials given to add()"(fixture) {
    const users = fixture.users("example.com");
    await users.add("alice", conformanceCredentials(1));
    await users.add("bob", conformanceCredentials(2));
    assert.deepEqual(await keysOf(users, "alice"), conformanceCredentials(1));
    assert.deepEqual(await keysOf(users, "bob"), conformanceCredentials(2));
  },

  async "add() keeps the creation of an account that moves here"(fixture) {
    const users = fixture.users("example.com");
    await users.add("alice", conformanceCredentials(1));
    const { creation } = (await users.credentials("alice"))!;
    const other = fixture.users("example.org");
    await other.add("alice", conformanceCredentials(1), { creation: creation! });
    assert.equal((await other.credentials("alice"))!.creation, creation);
    assert.deepEqual(await other.existing(["alice"]), new Map([["alice", creation]]));
    await other.add("bob", conformanceCredentials(2), { creation: "" });
    assert.deepEqual(await other.existing(["bob"]), new Map([["bob", ""]]));
    assert.equal(await other.setPassword("bob", conformanceCredentials(3), { creation: "" }), true);
  },

  async "add() keeps an account with one of the two keys, and setPassword() gives it both"(
    fixture,
  ) {
    const users = fixture.users("example.com");
    const { sha1, sha256 } = conformanceCredentials(1);
    const [alice, bob]: ScramCredentials[] = [
      { sha1, sha256: undefined },
      { sha1: undefined, sha256 },
    ];
    await users.add("alice", alice!);
    await users.add("bob", bob!);
    assert.deepEqual(await keysOf(users, "alice"), alice);
    assert.deepEqual(await keysOf(users, "bob"), bob);
    assert.equal(await users.setPassword("alice", conformanceCredentials(2)), true);
    assert.deepEqual(await keysOf(users, "alice"), conformanceCredentials(2));
    assert.equal(await users.setPassword("alice", bob!), true);
    assert.deepEqual(await keysOf(users, "alice"), bob, "takes the other key away");
  },

  async "complete() adds the key that an account lacks while it has the same password"(fixture) {
    const users = fixture.users("example.com");
    const whole = conformanceCredentials(1);
    await users.add("alice", { ...whole, sha256: undefined });
    await users.add("bob", { ...whole, sha1: undefined });
    await users.add("carol", { ...conformanceCredentials(2), sha256: undefined });
    await users.add("dave", conformanceCredentials(2));
    for (const name of ["alice", "bob", "carol", "dave", "nobody"]) {
      await users.complete(name, whole);
    }
    assert.deepEqual(await keysOf(users, "alice"), whole);
    assert.deepEqual(await keysOf(users, "bob"), whole);
    assert.deepEqual(await keysOf(users, "carol"), {
      ...conformanceCredentials(2),
      sha256: undefined,
    });
    assert.deepEqual(await keysOf(users, "dave"), conformanceCredentials(2));
    assert.equal(await users.exists("nobody"), false);
  },

  async "credentialShapes() counts the accounts of this domain by the shape of their keys"(
    fixture,
  ) {
    const users = fixture.users("example.com");
    assert.deepEqual(await users.credentialShapes(), []);
    const { sha1, sha256 } = conformanceCredentials(2);
    await users.add("alice", conformanceCredentials(1));
    await users.add("bob", conformanceCredentials(1));
    await users.add("carol", { sha1, sha256: undefined });
    await users.add("dave", { sha1: undefined, sha256 });
    await users.add("erin", { sha1, sha256: { ...sha256, salt: sha1.salt } });
    await fixture.users("other.example").add("frank", conformanceCredentials(3));
    const counted = (await users.credentialShapes()).map(({ shape, accounts }) => {
      const of = (secret: typeof shape.sha1) => secret && [secret.iterations, secret.saltBytes];
      return [of(shape.sha1), of(shape.sha256), shape.sharesSalt, accounts];
    });
    const inOrder = (rows: unknown[][]) => rows.map((row) => JSON.stringify(row)).sort();
    assert.deepEqual(
      inOrder(counted),
      inOrder([
        [[10_001, 16], [20_001, 24], false, 2],
        [[10_002, 16], undefined, false, 1],
        [undefined, [20_002, 24], false, 1],
        [[10_002, 16], [20_002, 16], true, 1],
      ]),
    );
  },

  async "an account that was never added is absent everywhere"(fixture) {
    const users = fixture.users("example.com");
    assert.equal(await users.exists("alice"), false);
    assert.equal(await keysOf(users, "alice"), undefined);
    assert.equal(await users.remove("alice"), false);
    assert.equal(await users.setPassword("alice", conformanceCredentials(1)), false);
    assert.deepEqual(await users.list(), []);
  },

  async "add() refuses an account that exists, and leaves it unchanged"(fixture) {
    const users = fixture.users("example.com");
    await users.add("alice", conformanceCredentials(1));
    await assert.rejects(
      users.add("alice", conformanceCredentials(2)),
      { code: "storage/user-exists", message: "Cannot add alice@example.com: the account exists" },
    );
    assert.deepEqual(await keysOf(users, "alice"), conformanceCredentials(1));
  },

  async "exactly one of many simultaneous add() calls succeeds"(fixture) {
    const users = fixture.users("example.com");
    const outcomes = await Promise.allSettled(
      Array.from({ length: 8 }, (_, seed) => users.add("alice", conformanceCredentials(seed))),
    );
    assert.equal(outcomes.filter((outcome) => outcome.status === "fulfilled").length, 1);
    assert.deepEqual(await users.list(), ["alice"]);
  },

  async "setPassword() replaces all parts"(fixture) {
    const users = fixture.users("example.com");
    await users.add("alice", conformanceCredentials(1));
    assert.equal(await users.setPassword("alice", conformanceCredentials(9)), true);
    assert.deepEqual(await keysOf(users, "alice"), conformanceCredentials(9));
  },

  async "remove() deletes one account, which may be added anew"(fixture) {
    const users = fixture.users("example.com");
    await users.add("alice", conformanceCredentials(1));
    await users.add("bob", conformanceCredentials(2));
    assert.equal(await users.remove("alice"), true);
    assert.equal(await users.remove("alice"), false);
    assert.equal(await users.exists("alice"), false);
    assert.deepEqual(await users.list(), ["bob"]);
    await users.add("alice", conformanceCredentials(3));
    assert.deepEqual(await keysOf(users, "alice"), conformanceCredentials(3));
  },

  async "domains do not see each other's accounts"(fixture) {
    const first = fixture.users("example.com");
    const second = fixture.users("dc1.example.com");
    await first.add("alice", conformanceCredentials(1));
    assert.equal(await second.exists("alice"), false);
    await second.add("alice", conformanceCredentials(2));
    assert.equal(await first.remove("alice"), true);
    assert.deepEqual(await keysOf(second, "alice"), conformanceCredentials(2));
    assert.deepEqual(await second.list(), ["alice"]);
  },

  async "two objects for one domain see each other's changes"(fixture) {
    await fixture.users("example.com").add("alice", conformanceCredentials(1));
    assert.equal(await fixture.users("example.com").exists("alice"), true);
  },

  async "localparts are compared exactly"(fixture) {
    const users = fixture.users("example.com");
    await users.add("alice", conformanceCredentials(1));
    for (const other of ["Alice", "alice ", "alicé", "alic", "alic%", "alic_"]) {
      assert.equal(await users.exists(other), false, other);
    }
  },

  async "localparts may hold anything that RFC 7622 allows"(fixture) {
    const users = fixture.users("example.com");
    const names = [
      ...["o'brien; drop table users", "用户", "a%b_c", "x".repeat(1023), "😀", "$1", "?", ":x"],
      ...["back\\slash\\", "`tick`", "[bracket]", "-- comment", "/* comment", "\u0301a", "ﬀ"],
    ];
    for (const [seed, name] of names.entries()) {
      await users.add(name, conformanceCredentials(seed));
    }
    for (const [seed, name] of names.entries()) {
      assert.deepEqual(await keysOf(users, name), conformanceCredentials(seed), name);
    }
    assert.deepEqual(new Set(await users.list()), new Set(names));
  },

  async "a localpart with NUL, which RFC 7622 forbids, harms nothing"(fixture) {
    const users = fixture.users("example.com");
    await users.add("alice", conformanceCredentials(1));
    for (const name of ["\0", "alice\0", "al\0ice"]) {
      assert.equal(await users.exists(name), false);
      assert.equal(await keysOf(users, name), undefined);
      assert.equal(await users.remove(name), false);
      assert.equal(await users.setPassword(name, conformanceCredentials(2)), false);
    }
    assert.deepEqual(await users.list(), ["alice"]);
    assert.deepEqual(await keysOf(users, "alice"), conformanceCredentials(1));
  },

  async "existing() returns those that have an account, of 500 at once"(fixture) {
    const users = fixture.users("example.com");
    const existing = async (names: readonly string[]) =>
      [...(await users.existing(names)).keys()].toSorted();
    assert.deepEqual(await existing([]), []);
    for (const name of ["alice", "bob", "ä😀'--"]) await users.add(name, conformanceCredentials(1));
    await fixture.users("other.example").add("dave", conformanceCredentials(1));
    const asked = ["alice", "ä😀'--", "Alice", "dave", "a\0b", ""];
    assert.deepEqual(await existing(asked), ["alice", "ä😀'--"]);
    for (const length of [1, 2, 8, 9, 64, 65]) {
      const some = ["bob", ...Array.from({ length: length - 1 }, (_, i) => `nobody${i}`)];
      assert.deepEqual(await existing(some), ["bob"], `${length}`);
    }
    const many = Array.from({ length: 499 }, (_, i) => `nobody${i}`);
    assert.deepEqual(await existing([...many, "bob"]), ["bob"]);
  },

  async "an account that is made again is told from the earlier one, whatever its password"(
    fixture,
  ) {
    const users = fixture.users("example.com");
    const creationOf = async () => {
      const creation = (await users.credentials("alice"))?.creation;
      assert.equal((await users.existing(["alice"])).get("alice"), creation);
      return creation;
    };
    await users.add("alice", { ...conformanceCredentials(1), sha1: undefined });
    const first = await creationOf();
    assert.ok(first);
    await users.complete("alice", conformanceCredentials(1));
    await users.setPassword("alice", conformanceCredentials(2));
    assert.equal(await creationOf(), first);
    assert.ok(first !== undefined);
    const ofFirst = { creation: first };
    assert.equal(await users.setPassword("alice", conformanceCredentials(3), ofFirst), true);
    await users.remove("alice");
    assert.equal(await users.setPassword("alice", conformanceCredentials(3), ofFirst), false);
    await users.add("alice", conformanceCredentials(2));
    assert.notEqual(await creationOf(), first);
    assert.equal(await users.setPassword("alice", conformanceCredentials(3), ofFirst), false);
    assert.equal(await users.remove("alice", ofFirst), false);
    assert.equal(await users.remove("alice", { creation: "" }), false);
    const { creation: _, ...keys } = (await users.credentials("alice"))!;
    assert.deepEqual(keys, conformanceCredentials(2));
    const second = await creationOf();
    assert.ok(second !== undefined);
    assert.equal(await users.remove("alice", { creation: second }), true);
    assert.equal(await users.remove("alice", { creation: second }), false);
    assert.equal(await users.exists("alice"), false);
  },

  async "setPassword() leaves credentials that are others than those that are meant"(fixture) {
    const users = fixture.users("example.com");
    const both = conformanceCredentials(1);
    const ofSha1: ScramCredentials = { sha1: both.sha1, sha256: undefined };
    const ofSha256: ScramCredentials = { sha1: undefined, sha256: both.sha256 };
    const shapes = [both, ofSha1, ofSha256];
    for (const [index, had] of shapes.entries()) {
      const name = `user${index}`;
      await users.add(name, had);
      const { creation = "" } = (await users.credentials(name))!;
      const next = conformanceCredentials(2);
      for (const credentials of [next, ...shapes.filter((shape) => shape !== had)]) {
        assert.equal(await users.setPassword(name, next, { creation, credentials }), false);
      }
      assert.deepEqual(await keysOf(users, name), had);
      assert.equal(await users.setPassword(name, next, { creation, credentials: had }), true);
      assert.deepEqual(await keysOf(users, name), next);
    }
  },

  async "list() orders names by their code points"(fixture) {
    const users = fixture.users("example.com");
    const names = ["a", "b", "z", "ä", "ﬀ", "😀", "-", "a-b", "ab"];
    for (const name of names) await users.add(name, conformanceCredentials(1));
    assert.deepEqual(
      await users.list(),
      ["-", "a", "a-b", "ab", "b", "z", "ä", "ﬀ", "😀"],
    );
  },

  async "list() pages in order without gap or repeat"(fixture) {
    const users = fixture.users("example.com");
    const names = Array.from(
      { length: 25 },
      (_, i) => `user${String(i * 7 % 25).padStart(2, "0")}`,
    );
    for (const name of names) await users.add(name, conformanceCredentials(1));
    const sorted = names.toSorted();
    assert.deepEqual(await users.list(), sorted);
    assert.deepEqual(await users.list({ limit: 10 }), sorted.slice(0, 10));
    assert.deepEqual(await users.list({ limit: 10, after: sorted[19]! }), sorted.slice(20));
    assert.deepEqual(await users.list({ limit: 5, after: "user24" }), []);
    for (const limit of [1, 5, 24, 25, 26]) {
      assert.deepEqual(await Array.fromAsync(listUsers(users, limit)), sorted, `limit ${limit}`);
    }
  },

  async "list() refuses a page of no accounts"(fixture) {
    await assert.rejects(fixture.users("example.com").list({ limit: 0 }), RangeError);
  },
};

/** Registers the tests that every `UserStore` passes unchanged; `open` gives an empty backend. */
export function userStoreConformance(name: string, open: () => Promise<UserStoreFixture>): void {
  for (const [behaviour, check] of Object.entries(CHECKS)) {
    Deno.test(`${name}: ${behaviour}`, async () => {
      await using fixture = await open();
      await check(fixture);
    });
  }
}
