import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { join } from "node:path";
import { copyAccounts } from "./copy_accounts.ts";
import { copiableKinds, copyData, refuseEmptySource } from "./copy_data.ts";
import type { CopiedKind, CopyOptions } from "./copy_data.ts";
import type { DataStores } from "./data_stores.ts";
import { InternalStore } from "./internal_store.ts";
import { RiakFixture, riakPool } from "./riak/testing/riak.ts";
import { importMarkName } from "./offline_store.ts";
import type { StoresOptions } from "./stores.ts";
import { conformanceMessage } from "./testing/offline_store_conformance.ts";
import { conformanceItem } from "./testing/roster_store_conformance.ts";
import { conformanceCredentials } from "./testing/user_store_conformance.ts";

const HOST = "example.com";
const NAMES = ["alice", "bob", "ünal", "zoë"];
const BOUNDS = { maxElements: 10, maxMessages: 10, maxBytes: 10_000 };

/** A built-in store in a directory of its own, beside the Riak of a test. */
class Databases implements AsyncDisposable {
  readonly options: StoresOptions;
  readonly internal: InternalStore;
  readonly #directory: string;

  private constructor(directory: string, options: StoresOptions, internal: InternalStore) {
    this.#directory = directory;
    this.options = options;
    this.internal = internal;
  }

  static async make({ double: { port } }: RiakFixture): Promise<Databases> {
    const directory = await Deno.makeTempDir({ prefix: "causeway-copy-" });
    const internal = { path: join(directory, "store.sqlite") };
    const options: StoresOptions = {
      internal,
      pools: new Map(),
      users: new Map([[HOST, { backend: "internal" }]]),
      serverPools: new Map([["riak.default", riakPool([port]).options]]),
    };
    return new Databases(directory, options, await InternalStore.open(internal));
  }

