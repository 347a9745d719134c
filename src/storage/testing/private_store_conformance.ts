import assert from "node:assert/strict";
import type { PrivateBounds, PrivateChange, PrivateStore } from "../private_store.ts";
import { AWKWARD_TEXTS, MEGABYTE_XML } from "./awkward_texts.ts";

/** One backend, empty, opened for one test. */
export interface PrivateStoreFixture extends AsyncDisposable {
  /** The private storage of a domain; each call may be answered by an object of its own. */
  privateStorage(domainpart: string): PrivateStore;
}

const ROOMY: PrivateBounds = { maxElements: 1000, maxBytes: 16_777_216 };
const BOOKMARKS = { namespace: "storage:bookmarks", name: "storage" };
const NOTES = { namespace: "storage:rosternotes", name: "storage" };
const THIRD = { namespace: "urn:example", name: "third" };

type Check = (fixture: PrivateStoreFixture) => Promise<void>;

const CHECKS: Readonly<Record<string, Check>> = {
  async "read() returns what change() wrote, for each name by itself"(fixture) {
    const store = fixture.privateStorage("example.com");
    assert.equal(await store.read("alice", BOOKMARKS), undefined);
    assert.equal(
      await store.change("alice", [put(BOOKMARKS, "one"), put(NOTES, "two")], ROOMY),
      "done",
    );
    assert.equal(await store.read("alice", BOOKMARKS), "one");
    assert.equal(await store.read("alice", NOTES), "two");
    const other = { ...BOOKMARKS, name: "Storage" };
    assert.equal(await store.read("alice", other), undefined, "names differ by case");
    const shifted = { namespace: "bookmarks", name: "storage storage:" };
    assert.equal(await store.read("alice", shifted), undefined);
  },

  async "change() replaces and removes single elements"(fixture) {
    const store = fixture.privateStorage("example.com");
    await store.change("alice", [put(BOOKMARKS, "one"), put(NOTES, "two")], ROOMY);
    await store.change("alice", [put(BOOKMARKS, "three")], ROOMY);
    await store.change("alice", [{ ...NOTES, xml: undefined }], ROOMY);
    assert.deepEqual(await store.all("alice"), ["three"]);
    await store.change("alice", [{ ...NOTES, xml: undefined }], ROOMY);
    await store.change("alice", [put(NOTES, "four"), put(NOTES, "five")], ROOMY);
    assert.equal(await store.read("alice", NOTES), "five");
  },

  async "change() changes nothing when one of the elements is not the expected one"(fixture) {
    const store = fixture.privateStorage("example.com");
    await store.change("alice", [put(BOOKMARKS, "one"), put(NOTES, "two")], ROOMY);
    const refused: readonly (readonly PrivateChange[])[] = [
      [{ ...put(BOOKMARKS, "three"), expected: "one" }, { ...put(NOTES, "x"), expected: "one" }],
      [{ ...put(BOOKMARKS, "three"), expected: "one" }, { ...put(NOTES, "x"), expected: null }],
      [{ ...put(THIRD, "three"), expected: "" }],
      [{ ...BOOKMARKS, xml: undefined, expected: "On" }],
      [{ ...BOOKMARKS, xml: undefined, expected: null }],
    ];
    for (const changes of refused) {
      assert.equal(await store.change("alice", changes, ROOMY), "changed");
      assert.deepEqual(new Set(await store.all("alice")), new Set(["one", "two"]));
    }
  },

  async "change() replaces, adds and removes elements that are the expected ones"(fixture) {
    const store = fixture.privateStorage("example.com");
    await store.change("alice", [put(BOOKMARKS, "one"), put(NOTES, "two")], ROOMY);
    const changes = [
      { ...put(BOOKMARKS, "three"), expected: "one" },
      { ...NOTES, xml: undefined, expected: "two" },
      { ...put(THIRD, "four"), expected: null },
      { ...put(THIRD, "five"), expected: null },
    ];
    assert.equal(await store.change("alice", changes, ROOMY), "done");
    assert.deepEqual(new Set(await store.all("alice")), new Set(["three", "five"]));
    assert.equal(await store.change("alice", changes, ROOMY), "changed");
    const low = { maxElements: 1, maxBytes: 1 };
    assert.equal(
      await store.change("alice", [{ ...put(NOTES, "x"), expected: null }], low),
      "full",
    );
  },

  async "of changes that expect the same elements at the same moment one is made"(fixture) {
    const store = fixture.privateStorage("example.com");
    await store.change("alice", [put(BOOKMARKS, "one")], ROOMY);
    const writers = Array.from({ length: 4 }, (_, i) => `${i}`);
    for (const name of [BOOKMARKS, NOTES]) {
      const expected = name === BOOKMARKS ? "one" : null;
      const outcomes = await Promise.all(
        writers.map((xml) => store.change("alice", [{ ...put(name, xml), expected }], ROOMY)),
      );
      assert.deepEqual(outcomes.toSorted(), ["changed", "changed", "changed", "done"]);
      assert.equal(await store.read("alice", name), writers[outcomes.indexOf("done")]);
    }
  },

  async "accounts and domains do not share their storage"(fixture) {
    const [store, other] = ["example.com", "example.org"].map((name) =>
      fixture.privateStorage(name)
    ) as [PrivateStore, PrivateStore];
    await store.change("alice", [put(BOOKMARKS, "one")], ROOMY);
    await store.change("bob", [put(BOOKMARKS, "two")], ROOMY);
    await other.change("alice", [put(BOOKMARKS, "three")], ROOMY);
    assert.deepEqual(await store.all("alice"), ["one"]);
    await store.removeAll("alice");
    await store.removeAll("nobody");
    assert.deepEqual(await store.all("alice"), []);
    assert.deepEqual(await store.all("bob"), ["two"]);
    assert.deepEqual(await other.all("alice"), ["three"]);
  },

  async "change() refuses what exceeds the bounds, and changes nothing then"(fixture) {
    const store = fixture.privateStorage("example.com");
    const bounds = { maxElements: 2, maxBytes: 10 };
    const xml = "12345";
    assert.equal(
      await store.change("alice", [put(BOOKMARKS, xml), put(NOTES, xml)], bounds),
      "done",
    );
    assert.equal(await store.change("alice", [put(THIRD, "")], bounds), "full");
    assert.equal(await store.change("alice", [put(NOTES, `${xml}6`)], bounds), "full");
    assert.equal(await store.change("alice", [put(NOTES, "1234é")], bounds), "full", "bytes count");
    const both = [put(BOOKMARKS, "1234"), put(THIRD, "5")];
    assert.equal(await store.change("alice", both, bounds), "full");
    assert.deepEqual(new Set(await store.all("alice")), new Set([xml]));
    assert.equal((await store.all("alice")).length, 2);
    const exchange = [{ ...NOTES, xml: undefined }, put(THIRD, xml)];
    assert.equal(await store.change("alice", exchange, bounds), "done");
    assert.equal(await store.read("alice", THIRD), xml);
    assert.equal(
      await store.change("bob", [put(BOOKMARKS, xml)], bounds),
      "done",
      "has its own room",
    );
  },

  async "change() frees room in an account above bounds that were lowered"(fixture) {
    const store = fixture.privateStorage("example.com");
    await store.change("alice", [put(BOOKMARKS, "12345"), put(NOTES, "12345")], ROOMY);
    const low = { maxElements: 1, maxBytes: 3 };
    assert.equal(await store.change("alice", [put(NOTES, "123456")], low), "full");
    assert.equal(await store.change("alice", [put(NOTES, "1234")], low), "done");
    assert.equal(await store.change("alice", [{ ...NOTES, xml: undefined }], low), "done");
    assert.deepEqual(await store.all("alice"), ["12345"]);
  },

  async "metacharacters, NUL and characters beyond the BMP are kept as they are"(fixture) {
    for (const domainpart of ["example.com", "'; --"]) {
      const store = fixture.privateStorage(domainpart);
      for (const [index, text] of AWKWARD_TEXTS.entries()) {
        const account = `${text}${index}`;
        const name = { namespace: `urn:${text}`, name: `e${text}` };
        assert.equal(
          await store.change(account, [put(name, text), put(NOTES, "x")], ROOMY),
          "done",
        );
        assert.equal(await store.read(account, name), text);
        assert.deepEqual(new Set(await store.all(account)), new Set([text, "x"]));
      }
      for (const [index, text] of AWKWARD_TEXTS.entries()) {
        await store.removeAll(`${text}${index}`);
        assert.deepEqual(await store.all(`${text}${index}`), []);
      }
    }
  },

  async "an element of 1 MB is kept whole"(fixture) {
    const store = fixture.privateStorage("example.com");
    assert.equal(await store.change("alice", [put(BOOKMARKS, MEGABYTE_XML)], ROOMY), "done");
    assert.ok(
      await store.read("alice", BOOKMARKS) === MEGABYTE_XML,
      "differs from what was written",
    );
  },

  async "changes of one account at the same moment all end, each whole"(fixture) {
    const store = fixture.privateStorage("example.com");
    const again = fixture.privateStorage("example.com");
    const writers = Array.from({ length: 4 }, (_, i) => `${i}`);
    await Promise.all(writers.map(async (xml, index) => {
      const from = index % 2 === 0 ? store : again;
      assert.equal(
        await from.change("alice", [put(BOOKMARKS, xml), put(NOTES, xml)], ROOMY),
        "done",
      );
    }));
    const left = await store.all("alice");
    assert.equal(left.length, 2);
    assert.equal(left[0], left[1], "both elements are from the last writer");
    assert.ok(writers.includes(left[0]!));
  },
};

/** Registers the tests that every `PrivateStore` passes unchanged; `open` gives an empty backend. */
export function privateStoreConformance(
  name: string,
  open: () => Promise<PrivateStoreFixture>,
): void {
  for (const [behaviour, check] of Object.entries(CHECKS)) {
    Deno.test(`${name}: private storage: ${behaviour}`, async () => {
      await using fixture = await open();
      await check(fixture);
    });
  }
}

function put(name: Omit<PrivateChange, "xml">, xml: string): PrivateChange {
  return { ...name, xml };
}
