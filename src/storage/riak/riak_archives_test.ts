import assert from "node:assert/strict";
import {
  archiveStoreConformance,
  conformanceArchived,
} from "../testing/archive_store_conformance.ts";
import type { ArchiveStoreFixture } from "../testing/archive_store_conformance.ts";
import { roomArchiveConformance } from "../testing/room_archive_conformance.ts";
import type { ArchiveFilter, ArchiveStore } from "../archive_store.ts";
import { archiveNameOf, CHUNK } from "./archive_layout.ts";
import { RiakFixture } from "./testing/riak.ts";

const ALICE = "alice@example.com";
const NOW = 1_700_000_000_000;
const MANY = 2 * CHUNK + 20;

/** Archives of which each call goes to one of two nodes, in turn. */
function eitherArchives(fixture: RiakFixture): ArchiveStore {
  const either = () => fixture.either().archives();
  return {
    searchesText: true,
    append: (messages, nowMs) => either().append(messages, nowMs),
    read: (archive, filter, page) => either().read(archive, filter, page),
    count: (archive, filter, limit) => either().count(archive, filter, limit),
    ends: (archive) => either().ends(archive),
    preferences: (archive) => either().preferences(archive),
    setPreferences: (archive, preferences) => either().setPreferences(archive, preferences),
    removeAll: (bareJid, keep) => either().removeAll(bareJid, keep),
    removeBefore: (age, limit) => either().removeBefore(age, limit),
    clockMs: () => either().clockMs!(),
  };
}

async function open(): Promise<ArchiveStoreFixture> {
  const fixture = await RiakFixture.open();
  return {
    archives: () => eitherArchives(fixture),
    [Symbol.asyncDispose]: () => fixture[Symbol.asyncDispose](),
  };
}

archiveStoreConformance("Riak (a double)", open);
roomArchiveConformance("Riak (a double)", open);

async function textsIn(
  store: ArchiveStore,
  filter: ArchiveFilter = {},
  page: { readonly from?: "start" | "end"; readonly limit?: number } = {},
): Promise<readonly string[]> {
  const found = await store.read(ALICE, filter, { limit: 1_000, from: "start", ...page });
  return found!.messages.map(({ stanza }) => new TextDecoder().decode(stanza));
}

/** Fills an archive beyond its head: message i is from one of two people, and was sent i ms ago. */
async function fill(store: ArchiveStore): Promise<readonly string[]> {
  const all = Array.from({ length: MANY }, (_, i) => i);
  const peers = ["bob@example.com", "carol@example.com"];
  await store.append(
    all.map((i) =>
      conformanceArchived(i, {
        peer: { bare: peers[i % 2]!, resourcepart: "" },
        sentAtMs: NOW - i,
        text: `${i} ${i % 3 === 0 ? "three" : "none"}`,
      })
    ),
    NOW,
  );
  return all.map((i) => `${i} ${i % 3 === 0 ? "three" : "none"}`);
}

Deno.test("archives in Riak: pages go through heads and chunks alike, with and without conditions", async () => {
  await using fixture = await RiakFixture.open();
  const store = fixture.stores().archives();
  const all = await fill(store);
  assert.deepEqual(await textsIn(store), all);
  assert.deepEqual(await textsIn(store, {}, { from: "end" }), all);
  assert.deepEqual(await textsIn(store, {}, { from: "end", limit: 30 }), all.slice(-30));
  assert.deepEqual(await textsIn(store, {}, { limit: 150 }), all.slice(0, 150));
  const even = all.filter((_, i) => i % 2 === 0);
  const peer = { bare: "bob@example.com", resourcepart: "" };
  assert.deepEqual(await textsIn(store, { peer }), even);
  const three = all.filter((_, i) => i % 3 === 0);
  assert.deepEqual(await textsIn(store, { text: "THREE" }), three);
  assert.deepEqual(await textsIn(store, { text: "three" }, { from: "end" }), three);
  const both = all.filter((_, i) => i % 6 === 0 && i <= 100);
  assert.deepEqual(await textsIn(store, { text: "three", peer, startMs: NOW - 100 }), both);
  const { process } = conformanceArchived(0);
  const ids = [200, 7, 3].map((sequence) => ({ process, sequence }));
  assert.deepEqual(await textsIn(store, { ids }), [all[3], all[7], all[200]]);
  assert.deepEqual(await textsIn(store, { ids, text: "three" }), [all[3]]);
  assert.equal(await store.count(ALICE, { text: "three" }, 20), 20);
});