  /** Copies all kinds, and returns the numbers of the copies by table. */
  async copy(from: string, to: string, options: Partial<CopyOptions> = {}) {
    const reports = [];
    for (const kind of copiableKinds(from, to)) {
      reports.push(...await copyData(this.options, { kind, from, to, ...options }));
    }
    return new Map(reports.map(({ table, source, destination, ...counts }) => {
      if (counts.kept === 0) deepEqual(destination, source, table);
      return [table, counts];
    }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.internal.close();
    await Deno.remove(this.#directory, { recursive: true });
  }
}

async function fill(stores: DataStores): Promise<void> {
  for (const [i, name] of NAMES.entries()) {
    const { sha1, sha256 } = conformanceCredentials(i);
    await stores.users!(HOST).add(name, i === 1 ? { sha1, sha256: undefined } : { sha1, sha256 });
  }
  for (const name of ["alice", "ünal"]) {
    const xml = "<x xmlns='urn:x'>😀 \\ ' &amp;</x>";
    await stores.privateStorage!(HOST).change(
      name,
      [{ namespace: "urn:x", name: "x", xml }],
      BOUNDS,
    );
    await stores.vcards!(HOST).write(name, "<vCard xmlns='vcard-temp'><FN>😀</FN></vCard>");
    await stores.lastLogouts!(HOST).note([{ localpart: name, atMs: 1.7e12, status: "ß😀" }]);
    for (const list of ["one", "two 😀"]) {
      const { version: expected } = await stores.privacyLists!(HOST).read(name);
      await stores.privacyLists!(HOST).write(name, {
        expected,
        defaultName: "one",
        list: { name: list, xml: `<list name='${list}'/>` },
      });
    }
    await stores.offlineMessages!(HOST).keep(
      name,
      ["one", "two 😀"].map((text, i) => ({
        ...conformanceMessage(
          `<message from='eve@example.org/x' to='${name}@${HOST}'><body>${text}</body></message>`,
        ),
        expiresAtMs: 4e12 + i,
      })),
      BOUNDS,
    );
    await stores.rosters!().fill(`${name}@${HOST}`, [
      conformanceItem("bob@example.com", { subscription: "both", groups: ["b", "a"] }),
      conformanceItem("ünal@example.org", { request: new Uint8Array([0, 255]), isListed: false }),
    ]);
  }
}

/** Returns what one reads of all accounts, without versions of rosters and lists. */
async function contentOf(stores: DataStores): Promise<unknown> {
  return await Promise.all([...NAMES, "nobody"].map(async (name) => {
    const { items } = await stores.rosters!().read(`${name}@${HOST}`);
    const { defaultName, lists } = await stores.privacyLists!(HOST).read(name);
    const waiting = await stores.offlineMessages!(HOST).all(name);
    return {
      credentials: await stores.users!(HOST).credentials(name),
      items: items.map(({ version: _, ...item }) => item)
        .toSorted((one, other) => one.jid < other.jid ? -1 : 1),
      privacy: [
        defaultName,
        lists.map(({ name, xml }) => [name, xml]).toSorted(),
      ],
      private: (await stores.privateStorage!(HOST).all(name)).toSorted(),
      vcard: await stores.vcards!(HOST).read(name),
      last: await stores.lastLogouts!(HOST).read(name),
      offline: waiting.map(({ sequence: _, ...message }) => message),
    };
  }));
}

const NONE = { added: 0, same: 0, replaced: 0, removed: 0, kept: 0, keptNames: [] };
const TABLES = [
  "rosters",
  "private_storage",
  "vcards",
  "last_activity",
  "privacy",
  "offline_messages",
];

Deno.test("copyData() takes accounts with all their data from the built-in store to Riak, and back", async () => {
  await using riak = await RiakFixture.open();
  await using databases = await Databases.make(riak);
  await using elsewhere = await Databases.make(riak);
  await fill(databases.internal);
  const content = await contentOf(databases.internal);
  const copied = await databases.copy("internal", "riak.default");
  deepEqual([...copied.keys()], ["users", "secrets", ...TABLES, "archives", "room_archives"]);
  deepEqual(copied.get("users"), { ...NONE, added: 4 });
  for (const table of TABLES) deepEqual(copied.get(table), { ...NONE, added: 2 }, table);
  deepEqual(await contentOf(riak.stores()), content);
  const again = await databases.copy("internal", "riak.default");
  deepEqual(again.get("users"), { ...NONE, same: 4 });
  for (const table of TABLES) deepEqual(again.get(table), { ...NONE, same: 2 }, table);
  // Another built-in store, which has no account: those of the source count.
  await elsewhere.copy("riak.default", "internal");
  deepEqual(await contentOf(elsewhere.internal), content);
  deepEqual(
    await elsewhere.internal.secret("enumeration"),
    await databases.internal.secret("enumeration"),
  );
});

Deno.test("copyData() to Riak keeps what differs and names it, replaces it, or mirrors the source", async () => {
  await using riak = await RiakFixture.open();
  await using databases = await Databases.make(riak);
  await fill(databases.internal);
  await databases.copy("internal", "riak.default");
  const there = riak.stores();
  await there.users(HOST).setPassword("bob", conformanceCredentials(9));
  await there.vcards(HOST).write("alice", "<other/>");
  const { version: expected } = await there.rosters().find("alice@example.com", "eve@example.com");
  const item = conformanceItem("eve@example.com");
  await there.rosters().write("alice@example.com", { expected, contact: item.jid, item });
  const changed = await contentOf(there);
  const kept = await databases.copy("internal", "riak.default");
  deepEqual(kept.get("users"), { ...NONE, same: 3, kept: 1, keptNames: ["bob@example.com"] });
  for (const table of ["vcards", "rosters"]) {
    deepEqual(kept.get(table), { ...NONE, same: 1, kept: 1, keptNames: ["alice@example.com"] });
  }
  deepEqual(await contentOf(there), changed);

  const replaced = await databases.copy("internal", "riak.default", { differing: "replace" });
  deepEqual(replaced.get("users"), { ...NONE, same: 3, replaced: 1 });
  deepEqual(replaced.get("rosters"), { ...NONE, same: 1, replaced: 1 });
  deepEqual(await contentOf(there), await contentOf(databases.internal));

  // The service went on: an account came, and one went.
  await databases.internal.users(HOST).add("newcomer", conformanceCredentials(5));
  await databases.internal.users(HOST).remove("bob");
  await databases.internal.vcards(HOST).remove("alice");
  const last = await databases.copy("internal", "riak.default", { differing: "mirror" });
  deepEqual(last.get("users"), { ...NONE, same: 3, added: 1, removed: 1 });
  deepEqual(last.get("vcards"), { ...NONE, same: 1, removed: 1 });
  deepEqual(await there.users(HOST).list(), ["alice", "newcomer", "zoë", "ünal"]);
  deepEqual(await contentOf(there), await contentOf(databases.internal));
});

Deno.test("copyData() refuses two pools of one Riak, and copies from one Riak to another", async () => {
  await using riak = await RiakFixture.open();
  await using other = await RiakFixture.open();
  await using databases = await Databases.make(riak);
  await fill(databases.internal);
  await databases.copy("internal", "riak.default");
  const pools = { default: riak, again: riak, other };
  const serverPools = new Map(
    Object.entries(pools).map(([tag, { double }]) => [
      `riak.${tag}`,
      riakPool([double.port]).options,
    ]),
  );
  const options = { ...databases.options, serverPools };
  const copy = { kind: "users", from: "riak.default" } as const;
  await rejects(copyData(options, { ...copy, to: "riak.again" }), {
    code: "storage/no-backend",
    message: /: both are the same database; /,
  });
  for (const kind of copiableKinds("riak.default", "riak.other")) {
    for (const { kept } of await copyData(options, { ...copy, kind, to: "riak.other" })) {
      equal(kept, 0);
    }
  }
  deepEqual(await contentOf(other.stores()), await contentOf(databases.internal));
});

Deno.test("refuseEmptySource() looks for data of accounts in Riak", async () => {
  await using riak = await RiakFixture.open();
  await using databases = await Databases.make(riak);
  await databases.internal.users(HOST).add("alice", conformanceCredentials(1));
  await databases.internal.vcards(HOST).write("alice", "<vCard/>");
  const refused = async (from: string, to: string) => {
    const options = { from, to, kinds: ["vcard"] } as const;
    return await refuseEmptySource(databases.options, options).then(() => "", ({ code }) => code);
  };
  const [full, empty] = ["internal", "riak.default"];
  deepEqual([await refused(full, empty), await refused(empty, full)], ["", "storage/empty-source"]);
  await riak.stores().vcards(HOST).write("alice", "<vCard/>");
  deepEqual(await refused(empty, full), "");
});

Deno.test("copyData() takes the marks of imports to Riak and back", async () => {
  await using riak = await RiakFixture.open();
  await using databases = await Databases.make(riak);
  await using elsewhere = await Databases.make(riak);
  const marks = ["an import", "[]"].map((text) => ({
    ...conformanceMessage(text),
    sender: HOST,
    expiresAtMs: 4e12,
  }));
  const kinds = ["offline"] as const;
  for (const { internal } of [databases, elsewhere]) {
    await internal.users(HOST).add("alice", conformanceCredentials(1));
  }
  const name = importMarkName("alice");
  await databases.internal.offlineMessages(HOST).keep(name, marks, BOUNDS);
  const copied = await databases.copy("internal", "riak.default", { differing: "mirror" });
  deepEqual(copied.get("offline_messages"), { ...NONE, added: 1 });
  const textsIn = async (stores: DataStores): Promise<readonly string[]> =>
    (await stores.offlineMessages!(HOST).all(name))
      .map(({ stanza }) => new TextDecoder().decode(stanza));
  deepEqual(await textsIn(riak.stores()), ["an import", "[]"]);

  // They are all that there is, and yet something.
  const back = { from: "riak.default", to: "internal" };
  await refuseEmptySource(databases.options, { ...back, kinds });
  await rejects(
    refuseEmptySource(elsewhere.options, { from: "internal", to: "riak.default", kinds }),
    { code: "storage/empty-source" },
  );
  await copyData(elsewhere.options, { ...back, kind: "offline" });
  deepEqual(await textsIn(elsewhere.internal), ["an import", "[]"]);
});

Deno.test("copyData() to Riak is continued after it was interrupted", async () => {
  await using riak = await RiakFixture.open();
  await using databases = await Databases.make(riak);
  const users = databases.internal.users(HOST);
  for (let i = 0; i < 40; i++) await users.add(`user${i}`, conformanceCredentials(i));
  const node = riak.double.nodes[0]!;
  const copy = { kind: "users", from: "internal", to: "riak.default" } as const;
  const seen: number[] = [];
  await rejects(
    copyData(databases.options, {
      ...copy,
      progress(_table, done, total) {
        seen.push(done);
        equal(total, undefined);
        if (done >= 16) node.refusal = { status: 503 };
      },
    }),
    { code: "storage/overloaded" },
  );
  deepEqual(seen, [8, 16]);
  node.refusal = undefined;
  const [report] = await copyData(databases.options, copy);
  ok(report!.same >= 16);
  equal(report!.same + report!.added, 40);
  deepEqual(report!.source, report!.destination);
});

Deno.test("copyData() to Riak is continued wherever it was interrupted, and keeps nothing back", async () => {
  await using riak = await RiakFixture.open();
  await using databases = await Databases.make(riak);
  await fill(databases.internal);
  const { version: expected } = await databases.internal.privacyLists(HOST).read("alice");
  await databases.internal.privacyLists(HOST).write("alice", {
    expected,
    defaultName: "one",
    list: { name: "three", xml: "<list name='three'/>" },
  });
  const node = riak.double.nodes[0]!;
  const attempt = async (kind: CopiedKind, requests: number): Promise<boolean> => {
    let left = requests;
    node.onRequest = () => {
      node.refusal = left-- > 0 ? undefined : { status: 503 };
    };
    const copy = { kind, from: "internal", to: "riak.default" } as const;
    try {
      for (const { table, kept, source, destination } of await copyData(databases.options, copy)) {
        deepEqual([kept, destination], [0, source], table);
      }
      return true;
    } catch (thrown) {
      if ((thrown as { readonly code?: string }).code === "storage/overloaded") return false;
      throw thrown;
    } finally {
      node.onRequest = () => {};
      node.refusal = undefined;
    }
  };
  // Each attempt gets one more request to Riak than the one before, until one comes to its end.
  for (const kind of copiableKinds("internal", "riak.default")) {
    let requests = 1;
    while (!await attempt(kind, requests)) requests++;
    ok(requests > 1, kind);
  }
  deepEqual(await contentOf(riak.stores()), await contentOf(databases.internal));
});

Deno.test("copyAccounts() names data that others change all the time", async () => {
  await using riak = await RiakFixture.open();
  await using databases = await Databases.make(riak);
  await fill(databases.internal);
  const to = Object.assign(riak.stores(), {
    privacyLists: () => ({
      read: () => Promise.resolve({ version: 1, defaultName: undefined, lists: [] }),
      write: () => Promise.resolve(undefined),
      removeAll: () => Promise.resolve(),
    }),
  });
  const accounts = ReadableStream.from([{ localpart: "alice", host: HOST }]);
  await rejects(
    copyAccounts({ kind: "privacy", from: databases.internal, to, accounts, differing: "keep" }),
    { code: "storage/conflict", retryable: true },
  );
});
