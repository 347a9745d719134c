import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { archiveKeyOf } from "../archive_store.ts";
import { conformanceArchived } from "../testing/archive_store_conformance.ts";
import type { KyselyPlugin } from "kysely";
import { keyOf } from "./keys.ts";
import { SqlArchiveStore } from "./sql_archive_store.ts";
import type { Queries, SqlDatabase } from "./sql_database.ts";
import { BreakableStore } from "./testing/sqlite.ts";

const [ALICE, BOB] = ["alice@example.com", "bob@example.com"];
const NOW = 1_700_000_000_000;
const FIRST = archiveKeyOf(ALICE, "0a");
const SECOND = archiveKeyOf(ALICE, "0b");

/** Adds a message as version 0.1.0 does, which knows bare JIDs alone. */
function addAsBefore({ raw }: BreakableStore, bareJid: string, position: number): void {
  const key = keyOf(bareJid);
  raw.prepare(
    "INSERT INTO archives (account_key, last_position, visible_at, most_late) VALUES (?, ?, ?, 0) " +
      "ON CONFLICT (account_key) DO UPDATE SET last_position = excluded.last_position",
  ).run(key, position, NOW);
  raw.prepare("INSERT INTO archive_messages VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?)")
    .run(
      key,
      position,
      position,
      keyOf(BOB),
      new Uint8Array(),
      NOW,
      NOW,
      new TextEncoder().encode("x"),
    );
}

async function sequences(store: SqlArchiveStore, archive: string): Promise<readonly number[]> {
  const page = await store.read(archive, {}, { limit: 100, from: "start" });
  return page!.messages.map(({ sequence }) => sequence);
}

Deno.test("SqlArchiveStore gives an archive of version 0.1.0 to the account that has the name", async () => {
  await using broken = await BreakableStore.open();
  const store = new SqlArchiveStore(broken.database);
  addAsBefore(broken, ALICE, 1);
  deepStrictEqual(await sequences(store, FIRST), [1]);
  await store.append([conformanceArchived(50, { archive: FIRST })], NOW);
  // A node of that version goes on meanwhile.
  addAsBefore(broken, ALICE, 3);
  deepStrictEqual(await sequences(store, FIRST), [1, 50, 3]);
  deepStrictEqual(await sequences(store, SECOND), []);
  await store.append([conformanceArchived(51, { archive: SECOND })], NOW);
  deepStrictEqual(await sequences(store, SECOND), [51]);
  deepStrictEqual(await sequences(store, FIRST), [1, 50, 3]);
  await store.removeAll(ALICE);
  deepStrictEqual(await sequences(store, FIRST), []);
  deepStrictEqual(await sequences(store, SECOND), []);
});

Deno.test("SqlArchiveStore shares an archive that it makes with nodes of version 0.1.0", async () => {
  await using broken = await BreakableStore.open();
  const store = new SqlArchiveStore(broken.database);
  await store.append([conformanceArchived(1, { archive: FIRST })], NOW);
  addAsBefore(broken, ALICE, 2);
  await store.append([conformanceArchived(3, { archive: FIRST })], NOW);
  deepStrictEqual(await sequences(store, FIRST), [1, 2, 3]);
});

Deno.test("SqlArchiveStore removes old messages of version 0.1.0", async () => {
  await using broken = await BreakableStore.open();
  const store = new SqlArchiveStore(broken.database);
  addAsBefore(broken, ALICE, 1);
  addAsBefore(broken, BOB, 2);
  const age = { sentBeforeMs: NOW + 1 };
  strictEqual(await store.removeBefore({ ...age, archive: FIRST }, 10), 1);
  strictEqual(await store.removeBefore({ ...age, host: "example.com" }, 10), 0);
  await store.append([conformanceArchived(50, { archive: archiveKeyOf(BOB, "0c") })], NOW);
  strictEqual(await store.removeBefore({ ...age, host: "example.com" }, 10), 2);
});

