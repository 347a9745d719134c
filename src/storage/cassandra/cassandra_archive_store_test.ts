import assert from "node:assert/strict";
import { SystemClock } from "../../base/mod.ts";
import type { ArchiveId } from "../archive_store.ts";
import {
  archiveStoreConformance,
  conformanceArchived,
} from "../testing/archive_store_conformance.ts";
import { checkLargeArchive } from "../testing/large_archive_conformance.ts";
import { roomArchiveConformance } from "../testing/room_archive_conformance.ts";
import { keyOf } from "../sql/keys.ts";
import { BUCKET_POSITIONS } from "./archive_log.ts";
import { CassandraArchiveStore } from "./cassandra_archive_store.ts";
import { connectCassandra } from "./cassandra_cluster.ts";
import { loadCassandraDriver } from "./cassandra_driver.ts";
import { CassandraSession } from "./cassandra_session.ts";
import type { StatementClient } from "./cassandra_session.ts";
import { archivesAt, cassandraDuringTests, cassandraPool } from "./testing/server.ts";

const { errors, types } = await loadCassandraDriver();
const { open, server } = cassandraDuringTests();

archiveStoreConformance("Cassandra", open);
roomArchiveConformance("Cassandra", open);

const ALICE = "alice@example.com";
const NOW = 1_700_000_000_000;
const PROCESS = 2 ** 52 - 7;

function textOf({ stanza }: { readonly stanza: Uint8Array }): number {
  return Number(new TextDecoder().decode(stanza));
}

Deno.test("CassandraArchiveStore: writers on several nodes store each message once, in one order", async () => {
  await using first = await open();
  await using second = archivesAt(cassandraPool(server().port));
  await using third = archivesAt(cassandraPool(server().port, { consistency: "quorum" }));
  const nodes = [first, second, third].map((each) => each.archives());
  const [rounds, size] = [12, 5];
  // Each node stores its own messages, and those of the node before it once more.
  await Promise.all(
    nodes.flatMap((store, node) =>
      [node, (node + 1) % nodes.length].map(async (owner) => {
        for (let round = 0; round < rounds; round++) {
          const messages = Array.from(
            { length: size },
            (_, i) => conformanceArchived(owner * 1_000 + round * size + i),
          );
          assert.deepEqual(await store.append(messages, NOW), messages.map(() => "stored"));
        }
      })
    ),
  );
  const pages = await Promise.all(
    nodes.map((store) => store.read(ALICE, {}, { limit: 1_000, from: "start" })),
  );
  const orders = pages.map((page) => page!.messages.map(textOf));
  assert.equal(orders[0]!.length, nodes.length * rounds * size);
  assert.equal(new Set(orders[0]).size, nodes.length * rounds * size);
  for (const order of orders) assert.deepEqual(order, orders[0]);
  for (const owner of nodes.keys()) {
    const own = orders[0]!.filter((each) => Math.trunc(each / 1_000) === owner);
    assert.deepEqual(own, own.toSorted((one, other) => one - other));
  }
  // The claims of those who were too late are gone.
  const peer = { bare: "bob@example.com", resourcepart: "" };
  assert.equal(await nodes[0]!.count(ALICE, { peer }, 1_000), nodes.length * rounds * size);
});

/** Archives of which the servers do not answer each contended statement the first time. */
class ContendedArchives implements AsyncDisposable {
  readonly store: CassandraArchiveStore;
  /** Statements that were not answered. */
  readonly unanswered = new Set<string>();
  readonly #client: Awaited<ReturnType<typeof connectCassandra>>;
  readonly #isCarriedOut: boolean;

  private constructor(
    client: Awaited<ReturnType<typeof connectCassandra>>,
    { isCarriedOut, patienceMs }: { readonly isCarriedOut: boolean; readonly patienceMs: number },
  ) {
    this.#client = client;
    this.#isCarriedOut = isCarriedOut;
    const contended = this.#contended();
    const clock = new SystemClock();
    this.store = new CassandraArchiveStore({
      clock,
      place: "a contended cluster",
      run: (_action, work) => work(new CassandraSession(contended, {}, { clock, patienceMs })),
    });
  }

  /** @param options.isCarriedOut true when a statement is carried out although nobody answers */
  static async connect(
    options: { readonly isCarriedOut: boolean; readonly patienceMs: number },
  ): Promise<ContendedArchives> {
    return new ContendedArchives(await connectCassandra(cassandraPool(server().port)), options);
  }

