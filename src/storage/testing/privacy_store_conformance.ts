import assert from "node:assert/strict";
import type { PrivacyStore } from "../privacy_store.ts";
import { AWKWARD_TEXTS } from "./awkward_texts.ts";

/** One backend, empty, opened for one test. */
export interface PrivacyStoreFixture extends AsyncDisposable {
  /** The privacy lists of a domain; each call may be answered by an object of its own. */
  privacyLists(domainpart: string): PrivacyStore;
}

const NOTHING = { version: 0, defaultName: undefined, lists: [] };

type Check = (fixture: PrivacyStoreFixture) => Promise<void>;

const CHECKS: Readonly<Record<string, Check>> = {
  async "read() returns what write() has written, until removeAll()"(fixture) {
    const store = fixture.privacyLists("example.com");
    assert.deepEqual(await store.read("alice"), NOTHING);
    const first = await store.write("alice", {
      expected: 0,
      defaultName: "a",
      list: { name: "a", xml: "<list/>" },
    });
    assert.ok(first !== undefined && first > 0);
    const second = await store.write("alice", {
      expected: first,
      defaultName: "a",
      list: { name: "b", xml: "<list>b</list>" },
    });
    assert.ok(second !== undefined && second > first);
    const { lists, ...rest } = await store.read("alice");
    assert.deepEqual(rest, { version: second, defaultName: "a" });
    assert.deepEqual(lists.toSorted((one, other) => one.name < other.name ? -1 : 1), [
      { name: "a", xml: "<list/>" },
      { name: "b", xml: "<list>b</list>" },
    ]);
    const third = await store.write("alice", {
      expected: second,
      defaultName: undefined,
      list: { name: "a", xml: undefined },
    });
    assert.deepEqual(await store.read("alice"), {
      version: third,
      defaultName: undefined,
      lists: [{ name: "b", xml: "<list>b</list>" }],
    });
    await store.removeAll("alice");
    await store.removeAll("alice");
    assert.deepEqual(await store.read("alice"), NOTHING);
  },

  async "write() changes a list, or the name of the default list alone"(fixture) {
    const store = fixture.privacyLists("example.com");
    let expected = 0;
    for (const xml of ["<one/>", "<two/>"]) {
      const write = { expected, defaultName: undefined, list: { name: "a", xml } };
      expected = (await store.write("alice", write))!;
    }
    const version = await store.write("alice", { expected, defaultName: "a" });
    assert.deepEqual(await store.read("alice"), {
      version,
      defaultName: "a",
      lists: [{ name: "a", xml: "<two/>" }],
    });
  },

  async "write() changes nothing when the version is another one"(fixture) {
    const store = fixture.privacyLists("example.com");
    const write = (expected: number, xml: string) =>
      store.write("alice", { expected, defaultName: "a", list: { name: "a", xml } });
    assert.equal(await write(7, "<never/>"), undefined);
    const version = (await write(0, "<first/>"))!;
    assert.equal(await write(0, "<second/>"), undefined);
    assert.equal(await write(version + 1, "<third/>"), undefined);
    assert.deepEqual((await store.read("alice")).lists, [{ name: "a", xml: "<first/>" }]);
  },

  async "changes that several nodes make at the same moment lose nothing"(fixture) {
    const stores = [fixture.privacyLists("example.com"), fixture.privacyLists("example.com")];
    const names = Array.from({ length: 12 }, (_, i) => `list${i}`);
    await Promise.all(names.map(async (name, index) => {
      const store = stores[index % 2]!;
      for (;;) {
        const { version: expected } = await store.read("alice");
        const write = { expected, defaultName: name, list: { name, xml: `<${name}/>` } };
        if (await store.write("alice", write) !== undefined) return;
      }
    }));
    const { lists } = await stores[0]!.read("alice");
    assert.deepEqual(lists.map(({ name }) => name).toSorted(), names.toSorted());
  },

  async "accounts and domains have lists of their own"(fixture) {
    const [store, other] = [
      fixture.privacyLists("example.com"),
      fixture.privacyLists("example.org"),
    ];
    const write = { expected: 0, defaultName: "a", list: { name: "a", xml: "<a/>" } };
    for (const [at, who] of [[store, "alice"], [store, "bob"], [other, "alice"]] as const) {
      await at.write(who, write);
    }
    await store.removeAll("alice");
    assert.deepEqual(await store.read("alice"), NOTHING);
    assert.equal((await store.read("bob")).defaultName, "a");
    assert.equal((await other.read("alice")).defaultName, "a");
  },

  async "versions() returns those of the accounts that have ever had a list"(fixture) {
    const store = fixture.privacyLists("example.com");
    assert.deepEqual(await store.versions([]), new Map());
    const version = await store.write("alice", { expected: 0, defaultName: undefined });
    const names = ["alice", "bob", ...Array.from({ length: 500 }, (_, i) => `user${i}`)];
    assert.deepEqual(await store.versions(names), new Map([["alice", version]]));
  },

  async "metacharacters, NUL and characters beyond the BMP are kept as they are"(fixture) {
    const store = fixture.privacyLists("'; --");
    for (const text of AWKWARD_TEXTS) {
      const list = { name: text, xml: `${text}${text}` };
      const version = await store.write(text, { expected: 0, defaultName: text, list });
      assert.deepEqual(await store.read(text), { version, defaultName: text, lists: [list] });
      assert.deepEqual(await store.versions([text]), new Map([[text, version]]));
    }
  },

  async "a list of 1 MiB comes back whole"(fixture) {
    const store = fixture.privacyLists("example.com");
    const list = { name: "a", xml: "😀".repeat(262_144) };
    await store.write("alice", { expected: 0, defaultName: undefined, list });
    assert.deepEqual((await store.read("alice")).lists, [list]);
  },
};

/** Registers the tests that every `PrivacyStore` passes unchanged; `open` gives an empty backend. */
export function privacyStoreConformance(
  name: string,
  open: () => Promise<PrivacyStoreFixture>,
): void {
  for (const [behaviour, check] of Object.entries(CHECKS)) {
    Deno.test(`${name}: privacy lists: ${behaviour}`, async () => {
      await using fixture = await open();
      await check(fixture);
    });
  }
}