Deno.test("SqlArchiveStore removes old messages though one archive fails, and ends where it is told to", async () => {
  await using broken = await BreakableStore.open();
  const store = new SqlArchiveStore(broken.database);
  const names = ["alice", "bob", "carol", "dave"].map((name) => `${name}@example.com`);
  for (const [i, archive] of names.entries()) {
    await store.append([conformanceArchived(i, { archive, sentAtMs: NOW - 100 + i })], NOW);
  }
  broken.raw.exec(`CREATE TRIGGER failing BEFORE DELETE ON archive_messages
    WHEN OLD.account_key = x'${keyOf(ALICE).toString("hex")}'
    BEGIN SELECT abs(-9223372036854775807 - 1); END`);
  const age = { sentBeforeMs: NOW + 1, host: "example.com" };
  const signal = AbortSignal.abort();
  strictEqual(await store.removeBefore({ ...age, signal }, 10), 0);
  strictEqual(await store.removeBefore(age, 2), 2);
  strictEqual(await store.removeBefore(age, 2), 1);
  await rejects(store.removeBefore(age, 2), { name: "CausewayError" });
  deepStrictEqual(await sequences(store, ALICE), [0]);
  broken.raw.exec("DROP TRIGGER failing");
  strictEqual(await store.removeBefore(age, 2), 1, "the next round tries it again");
});

Deno.test("SqlArchiveStore removes old messages though a hundred archives always fail", async () => {
  await using broken = await BreakableStore.open();
  const store = new SqlArchiveStore(broken.database);
  const failing = Array.from({ length: 100 }, (_, i) => `user${i}@example.com`);
  const messages = [...failing, ALICE].map((archive, i) =>
    conformanceArchived(i, { archive, sentAtMs: NOW - (archive === ALICE ? 10 : 100 + i % 3) })
  );
  await store.append(messages, NOW);
  broken.raw.exec(`CREATE TRIGGER failing BEFORE DELETE ON archive_messages
    WHEN OLD.account_key <> x'${keyOf(ALICE).toString("hex")}'
    BEGIN SELECT abs(-9223372036854775807 - 1); END`);
  const age = { sentBeforeMs: NOW, host: "example.com" };
  await rejects(store.removeBefore(age, 10), { name: "CausewayError" });
  await rejects(store.removeBefore(age, 10), { name: "CausewayError" });
  strictEqual(await store.removeBefore(age, 10), 1, "behind those that fail");
  deepStrictEqual(await sequences(store, ALICE), []);
  strictEqual(await store.removeBefore(age, 10), 0);
  broken.raw.exec("DROP TRIGGER failing");
  strictEqual(await store.removeBefore(age, 1_000), 100, "all are tried again");
});

Deno.test("SqlArchiveStore.closeUnowned() keeps an archive of version 0.1.0 from the next account of its name", async () => {
  await using broken = await BreakableStore.open();
  const store = new SqlArchiveStore(broken.database);
  addAsBefore(broken, ALICE, 1);
  addAsBefore(broken, BOB, 2);
  const ofBob = archiveKeyOf(BOB, "0c");
  await store.append([conformanceArchived(50, { archive: ofBob })], NOW);
  for (const jid of [ALICE, BOB, "carol@example.com"]) await store.closeUnowned(jid);
  deepStrictEqual(await sequences(store, FIRST), []);
  await store.append([conformanceArchived(51, { archive: FIRST })], NOW);
  deepStrictEqual(await sequences(store, FIRST), [51]);
  deepStrictEqual(await sequences(store, ALICE), [1], "no message is lost");
  deepStrictEqual(await sequences(store, ofBob), [2, 50]);
  await store.removeAll(ALICE);
  deepStrictEqual(await sequences(store, ALICE), []);
});