Deno.test("archives in Riak: counts keep no list, and read some chunks at once", async () => {
  await using fixture = await RiakFixture.open();
  const node = fixture.double.nodes[0]!;
  const store = fixture.stores().archives();
  const many = 12 * CHUNK;
  const all = Array.from({ length: many }, (_, i) => conformanceArchived(i, { sentAtMs: NOW }));
  for (let i = 0; i < many; i += 256) await store.append(all.slice(i, i + 256), NOW);
  let [underWay, most, documents] = [0, 0, 0];
  node.onRequest = async ({ url }) => {
    if (!url.includes("/_archives/")) documents++;
    most = Math.max(most, ++underWay);
    await new Promise((resolve) => setImmediate(resolve));
    underWay--;
  };
  assert.equal(await store.count(ALICE, {}, 2_147_483_647), many);
  assert.equal(await store.count(ALICE, {}, 300), 300);
  assert.equal(documents, 0, "no message is read");
  assert.ok(most > 1 && most <= 8, `${most} at once`);
});

Deno.test("archives in Riak: named messages are searched for words behind a thousand others", async () => {
  await using fixture = await RiakFixture.open();
  const store = fixture.stores().archives();
  const all = Array.from(
    { length: 1_001 },
    (_, i) => conformanceArchived(i, { sentAtMs: NOW + i, text: "toil" }),
  );
  for (let i = 0; i < all.length; i += 256) await store.append(all.slice(i, i + 256), NOW + 2_000);
  const ids = [{ process: all[0]!.process, sequence: 0 }];
  assert.deepEqual(await textsIn(store, { ids, text: "toil" }), ["toil"]);
  assert.deepEqual(await textsIn(store, { ids, text: "trouble" }), []);
  assert.equal(await store.count(ALICE, { ids, text: "toil" }, 10), 1);
});

Deno.test("archives in Riak: readers need no search index, and words wait for it", async () => {
  await using fixture = await RiakFixture.open();
  fixture.double.site.commitsAtOnce = false;
  const store = fixture.stores().archives();
  const all = await fill(store);
  assert.deepEqual(await textsIn(store), all);
  assert.deepEqual(await textsIn(store, { text: "three" }), []);
  fixture.double.site.indexes.get("mam")!.commit();
  assert.equal((await textsIn(store, { text: "three" })).length, Math.ceil(MANY / 3));
  assert.deepEqual(fixture.double.site.indexes.get("mam")!.failures, []);
});

Deno.test("archives in Riak: a batch that was cut off is stored once, when it comes again", async () => {
  await using fixture = await RiakFixture.open();
  const node = fixture.double.nodes[0]!;
  const store = fixture.stores().archives();
  const messages = Array.from({ length: 3 }, (_, i) => conformanceArchived(i));
  // Every request is once the last one that is done.
  let isThrough = false;
  for (let last = 1; !isThrough; last++) {
    let done = 0;
    node.onRequest = () => {
      if (done++ >= last) node.refusal = { status: 503 };
    };
    await store.append(messages, NOW).then(() => isThrough = true, (error) => {
      assert.equal(error.code, "storage/overloaded");
    });
    node.refusal = undefined;
    assert.ok(last < 30);
  }
  node.onRequest = () => {};
  await store.append([...messages, conformanceArchived(9)], NOW);
  assert.deepEqual(await textsIn(store), ["0", "1", "2", "9"]);
});

Deno.test("archives in Riak: clusters that merge lose no message", async () => {
  await using fixture = await RiakFixture.open({ sites: 2 });
  const [here, there] = fixture.double.nodes.map(({ port }) => fixture.stores([port]).archives());
  await here!.append([conformanceArchived(1)], NOW);
  fixture.double.merge();
  await here!.append([conformanceArchived(2)], NOW);
  await there!.append([conformanceArchived(3), conformanceArchived(4)], NOW);
  fixture.double.merge();
  for (const store of [here!, there!]) {
    assert.deepEqual((await textsIn(store)).toSorted(), ["1", "2", "3", "4"]);
  }
  await here!.append([conformanceArchived(5)], NOW);
  assert.equal((await textsIn(here!)).at(-1), "5");
});