  #contended(): StatementClient {
    const client = this.#client;
    return {
      execute: (query: string, params: unknown, options: { readonly consistency: number }) =>
        this.#ask(query, options, () => client.execute(query, params as never, options)),
      batch: (queries: { readonly query: string }[], options: { readonly consistency: number }) =>
        this.#ask(queries[0]!.query, options, () => client.batch(queries, options)),
    } as unknown as StatementClient; // without overloads
  }

  async #ask<T>(
    query: string,
    { consistency }: { readonly consistency: number },
    work: () => Promise<T>,
  ): Promise<T> {
    const isRead = consistency === types.consistencies.serial;
    if (!(isRead || / IF /.test(query)) || this.unanswered.has(query)) return await work();
    this.unanswered.add(query);
    if (this.#isCarriedOut) await work();
    const { readTimeout, writeTimeout } = types.responseErrorCodes;
    throw new errors.ResponseError(isRead ? readTimeout : writeTimeout, "nobody has answered");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.shutdown();
  }
}

for (const isCarriedOut of [false, true]) {
  const name = isCarriedOut ? "carried out, and not answered in time" : "not carried out in time";
  Deno.test(`CassandraArchiveStore: what is ${name} is looked for, and done once`, async () => {
    await using fixture = await open();
    await using contended = await ContendedArchives.connect({ isCarriedOut, patienceMs: 60_000 });
    const { store, unanswered } = contended;
    const messages = [1, 2, 3].map((each) => conformanceArchived(each));
    assert.deepEqual(await store.append(messages, NOW), ["stored", "stored", "stored"]);
    assert.deepEqual(await store.append(messages, NOW), ["stored", "stored", "stored"]);
    const all = { limit: 10, from: "start" } as const;
    const page = await fixture.archives().read(ALICE, {}, all);
    assert.deepEqual(page!.messages.map(textOf), [1, 2, 3]);
    const preferences = { byDefault: "never", always: [], never: [] } as const;
    await store.setPreferences(ALICE, preferences);
    assert.deepEqual(await fixture.archives().preferences(ALICE), preferences);
    await store.removeAll(ALICE);
    assert.deepEqual((await fixture.archives().read(ALICE, {}, all))!.messages, []);
    const kinds = [...unanswered].map((query) =>
      query.replace(/^(\w+) (?:.*?(?:FROM|INTO) )?(\w+).*$/, "$1 $2")
    );
    assert.deepEqual(kinds.toSorted(), [
      "DELETE archives",
      "INSERT archives",
      "SELECT archive_messages",
      "SELECT archives",
      "SELECT archives",
      "UPDATE archive_messages",
      "UPDATE archive_messages",
      "UPDATE archive_messages",
      "UPDATE archives",
    ]);
  });
}

Deno.test("CassandraArchiveStore: a failure is told once an operation has used up its time", async () => {
  await using fixture = await open();
  await using contended = await ContendedArchives.connect({ isCarriedOut: false, patienceMs: 0 });
  const { store, unanswered } = contended;
  const message = conformanceArchived(1);
  let failures = 0;
  for (;;) {
    const told = unanswered.size;
    try {
      await store.append([message], NOW);
      break;
    } catch (thrown) {
      assert.ok(thrown instanceof errors.ResponseError);
      assert.equal(unanswered.size, told + 1, "it was not tried again");
      failures++;
    }
  }
  assert.equal(failures, 3, "to make the archive, to move its end, and to read where that is");
  const page = await fixture.archives().read(ALICE, {}, { limit: 10, from: "start" });
  assert.deepEqual(page!.messages.map(textOf), [1]);
});

Deno.test("CassandraArchiveStore: an archive of 100 000 messages is read page by page, by peer and by time", async () => {
  await using fixture = await open();
  const store = fixture.archives();
  await checkLargeArchive(store);
  // No bucket is larger than it may be, however many messages an archive has.
  const client = await connectCassandra(cassandraPool(server().port));
  try {
    const { rows } = await client.execute("SELECT log, bucket, last_position FROM archive_buckets");
    const log = String(rows.at(-1)?.["log"]);
    const sizes = await Promise.all(
      rows.filter((row) => String(row["log"]) === log).map(async (row) => {
        const found = await client.execute(
          "SELECT COUNT(*) AS total FROM archive_messages WHERE log = ? AND bucket = ?",
          [row["log"], row["bucket"]],
          { prepare: true },
        );
        return Number(found.rows[0]!["total"]);
      }),
    );
    assert.ok(sizes.length > 0);
    assert.ok(sizes.every((size) => size <= BUCKET_POSITIONS), sizes.join(" "));
  } finally {
    await client.shutdown();
  }
});

