import assert from "node:assert/strict";
import type { PepBounds, PepPublication, PepStore } from "../pep_store.ts";
import { AWKWARD_TEXTS, MEGABYTE_XML } from "./awkward_texts.ts";

/** One backend, empty, opened for one test. */
export interface PepStoreFixture extends AsyncDisposable {
  /** The personal eventing of a domain; each call may be answered by an object of its own. */
  pep(domainpart: string): PepStore;
}

const ROOMY: PepBounds = { maxNodes: 100, maxBytes: 16_777_216 };
const TUNE = "http://jabber.org/protocol/tune";

type Check = (fixture: PepStoreFixture) => Promise<void>;

const CHECKS: Readonly<Record<string, Check>> = {
  async "publish() makes a node, and puts items into the node that is expected"(fixture) {
    const store = fixture.pep("example.com");
    assert.deepEqual(await store.nodes("alice"), []);
    assert.equal(await store.node("alice", TUNE), undefined);
    assert.equal(
      await store.publish("alice", publication("one", { expected: undefined }), ROOMY),
      "published",
    );
    assert.equal(
      await store.publish("alice", publication("two", { expected: undefined }), ROOMY),
      "changed",
      "the node is there",
    );
    assert.equal(
      await store.publish("alice", publication("two", { expected: "other" }), ROOMY),
      "changed",
    );
    assert.equal(await store.publish("alice", publication("two"), ROOMY), "published");
    assert.deepEqual(await store.node("alice", TUNE), { name: TUNE, config: "c" });
    assert.deepEqual(await idsIn(store), ["one", "two"]);
    assert.equal(
      await store.publish("alice", publication("x", { node: "none" }), ROOMY),
      "changed",
      "no such node",
    );
    assert.deepEqual((await store.nodes("alice")).map(({ name }) => name), [TUNE]);
  },

  async "publish() replaces the item of the same id, which is the newest then"(fixture) {
    const store = await withItems(fixture, ["one", "two", "three"]);
    await store.publish("alice", { ...publication("one"), item: item("one", "<new/>") }, ROOMY);
    assert.deepEqual(await store.newest("alice", TUNE, 10), [
      item("two"),
      item("three"),
      item("one", "<new/>"),
    ]);
    assert.deepEqual(await store.newest("alice", TUNE, 1), [item("one", "<new/>")]);
  },

  async "publish() and configure() remove the oldest items beyond those that are kept"(fixture) {
    const store = await withItems(fixture, ["one", "two", "three"]);
    await store.publish("alice", publication("four", { maxItems: 3 }), ROOMY);
    assert.deepEqual(await idsIn(store), ["two", "three", "four"]);
    await store.publish("alice", publication("three", { maxItems: 3 }), ROOMY);
    assert.deepEqual(await idsIn(store), ["two", "four", "three"]);
    const change = { node: TUNE, expected: "c", config: "d", maxItems: 2 };
    assert.equal(await store.configure("alice", { ...change, expected: "x" }), false);
    assert.equal(await store.configure("alice", { ...change, node: "none" }), false);
    assert.deepEqual(await idsIn(store), ["two", "four", "three"]);
    assert.equal(await store.configure("alice", change), true);
    assert.deepEqual(await store.node("alice", TUNE), { name: TUNE, config: "d" });
    assert.deepEqual(await idsIn(store), ["four", "three"]);
    const none = { node: TUNE, expected: "d", config: "e", maxItems: 0 };
    assert.equal(await store.configure("alice", none), true);
    assert.deepEqual(await idsIn(store), []);
  },

  async "publish() can make a node without an item"(fixture) {
    const store = fixture.pep("example.com");
    const empty = { ...publication("x", { expected: undefined }), item: undefined };
    assert.equal(await store.publish("alice", empty, ROOMY), "published");
    assert.deepEqual(await idsIn(store), []);
    assert.equal(await store.publish("alice", empty, ROOMY), "changed");
  },

  async "items() returns the items that are there, the oldest first"(fixture) {
    const store = await withItems(fixture, ["one", "two", "three"]);
    assert.deepEqual(await store.items("alice", TUNE, ["three", "none", "one"]), [
      item("one"),
      item("three"),
    ]);
    assert.deepEqual(await store.items("alice", TUNE, ["One"]), [], "ids differ by case");
    assert.deepEqual(await store.items("alice", TUNE, []), []);
    assert.deepEqual(await store.items("alice", "none", ["one"]), []);
  },

  async "retract() and remove() take items and nodes away"(fixture) {
    const store = await withItems(fixture, ["one", "two", "three", "four"]);
    const here = { node: TUNE, expected: "c" };
    assert.equal(await store.retract("alice", { ...here, ids: ["two", "none"] }), 1);
    assert.deepEqual(await idsIn(store), ["one", "three", "four"]);
    assert.equal(await store.retract("alice", { ...here, ids: ["none"] }), 0);
    for (const other of [{ ...here, node: "none" }, { ...here, expected: "d" }]) {
      assert.equal(await store.retract("alice", { ...other, ids: ["one"] }), undefined);
      assert.equal(await store.retract("alice", other), undefined);
      assert.equal(await store.remove("alice", other), false);
    }
    assert.deepEqual(await idsIn(store), ["one", "three", "four"]);
    assert.equal(await store.retract("alice", here), 3);
    assert.deepEqual(await store.node("alice", TUNE), { name: TUNE, config: "c" });
    await store.publish("alice", publication("five"), ROOMY);
    assert.equal(await store.remove("alice", here), true);
    assert.equal(await store.remove("alice", here), false);
    assert.equal(await store.node("alice", TUNE), undefined);
    await store.publish("alice", publication("six", { expected: undefined }), ROOMY);
    assert.deepEqual(await idsIn(store), ["six"], "nothing of the former node came back");
  },

  async "publish() refuses what exceeds the bounds, and changes nothing then"(fixture) {
    const store = fixture.pep("example.com");
    const bounds = { maxNodes: 2, maxBytes: 20 };
    const make = (node: string) => publication("i", { node, expected: undefined });
    const big = (id: string, bytes: number) => ({
      ...publication(id),
      item: item(id, "x".repeat(bytes - id.length)),
    });
    for (const node of [TUNE, "b"]) {
      assert.equal(await store.publish("alice", make(node), bounds), "published"); // 5 bytes each
    }
    assert.equal(await store.publish("alice", make("c"), bounds), "full");
    assert.equal(await store.node("alice", "c"), undefined);
    const roomy = { ...bounds, maxNodes: 3 };
    const inNew = { ...make("c"), item: item("i", "x".repeat(10)) };
    assert.equal(await store.publish("alice", inNew, roomy), "full");
    assert.equal(await store.node("alice", "c"), undefined, "no node without its item");
    assert.equal(await store.publish("alice", big("j", 11), bounds), "full");
    assert.deepEqual(await idsIn(store), ["i"]);
    assert.equal(await store.publish("alice", big("j", 10), bounds), "published");
    assert.equal(await store.publish("alice", big("i", 6), bounds), "full");
    assert.equal(await store.publish("alice", big("i", 5), bounds), "published", "it replaces one");
    const single = { ...big("k", 15), maxItems: 1 };
    assert.equal(await store.publish("alice", single, bounds), "published", "others make room");
    assert.equal(await store.publish("bob", make("x"), bounds), "published", "has his own room");
    const low = { maxNodes: 1, maxBytes: 3 };
    assert.equal(await store.publish("alice", { ...big("k", 16), maxItems: 1 }, low), "full");
    assert.equal(await store.publish("alice", { ...big("k", 9), maxItems: 1 }, low), "published");
  },

  async "lastItems() returns the newest item of each node that has one"(fixture) {
    const store = await withItems(fixture, ["one", "two"]);
    await store.publish("alice", publication("mood", { node: "m", expected: undefined }), ROOMY);
    await store.publish("alice", publication("x", { node: "other", expected: undefined }), ROOMY);
    await store.publish("bob", publication("three", { expected: undefined }), ROOMY);
    await store.publish("bob", publication("four"), ROOMY);
    await store.retract("bob", { node: TUNE, expected: "c", ids: ["four"] });
    const large = { ...publication("big", { expected: undefined }), item: item("big", "12345678") };
    await store.publish("carol", large, ROOMY);
    await fixture.pep("example.org").publish("dave", large, ROOMY);
    const query = {
      localparts: ["alice", "bob", "carol", "dave"],
      nodes: [TUNE, "m"],
      maxPayloadBytes: 9,
    };
    const found = await store.lastItems(query);
    assert.deepEqual(
      new Set(
        found.map(({ localpart, node, id, xml }) => `${localpart} ${node.name} ${id} ${xml}`),
      ),
      new Set([
        `alice ${TUNE} two <i/>`,
        "alice m mood <i/>",
        `bob ${TUNE} three <i/>`,
        `carol ${TUNE} big undefined`,
      ]),
    );
    assert.deepEqual(new Set(found.map(({ node }) => node.config)), new Set(["c"]));
    assert.equal((await store.lastItems({ ...query, sinceMs: 1 })).length, 4);
    assert.deepEqual(await store.lastItems({ ...query, sinceMs: 4e12 }), []);
    assert.deepEqual(await store.lastItems({ ...query, nodes: [] }), []);
    assert.deepEqual(await store.lastItems({ ...query, localparts: [] }), []);
  },

  async "accounts and domains do not share their nodes"(fixture) {
    const store = await withItems(fixture, ["one"]);
    const other = fixture.pep("example.org");
    await store.publish("bob", publication("two", { expected: undefined }), ROOMY);
    await other.publish("alice", publication("three", { expected: undefined }), ROOMY);
    await store.removeAll("alice");
    await store.removeAll("nobody");
    assert.deepEqual(await store.nodes("alice"), []);
    assert.deepEqual(await idsIn(store), []);
    assert.deepEqual(await idsIn(store, "bob"), ["two"]);
    assert.deepEqual(await idsIn(other), ["three"]);
  },

  async "metacharacters, NUL and characters beyond the BMP are kept as they are"(fixture) {
    const store = fixture.pep("example.com");
    for (const [index, text] of AWKWARD_TEXTS.entries()) {
      const account = `${text}${index}`;
      const [node, id] = [`n${text}`, `i${text}`];
      const made = { node, expected: undefined, config: text, maxItems: 5 };
      const xml = `<x>${text}</x>`;
      await store.publish(account, { ...made, item: { id, xml } }, ROOMY);
      assert.deepEqual(await store.nodes(account), [{ name: node, config: text }]);
      assert.deepEqual(await store.items(account, node, [id]), [{ id, xml }]);
      const again = { ...made, expected: text, item: { id, xml: `${xml} ` } };
      assert.equal(await store.publish(account, again, ROOMY), "published");
      const last = { localparts: [account], nodes: [node], maxPayloadBytes: 1000 };
      assert.deepEqual(await store.lastItems(last), [
        { localpart: account, node: { name: node, config: text }, id, xml: `${xml} ` },
      ]);
    }
  },

  async "an item of 1 MB is kept whole"(fixture) {
    const store = fixture.pep("example.com");
    const large = {
      ...publication("large", { expected: undefined }),
      item: item("large", MEGABYTE_XML),
    };
    assert.equal(await store.publish("alice", large, ROOMY), "published");
    const [found] = await store.newest("alice", TUNE, 1);
    assert.ok(found!.xml === MEGABYTE_XML, "differs from what was written");
  },

  async "publications of several nodes at the same moment are all kept"(fixture) {
    const store = await withItems(fixture, ["0"]);
    const again = fixture.pep("example.com");
    const ids = Array.from({ length: 6 }, (_, index) => `${index}`);
    const results = await Promise.all(
      ids.map((id, index) =>
        (index % 2 === 0 ? store : again).publish("alice", publication(id), ROOMY)
      ),
    );
    assert.deepEqual(new Set(results), new Set(["published"]));
    assert.deepEqual((await idsIn(store)).toSorted(), ids);
    const made = await Promise.all(
      ids.map((id) => store.publish("bob", publication(id, { expected: undefined }), ROOMY)),
    );
    assert.equal(made.filter((each) => each === "published").length, 1, "one makes the node");
    assert.equal((await idsIn(store, "bob")).length, 1);
  },
};

/** Registers the tests that every `PepStore` passes unchanged; `open` gives an empty backend. */
export function pepStoreConformance(name: string, open: () => Promise<PepStoreFixture>): void {
  for (const [behaviour, check] of Object.entries(CHECKS)) {
    Deno.test(`${name}: personal eventing: ${behaviour}`, async () => {
      await using fixture = await open();
      await check(fixture);
    });
  }
}

function item(id: string, xml = "<i/>") {
  return { id, xml };
}

function publication(id: string, changes: Partial<PepPublication> = {}): PepPublication {
  return { node: TUNE, expected: "c", config: "c", item: item(id), maxItems: 100, ...changes };
}

/** Publishes items of alice in a node of its own. */
async function withItems(fixture: PepStoreFixture, ids: readonly string[]): Promise<PepStore> {
  const store = fixture.pep("example.com");
  for (const [index, id] of ids.entries()) {
    const changes = index === 0 ? { expected: undefined } : {};
    await store.publish("alice", publication(id, changes), ROOMY);
  }
  return store;
}

async function idsIn(store: PepStore, localpart = "alice"): Promise<readonly string[]> {
  return (await store.newest(localpart, TUNE, 100)).map(({ id }) => id);
}