Deno.test("SqlArchiveStore reads nothing of the next account of a name that comes while it reads", async () => {
  const ways: Record<string, (store: SqlArchiveStore) => Promise<unknown>> = {
    read: (store) => sequences(store, FIRST),
    count: (store) => store.count(FIRST, {}, 10),
    ends: (store) => store.ends(FIRST),
    preferences: (store) => store.preferences(FIRST),
  };
  const found: Record<string, unknown> = {};
  for (const [way, read] of Object.entries(ways)) {
    await using broken = await BreakableStore.open();
    const { database } = broken;
    const store = new SqlArchiveStore(database);
    await store.append([conformanceArchived(1, { archive: FIRST })], NOW);
    const change = async () => {
      await store.removeAll(ALICE);
      await store.setPreferences(SECOND, { byDefault: "always", always: [BOB], never: [] });
      await store.append([conformanceArchived(2, { archive: SECOND })], NOW);
    };
    const reading = new SqlArchiveStore(behindTheFirst(database, change));
    found[way] = await read(reading);
    deepStrictEqual(await sequences(store, SECOND), [2]);
  }
  deepStrictEqual(found, { read: [], count: 0, ends: undefined, preferences: undefined });
});

/** A database on which `change` is made behind the first query that finds something. */
function behindTheFirst(database: SqlDatabase, change: () => Promise<void>): SqlDatabase {
  let isDue = true;
  const plugin: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      if (isDue) {
        isDue = false;
        await change();
      }
      return result;
    },
  };
  const changing = {
    dialect: database.dialect,
    run: <T>(action: string, work: (queries: Queries) => Promise<T>) =>
      database.run(action, (queries) => work(queries.withPlugin(plugin))),
  };
  return changing as SqlDatabase; // what reading takes of it
}

/** Numbers of rows with words, and of those in the index. */
function wordsIn({ raw }: BreakableStore): readonly unknown[] {
  const count = (sql: string) => Object.values(raw.prepare(sql).get()!)[0];
  return [
    count("SELECT COUNT(*) FROM archive_texts"),
    count("SELECT COUNT(*) FROM archive_words WHERE archive_words MATCH 'xxquick'"),
  ];
}

function texts(...sequences: readonly number[]) {
  return sequences.map((each) => conformanceArchived(each, { text: `a quick ${each}` }));
}

Deno.test("SqlArchiveStore removes the words of messages with them", async () => {
  await using broken = await BreakableStore.open();
  const store = new SqlArchiveStore(broken.database);
  await store.append(texts(1, 2, 3), NOW);
  await store.append([{ ...texts(4)[0]!, sentAtMs: NOW - 60_000 }], NOW);
  deepStrictEqual(wordsIn(broken), [4, 4]);
  strictEqual(await store.removeBefore({ sentBeforeMs: NOW }, 10), 1);
  deepStrictEqual(wordsIn(broken), [3, 3]);
  await store.removeAll(ALICE);
  deepStrictEqual(wordsIn(broken), [0, 0]);
});

Deno.test("SqlArchiveStore keeps words where the text has some", async () => {
  await using broken = await BreakableStore.open();
  const store = new SqlArchiveStore(broken.database);
  const none = [undefined, "", "\u{1f600} ?!"];
  await store.append(none.map((text, i) => ({ ...conformanceArchived(i), text })), NOW);
  deepStrictEqual(wordsIn(broken), [0, 0]);
  strictEqual(await store.count(ALICE, { text: "?!" }, 10), 0);
});

Deno.test("SqlArchiveStore takes messages where a version without words has removed others", async () => {
  await using broken = await BreakableStore.open();
  const store = new SqlArchiveStore(broken.database);
  const removeAsBefore = () =>
    broken.raw.exec("DELETE FROM archive_messages; UPDATE archives SET last_position = 0");
  await store.append(texts(1, 2, 3), NOW);
  removeAsBefore();
  strictEqual(await store.count(ALICE, { text: "quick" }, 10), 0);
  // The archive begins again: what the words were about is gone.
  await store.append([{ ...conformanceArchived(4), text: undefined }], NOW);
  strictEqual(await store.count(ALICE, { text: "quick" }, 10), 0);
  removeAsBefore();
  await store.append(texts(5, 6), NOW);
  broken.raw.exec("DELETE FROM archive_messages; UPDATE archives SET last_position = 1");
  await store.append(texts(7), NOW);
  strictEqual(await store.count(ALICE, { text: "quick" }, 10), 1);
  deepStrictEqual(wordsIn(broken), [2, 2]);
});