Deno.test("CassandraArchiveStore: a claim without its message, as a crash leaves it, means nothing", async () => {
  await using fixture = await open();
  const store = fixture.archives();
  const peer = { bare: "bob@example.com", resourcepart: "" };
  await store.append([conformanceArchived(1)], NOW);
  const client = await connectCassandra(cassandraPool(server().port));
  try {
    const { rows } = await client.execute("SELECT log FROM archives");
    const log = rows[0]!["log"];
    // The node died before its transaction. It had claimed the next position for message 2.
    await client.execute(
      "INSERT INTO archive_peers (log, peer, block, position, process, sequence, sent_at) " +
        "VALUES (?, ?, 0, 1, ?, 2, ?)",
      [log, keyOf(peer.bare), PROCESS, NOW],
      { prepare: true },
    );
    await client.execute(
      "INSERT INTO archive_ids (log, process, block, sequence, position) VALUES (?, ?, ?, 2, 1)",
      [log, PROCESS, 0],
      { prepare: true },
    );
    const after = { limit: 10, from: "start", after: { process: PROCESS, sequence: 2 } } as const;
    assert.equal(await store.read(ALICE, {}, after), undefined);
    assert.equal(await store.count(ALICE, { peer }, 10), 1);
    await store.append([conformanceArchived(3)], NOW);
    const found = await store.read(ALICE, { peer }, { limit: 10, from: "start" });
    assert.deepEqual(found!.messages.map(textOf), [1, 3]);
    await store.append([conformanceArchived(2)], NOW);
    await store.append([conformanceArchived(2)], NOW);
    const all = await store.read(ALICE, {}, { limit: 10, from: "start" });
    assert.deepEqual(all!.messages.map(textOf), [1, 3, 2]);
  } finally {
    await client.shutdown();
  }
});

Deno.test("CassandraArchiveStore: large messages seal their bucket early, and pages go on behind it", async () => {
  await using fixture = await open();
  const store = fixture.archives();
  const stanza = new Uint8Array(1_000_000).fill(120);
  for (let i = 0; i < 72; i += 4) {
    const some = Array.from({ length: 4 }, (_, j) => conformanceArchived(i + j, { stanza }));
    await store.append(some, NOW);
  }
  const ids: number[] = [];
  let last: ArchiveId | undefined;
  for (;;) {
    const request = { limit: 10, from: "start", after: last } as const;
    const page = (await store.read(ALICE, {}, request))!;
    ids.push(...page.messages.map(({ sequence }) => sequence));
    last = page.messages.at(-1) ?? last;
    if (page.isComplete) break;
  }
  assert.deepEqual(ids, Array.from({ length: 72 }, (_, i) => i));
  const end = (await store.read(ALICE, {}, { limit: 10, from: "end" }))!;
  assert.deepEqual(end.messages.map(({ sequence }) => sequence), ids.slice(-10));
  assert.equal(await store.count(ALICE, {}, 1_000), 72);
});

Deno.test("CassandraArchiveStore: old messages are removed though many archives always fail", async () => {
  await using fixture = await open();
  const store = fixture.archives();
  const archives = Array.from({ length: 60 }, (_, i) => `user${i}@example.com`);
  await store.append(archives.map((archive, i) => conformanceArchived(i, { archive })), NOW);
  const client = await connectCassandra(cassandraPool(server().port));
  try {
    const { rows } = await client.execute("SELECT shard, log FROM archive_days");
    const logs = rows.toSorted((one, other) =>
      one["shard"] - other["shard"] || (String(one["log"]) < String(other["log"]) ? -1 : 1)
    ).map((row) => row["log"]);
    assert.equal(logs.length, archives.length);
    const last = logs.pop();
    // The removal of a message needs the key of its other side.
    const breaking =
      "DELETE peer FROM archive_messages WHERE log = ? AND bucket = 0 AND position = 0";
    for (const log of logs) await client.execute(breaking, [log], { prepare: true });
    const age = { sentBeforeMs: NOW + 1, host: "example.com" };
    await assert.rejects(store.removeBefore(age, 10));
    assert.equal(await store.removeBefore(age, 10), 1, "behind those that fail");
    const found = await client.execute(
      "SELECT position FROM archive_messages WHERE log = ? AND bucket = 0",
      [last],
      { prepare: true },
    );
    assert.deepEqual(found.rows.filter((row) => row["position"] !== null), []);
    await assert.rejects(store.removeBefore(age, 10));
    for (const log of logs) {
      await client.execute(
        "UPDATE archive_messages SET peer = ? WHERE log = ? AND bucket = 0 AND position = 0",
        [keyOf("bob@example.com"), log],
        { prepare: true },
      );
    }
    assert.equal(await store.removeBefore(age, 1_000), logs.length, "all are tried again");
  } finally {
    await client.shutdown();
  }
});