Deno.test("archives in Riak: words are found while messages are moved to a chunk", async () => {
  await using fixture = await RiakFixture.open();
  const node = fixture.double.nodes[0]!;
  const store = fixture.stores().archives();
  const seen: number[] = [];
  node.onRequest = async ({ method, url }) => {
    if (method !== "POST" || !/\/_archives\/datatypes\/_\w+%20\d+/.test(url)) return;
    // The messages have positions now, and the head lists them still.
    seen.push((await textsIn(store, { text: "three" })).length);
  };
  await fill(store);
  node.onRequest = () => {};
  const three = Math.ceil(MANY / 3);
  assert.ok(seen.length > 0);
  assert.deepEqual(
    new Set([...seen, (await textsIn(store, { text: "three" })).length]),
    new Set([three]),
  );
});

Deno.test("archives in Riak: a removal follows a message that moves to a chunk meanwhile", async () => {
  await using fixture = await RiakFixture.open();
  const node = fixture.double.nodes[0]!;
  const [store, other] = [fixture.stores().archives(), fixture.stores().archives()];
  const old = Array.from(
    { length: 2 * CHUNK - 1 },
    (_, i) => conformanceArchived(i, { sentAtMs: NOW - 1_000 }),
  );
  await store.append(old, NOW);
  let hasMoved = false;
  node.onRequest = async ({ method, url }) => {
    // The first request behind the search that reads no message.
    if (hasMoved || method !== "GET" || !url.includes("/_archives/datatypes/")) return;
    hasMoved = true;
    await other.append([conformanceArchived(old.length, { sentAtMs: NOW })], NOW);
  };
  assert.equal(await store.removeBefore({ sentBeforeMs: NOW }, 1_000), old.length);
  assert.equal(hasMoved, true);
  assert.equal(await store.count(ALICE, {}, 1_000), 1);
  assert.deepEqual(await textsIn(store), [`${old.length}`]);
  assert.equal(fixture.double.site.keysOf("mam_yz").length, 1);
});

Deno.test("archives in Riak: a removal takes messages out of the head whose move was cut off", async () => {
  await using fixture = await RiakFixture.open();
  const node = fixture.double.nodes[0]!;
  const store = fixture.stores().archives();
  node.onRequest = ({ method, url }) => {
    if (method === "POST" && /_archives\/datatypes\/_\w+%20\d/.test(url)) {
      node.refusal = { status: 503 };
    }
  };
  const all = Array.from(
    { length: 2 * CHUNK },
    (_, i) => conformanceArchived(i, { sentAtMs: i < CHUNK ? NOW - 1_000 : NOW }),
  );
  await assert.rejects(store.append(all, NOW), { code: "storage/overloaded" });
  node.onRequest = () => {};
  node.refusal = undefined;
  assert.equal(await store.removeBefore({ sentBeforeMs: NOW }, 1_000), CHUNK);
  assert.equal(await store.count(ALICE, {}, 1_000), CHUNK);
  assert.equal(fixture.double.site.keysOf("mam_yz").length, CHUNK);
});

Deno.test("archives in Riak: a search may have more words than Solr takes clauses", async () => {
  await using fixture = await RiakFixture.open();
  const store = fixture.stores().archives();
  const words = Array.from({ length: 1_100 }, (_, i) => `w${i}`).join(" ");
  await store.append([
    conformanceArchived(1, { text: words }),
    conformanceArchived(2, { text: "w1" }),
  ], NOW);
  assert.deepEqual(await textsIn(store, { text: words }), [words]);
});

Deno.test("archives in Riak: old messages are removed though many archives always fail", async () => {
  await using fixture = await RiakFixture.open();
  const node = fixture.double.nodes[0]!;
  const store = fixture.stores().archives();
  const archives = Array.from({ length: 70 }, (_, i) => `user${i}@example.com`)
    .toSorted((one, other) => archiveNameOf(one) < archiveNameOf(other) ? -1 : 1);
  await store.append(archives.map((archive, i) => conformanceArchived(i, { archive })), NOW);
  const good = archives.at(-1)!; // the search index has it behind all others
  node.onRequest = ({ method, url }) => {
    node.refusal = method === "POST" && url.includes("/_archives/") &&
        !url.includes(archiveNameOf(good))
      ? { status: 503 }
      : undefined;
  };
  const age = { sentBeforeMs: NOW + 1, host: "example.com" };
  await assert.rejects(store.removeBefore(age, 10), { code: "storage/overloaded" });
  assert.equal(await store.removeBefore(age, 10), 1, "behind those that fail");
  await assert.rejects(store.removeBefore(age, 10), { code: "storage/overloaded" });
  node.onRequest = () => {};
  node.refusal = undefined;
  assert.equal(await store.removeBefore(age, 1_000), 69, "all are tried again");
});
