import { deepEqual, equal, notEqual, rejects } from "node:assert/strict";
import { ManualClock } from "../base/mod.ts";
import { archiveKeyOf } from "./archive_store.ts";
import type { ArchivePreferences, ArchiveStore } from "./archive_store.ts";
import { copyArchives } from "./copy_archives.ts";
import type { ArchiveCopyOptions, CopiedArchive } from "./copy_archives.ts";
import { RiakFixture } from "./riak/testing/riak.ts";
import { SqlArchiveStore } from "./sql/sql_archive_store.ts";
import { BreakableStore } from "./sql/testing/sqlite.ts";
import {
  archiveContentOf,
  fillArchive,
  FILLED_AT_MS,
  filledMessage,
} from "./testing/filled_archives.ts";

const [ALICE, BOB, CAROL] = ["alice", "bob", "carol"].map((name) =>
  archiveKeyOf(`${name}@example.com`, "0a")
) as [string, string, string];
const NONE = { added: 0, same: 0, replaced: 0, removed: 0, kept: 0, keptNames: [] };
const STRICT: ArchivePreferences = {
  byDefault: "never",
  always: ["bob@example.com"],
  never: ["eve@example.com/x"],
};

/** Two databases. */
class Sides implements AsyncDisposable {
  readonly #opened: readonly BreakableStore[];
  readonly from: SqlArchiveStore;
  readonly to: SqlArchiveStore;

  private constructor(opened: readonly [BreakableStore, BreakableStore]) {
    this.#opened = opened;
    this.from = new SqlArchiveStore(opened[0].database);
    this.to = new SqlArchiveStore(opened[1].database);
  }

  static async open(): Promise<Sides> {
    return new Sides([await BreakableStore.open(), await BreakableStore.open()]);
  }

  get raw(): BreakableStore["raw"] {
    return this.#opened[1]!.raw;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const each of this.#opened) await each[Symbol.asyncDispose]();
  }
}

async function copy(
  { from, to }: { readonly from: ArchiveStore; readonly to: ArchiveStore },
  options: Partial<ArchiveCopyOptions> & { readonly keys?: readonly (string | CopiedArchive)[] } =
    {},
) {
  const { keys = [ALICE, BOB, CAROL], ...others } = options;
  const { source, destination, ...counts } = await copyArchives({
    from,
    to,
    place: "the source",
    archives: ReadableStream.from(
      keys.map((each) => typeof each === "string" ? { archive: each } : each),
    ),
    differing: "keep",
    verifies: "checksum",
    clock: new ManualClock(), // far behind the messages
    ...others,
  });
  return { counts, source, destination, isSame: source.checksum === destination.checksum };
}

async function assertAlike({ from, to }: Sides, ...archives: readonly string[]): Promise<void> {
  for (const archive of archives) {
    deepEqual(await archiveContentOf(to, archive), await archiveContentOf(from, archive));
  }
}

Deno.test("copyArchives() copies archives in their order, with what searches find them by", async () => {
  await using sides = await Sides.open();
  await fillArchive(sides.from, ALICE, { count: 700 });
  await fillArchive(sides.from, BOB, { count: 3 });
  await sides.from.append([filledMessage(BOB, 1_000), filledMessage(BOB, 4)], FILLED_AT_MS * 2);
  await sides.from.setPreferences(CAROL, STRICT);
  const { counts, source, isSame } = await copy(sides);
  deepEqual(counts, { ...NONE, added: 705 });
  deepEqual([source.units, isSame], [705, true]);
  await assertAlike(sides, ALICE, BOB, CAROL);
  deepEqual((await copy(sides)).counts, { ...NONE, same: 705 });
  deepEqual((await copy(sides, { verifies: "count" })).counts, { ...NONE, same: 705 });
  // Searches for times look at few messages: they became visible when they were sent.
  const row = sides.raw.prepare("SELECT MAX(most_late) AS late FROM archives").get();
  equal(row!["late"], 996 * 3_600_000, "as late as the message that came behind a later one");
});

Deno.test("copyArchives() goes on behind what was copied, and takes what came meanwhile", async () => {
  await using sides = await Sides.open();
  await fillArchive(sides.from, ALICE, { count: 1_000 });
  const seen: number[] = [];
  const stop = new Error("killed");
  await rejects(
    copy(sides, {
      progress(done) {
        seen.push(done);
        if (done > 500) throw stop;
      },
    }),
    stop,
  );
  deepEqual(seen, [256, 512]);
  await fillArchive(sides.from, ALICE, { from: 1_000, count: 5 });
  const again: number[] = [];
  const { counts, isSame } = await copy(sides, { progress: (done) => void again.push(done) });
  deepEqual([counts, isSame], [{ ...NONE, same: 512, added: 493 }, true]);
  deepEqual(again, [256, 493]);
  await assertAlike(sides, ALICE);
});

Deno.test("copyArchives() verifies what it copied while the source gets more", async () => {
  await using sides = await Sides.open();
  await fillArchive(sides.from, ALICE, { count: 300 });
  let next = 300;
  const { source, isSame } = await copy(sides, {
    async progress() {
      if (next < 303) await fillArchive(sides.from, ALICE, { from: next++, count: 1 });
    },
  });
  equal(isSame, true);
  await fillArchive(sides.from, ALICE, { from: next, count: 1 });
  const last = await copy(sides, { differing: "mirror" });
  equal(last.isSame, true);
  deepEqual(last.counts, { ...NONE, same: source.units, added: next + 1 - source.units });
  await assertAlike(sides, ALICE);
});

Deno.test("copyArchives() keeps archives that have other messages and names them, or replaces them", async () => {
  await using sides = await Sides.open();
  await fillArchive(sides.from, ALICE, { count: 20 });
  await fillArchive(sides.from, BOB, { count: 20 });
  await fillArchive(sides.to, ALICE, { from: 500, count: 2 });
  // The same messages in another order.
  for (const i of [19, ...Array(19).keys()]) {
    await sides.to.append([filledMessage(BOB, i)], FILLED_AT_MS * 2);
  }
  const kept = await copy(sides);
  equal(kept.isSame, false);
  deepEqual(kept.counts, {
    ...NONE,
    same: 20,
    kept: 2,
    keptNames: ["alice@example.com", "bob@example.com"],
  });
  const { first, last } = (await sides.to.ends(ALICE))!;
  deepEqual([first.sequence, last.sequence], [500, 501], "as they were");
  const byCount = await copy(sides, { verifies: "count", keys: [BOB] });
  equal(byCount.counts.kept, 1, "the ends differ");

  const replaced = await copy(sides, { differing: "replace" });
  equal(replaced.isSame, true);
  equal(replaced.counts.kept, 0);
  await assertAlike(sides, ALICE, BOB);
});

Deno.test("copyArchives() goes on behind messages that the source has removed because of their age", async () => {
  await using sides = await Sides.open();
  await fillArchive(sides.from, ALICE, { count: 20 });
  await copy(sides);
  await sides.from.removeBefore({ sentBeforeMs: Number.MAX_SAFE_INTEGER }, 100);
  await fillArchive(sides.from, ALICE, { from: 20, count: 5 });
  const { counts, isSame } = await copy(sides);
  deepEqual([counts.added, isSame], [5, false]);
  const { first, last } = (await sides.to.ends(ALICE))!;
  deepEqual([first.sequence, last.sequence], [0, 24]);
  equal((await copy(sides, { differing: "mirror" })).isSame, true);
  await assertAlike(sides, ALICE);
});

Deno.test("copyArchives() mirrors: what is gone at the source goes", async () => {
  await using sides = await Sides.open();
  await fillArchive(sides.from, ALICE, { count: 20 });
  await fillArchive(sides.from, BOB, { count: 20 });
  await copy(sides);
  await sides.from.removeBefore({ sentBeforeMs: FILLED_AT_MS + 5 * 3_600_000 }, 100);
  await fillArchive(sides.to, CAROL, { count: 2 });
  await sides.from.removeAll("bob@example.com");
  const last = await copy(sides, { differing: "mirror" });
  deepEqual(last.counts, { ...NONE, same: 15, removed: 5 + 20 + 2 });
  deepEqual([last.source.units, last.isSame], [15, true]);
  await assertAlike(sides, ALICE);
  equal(await sides.to.ends(BOB), undefined);
  equal(await sides.to.ends(CAROL), undefined);
});

Deno.test("copyArchives() leaves the archive of the other account of a name alone", async () => {
  const [older, newer] = [ALICE, archiveKeyOf("alice@example.com", "0b")];
  const keys = [{ archive: newer, others: [older] }, { archive: older, others: [newer] }];
  for (const order of [keys, keys.toReversed()]) {
    await using sides = await Sides.open();
    for (const [i, archive] of [older, newer].entries()) {
      await fillArchive(sides.from, archive, { from: 100 * i, count: 20 });
      await fillArchive(sides.to, archive, { from: 500 + 100 * i, count: 2 });
    }
    // One at a time, so that the second one is removed when the first one has been copied.
    for (const each of order) {
      equal((await copy(sides, { differing: "replace", keys: [each] })).isSame, true);
    }
    await assertAlike(sides, older, newer);
    await fillArchive(sides.to, older, { from: 800, count: 1 });
    await sides.from.removeBefore({ sentBeforeMs: Number.MAX_SAFE_INTEGER, archive: older }, 100);
    const { counts } = await copy(sides, { differing: "mirror", keys: order });
    deepEqual(counts, { ...NONE, same: 20, removed: 21 });
    await assertAlike(sides, newer);
    equal(await sides.to.ends(older), undefined);
  }
});

Deno.test("copyArchives() removes no archive beside several others of the name", async () => {
  await using sides = await Sides.open();
  const [newer, newest] = ["0b", "0c"].map((each) => archiveKeyOf("alice@example.com", each));
  await fillArchive(sides.to, ALICE, { count: 2 });
  await fillArchive(sides.to, newer!, { from: 100, count: 3 });
  const keys = [{ archive: ALICE, others: [newer!, newest!] }];
  const { counts } = await copy(sides, { differing: "mirror", keys });
  deepEqual(counts, NONE);
  const countOf = (archive: string) => sides.to.count(archive, {}, 10);
  deepEqual([await countOf(ALICE), await countOf(newer!)], [2, 3]);
});

Deno.test("copyArchives() copies messages of before the preferences that now refuse them", async () => {
  await using sides = await Sides.open();
  await fillArchive(sides.from, ALICE, { count: 10 });
  await sides.from.setPreferences(ALICE, STRICT);
  await copy(sides);
  await sides.from.setPreferences(ALICE, { byDefault: "always", always: [], never: [] });
  await fillArchive(sides.from, ALICE, { from: 10, count: 10 });
  await sides.from.setPreferences(ALICE, STRICT);
  const { counts, isSame } = await copy(sides);
  deepEqual([counts, isSame], [{ ...NONE, same: 10, added: 10 }, true]);
  deepEqual(await sides.to.preferences(ALICE), STRICT);
  await sides.to.setPreferences(ALICE, { ...STRICT, always: [] });
  const kept = await copy(sides);
  deepEqual(kept.counts, { ...NONE, kept: 1, keptNames: ["alice@example.com"] });
  notEqual(kept.source.checksum, kept.destination.checksum);
  equal((await copy(sides, { differing: "replace" })).isSame, true);
  deepEqual(await sides.to.preferences(ALICE), STRICT);
});

Deno.test("copyArchives() leaves nobody open to messages that their preferences keep out", async () => {
  await using sides = await Sides.open();
  await fillArchive(sides.from, ALICE, { count: 600 });
  await sides.from.setPreferences(ALICE, STRICT);
  let outcome: string | undefined;
  const eve = {
    ...filledMessage(ALICE, 1_000),
    peer: { bare: "eve@example.com", resourcepart: "x" },
  };
  const interrupted = copy(sides, {
    async progress() {
      [outcome] = await sides.to.append([eve], FILLED_AT_MS);
      throw new Error("killed");
    },
  });
  await rejects(interrupted, /killed/);
  equal(outcome, "unwanted");
  deepEqual(await sides.to.preferences(ALICE), STRICT);
  await sides.from.setPreferences(ALICE, { ...STRICT, always: [] });
  const { isSame } = await copy(sides, {
    differing: "replace",
    async progress() {
      [outcome] = await sides.to.append([eve], FILLED_AT_MS);
    },
  });
  deepEqual([outcome, isSame], ["unwanted", true]);
  await assertAlike(sides, ALICE);
});

Deno.test("copyArchives() begins an archive again whose messages are removed meanwhile", async () => {
  await using sides = await Sides.open();
  await fillArchive(sides.from, ALICE, { count: 600 });
  let isFirst = true;
  const { isSame } = await copy(sides, {
    differing: "replace",
    async progress() {
      if (!isFirst) return;
      isFirst = false;
      await sides.from.removeBefore({ sentBeforeMs: FILLED_AT_MS + 400 * 3_600_000 }, 1_000);
    },
  });
  equal(isSame, true);
  await assertAlike(sides, ALICE);
});

Deno.test("copyArchives() gives a store that searches texts the words of messages", async () => {
  await using sides = await Sides.open();
  await using fixture = await RiakFixture.open();
  await fillArchive(sides.from, ALICE, { count: 20 });
  const to = fixture.stores().archives();
  equal((await copy({ from: sides.from, to })).isSame, true);
  equal(await to.count(ALICE, { text: "fifth" }, 10), 4);
  await sides.from.removeAll("alice@example.com");
  const back = await copy({ from: to, to: sides.from });
  deepEqual([back.counts, back.isSame], [{ ...NONE, added: 20 }, true]);
  deepEqual(await archiveContentOf(sides.from, ALICE), await archiveContentOf(to, ALICE));
  // An archive that was removed is filled once more.
  await to.append([filledMessage(ALICE, 99)], FILLED_AT_MS * 2);
  const again = await copy({ from: sides.from, to }, { differing: "mirror" });
  deepEqual([again.counts.replaced, again.isSame], [21, true]);
});
