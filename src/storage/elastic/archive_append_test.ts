import assert from "node:assert/strict";
import type { CancelTimer } from "../../base/mod.ts";
import { ManualClock } from "../../base/mod.ts";
import type { ArchivePreferences } from "../archive_store.ts";
import { storageError } from "../storage_error.ts";
import { conformanceArchived } from "../testing/archive_store_conformance.ts";
import { ArchiveAppender } from "./archive_append.ts";
import type { ArchiveHead } from "./archive_head.ts";
import { finish, giveUp, reserve, stateOf } from "./archive_head.ts";
import { ArchiveHeads } from "./archive_heads.ts";
import type { MessageDocument } from "./elastic_documents.ts";
import { messageDocumentId, placeOf, preferencesDocumentId } from "./elastic_documents.ts";
import type { BulkOperation, DocumentName } from "./elastic_index.ts";
import { MemoryIndex } from "./testing/memory_index.ts";

/** A clock that goes on as soon as somebody waits. */
class EagerClock extends ManualClock {
  override after(delayMs: number, callback: () => void): CancelTimer {
    const cancel = super.after(delayMs, callback);
    queueMicrotask(() => this.advance(delayMs));
    return cancel;
  }
}

const NOW = 1_700_000_000_000;
const OVERLOADED = { code: "storage/overloaded" };
const PLACE = placeOf("alice@example.com", 1);
const OVERLOAD = storageError("overloaded", { action: "change", place: "the index" });
const NEVER: ArchivePreferences = { byDefault: "never", always: [], never: [] };

/** An index with one bucket, and two nodes. */
class Archive {
  readonly clock = new EagerClock(NOW);
  readonly index = new MemoryIndex(this.clock);
  readonly heads = this.#heads();
  /** Heads as another node changes them. */
  readonly otherHeads = this.#heads();
  readonly #appender = new ArchiveAppender({
    index: this.index,
    heads: this.heads,
    place: "the index",
    clock: this.clock,
  });

  #heads(): ArchiveHeads {
    return new ArchiveHeads({ index: this.index, place: "the index", clock: this.clock });
  }

  append(...sequences: readonly number[]) {
    return this.#appender.append(sequences.map((each) => conformanceArchived(each)), NOW);
  }

  appendTo(archive: string, sequence: number) {
    return this.#appender.append([{ ...conformanceArchived(sequence), archive }], NOW);
  }

  async head(): Promise<ArchiveHead> {
    return (await this.heads.read([0])).get(0)!;
  }

  /** Returns the sequences of the messages that readers see, in order. */
  async visible(): Promise<readonly number[]> {
    const head = await this.head();
    return [...this.index.documents.values()].map(({ content }) => content as MessageDocument)
      .filter(({ position }) => position !== undefined)
      .filter(({ position }) => stateOf(head, position).kind === "visible")
      .toSorted((one, other) => one.position - other.position).map(({ sequence }) => sequence);
  }

  /** Makes another node reserve a position, and write a message to it. */
  async write(token: string, sequence: number): Promise<void> {
    const head = await this.otherHeads.change(0, (head) => reserved(head, token));
    const document = { bucket: 0, position: head.last, sequence };
    await this.index.change("write to", [operationFor(sequence, document)]);
  }

  /** Makes alice want no messages. */
  async wantNone(): Promise<void> {
    await this.index.change("write to", [{
      kind: "index",
      id: preferencesDocumentId(PLACE),
      routing: "0",
      document: { preferences: NEVER },
    }]);
    await this.forgetPreferences();
  }

  /** Makes writers read the preferences again. */
  async forgetPreferences(): Promise<void> {
    await this.otherHeads.change(0, (head) => ({ ...head, preferences: head.preferences + 1 }));
    this.heads.distrust(0);
  }
}

function operationFor(sequence: number, document: unknown): BulkOperation {
  const id = messageDocumentId(PLACE, conformanceArchived(sequence));
  return { kind: "create", id, routing: "0", document };
}

function reserved(head: ArchiveHead, token: string): ArchiveHead {
  return reserve(head, { token, count: 1, tries: 0 });
}

function isOfMessages(operations: readonly BulkOperation[]): boolean {
  return operations.some(({ id }) => id.startsWith("message:"));
}

/** Returns a head with void ranges of one position, and a visible one behind each. */
function withVoids(head: ArchiveHead, count: number, atMs: number): ArchiveHead {
  let changed = head;
  for (let i = 0; i < count; i++) {
    changed = giveUp(reserved(changed, "failed"), new Set(["failed"]), atMs)!;
    changed = finish(reserved(changed, "done"), "done")!;
  }
  return changed;
}

Deno.test("ArchiveAppender cleans up a head that is full of old void ranges, whoever filled it", async () => {
  const archive = new Archive();
  await archive.append(1);
  await archive.otherHeads.change(0, (head) => withVoids(head, 512, NOW - 600_001));
  archive.index.beforeSearch = () => archive.clock.advance(60_001); // however long that takes
  assert.deepEqual(await archive.append(2), ["stored"]);
  assert.deepEqual((await archive.head()).voids, []);
  archive.index.beforeSearch = () => {};
  // Another node fills and cleans it. This one knows of neither.
  await archive.heads.change(0, (head) => withVoids(head, 512, NOW));
  await assert.rejects(archive.append(3), OVERLOADED);
  await archive.otherHeads.change(0, (head) => ({ ...head, voids: [] }));
  assert.deepEqual(await archive.append(3), ["stored"]);
  // Those that are new get old.
  await archive.heads.change(0, (head) => withVoids(head, 512, archive.clock.wallMs()));
  await assert.rejects(archive.append(4), OVERLOADED);
  archive.clock.advance(600_001);
  assert.deepEqual(await archive.append(4), ["stored"]);
  assert.deepEqual(await archive.visible(), [1, 2, 3, 4]);
});

Deno.test("ArchiveAppender goes on at once after a long time in which no message could be written", async () => {
  const archive = new Archive();
  await archive.append(1);
  let isWell = false;
  archive.index.beforeChange = (operations) => {
    if (!isWell && isOfMessages(operations)) throw OVERLOAD;
  };
  for (let i = 0; i < 600; i++) {
    await assert.rejects(archive.append(2), OVERLOADED);
    archive.clock.advance(500);
  }
  isWell = true;
  assert.deepEqual(await archive.append(2), ["stored"]);
  assert.deepEqual(await archive.visible(), [1, 2]);
  const { open, voids } = await archive.head();
  assert.deepEqual(open, []);
  assert.equal(voids.length, 1);
});

Deno.test("ArchiveAppender leaves no void range when it fails before it has written", async () => {
  const archive = new Archive();
  await archive.wantNone();
  let failures = 0;
  archive.index.beforeGet = (names) => {
    if (failures > 0 || !names.some(({ id }) => id.startsWith("preferences:"))) return;
    failures++;
    throw OVERLOAD;
  };
  await assert.rejects(archive.append(1), OVERLOADED);
  assert.equal((await archive.head()).open.length, 1);
  assert.deepEqual(await archive.append(1), ["unwanted"]);
  assert.deepEqual(await archive.head(), { last: 2, open: [], voids: [], preferences: 1 });
});

Deno.test("ArchiveAppender gives up reservations that fill a head", async () => {
  const archive = new Archive();
  await archive.otherHeads.change(0, (head) => {
    for (let i = 0; i < 64; i++) head = reserved(head, `dead ${i}`);
    return head;
  });
  assert.deepEqual(await archive.append(1), ["stored"]);
  assert.deepEqual(await archive.visible(), [1]);
  const { open, voids } = await archive.head();
  assert.deepEqual(open, []);
  assert.deepEqual(voids.map(({ from, to }) => [from, to]), [[1, 64]]);
});

Deno.test("ArchiveAppender reports a message as stored that nobody wants if readers see it, or will", async () => {
  const archive = new Archive();
  await archive.append(1);
  await archive.write("garbage", 2);
  await archive.otherHeads.change(0, (head) => giveUp(head, new Set(["garbage"]), NOW));
  await archive.write("dead", 3);
  await archive.write("done", 4);
  await archive.otherHeads.change(0, (head) => finish(head, "done"));
  await archive.wantNone();
  assert.deepEqual(await archive.append(1, 2, 3, 4, 5), [
    "stored",
    "unwanted",
    "unwanted",
    "stored", // behind the dead one
    "unwanted",
  ]);
  assert.deepEqual(await archive.visible(), [1, 4]);
});

Deno.test("ArchiveAppender remembers few preferences that are large, and many that are small", async () => {
  const archive = new Archive();
  await archive.wantNone();
  const names = Array.from({ length: 30 }, (_, i) => `user${i}@example.com`);
  const large = Array.from({ length: 200 }, (_, i) => `${i}${"x".repeat(1_000)}@example.com`);
  let read = 0;
  archive.index.beforeGet = (documents) => {
    read += documents.filter(({ id }) => id.startsWith("preferences:")).length;
  };
  for (const [always, expected] of [[large, 30], [[], 0]] as const) {
    for (const name of names) {
      await archive.index.change("write to", [{
        kind: "index",
        id: preferencesDocumentId(placeOf(name, 1)),
        routing: "0",
        document: { preferences: { byDefault: "never", always, never: [] } },
      }]);
    }
    await archive.forgetPreferences();
    const appendAll = async () => {
      read = 0;
      for (const name of names) await archive.appendTo(name, 1);
      return read;
    };
    assert.equal(await appendAll(), 30);
    assert.equal(await appendAll(), expected);
  }
});

Deno.test("ArchiveAppender keeps the order when another writer overtakes it with the beginning of its batch", async () => {
  const archive = new Archive();
  let [writes, seen] = [0, [] as readonly number[]];
  archive.index.beforeChange = async (operations) => {
    if (!isOfMessages(operations) || ++writes > 1) return;
    await archive.write("faster", 1);
    await archive.otherHeads.change(0, (head) => finish(head, "faster"));
    archive.index.beforeChange = async () => void (seen = [...seen, ...await archive.visible()]);
  };
  assert.deepEqual(await archive.append(1, 2, 3), ["stored", "stored", "stored"]);
  assert.deepEqual(await archive.visible(), [1, 2, 3]);
  assert.deepEqual(seen.filter((each) => each !== 1), [], "nobody sees a later one before it");
  assert.deepEqual((await archive.head()).open, []);
});

Deno.test("ArchiveAppender leaves no void range when another writer has its whole batch, or its end", async () => {
  for (const overtaking of [[1, 2], [2]]) {
    const archive = new Archive();
    let writes = 0;
    archive.index.beforeChange = async (operations) => {
      if (!isOfMessages(operations) || ++writes > 1) return;
      for (const sequence of overtaking) {
        await archive.write(`faster ${sequence}`, sequence);
        await archive.otherHeads.change(0, (head) => finish(head, `faster ${sequence}`));
      }
    };
    assert.deepEqual(await archive.append(1, 2), ["stored", "stored"]);
    assert.deepEqual(await archive.visible(), [1, 2]);
    assert.deepEqual((await archive.head()).voids, []);
  }
});

Deno.test("ArchiveAppender reports nothing as stored that was given up, removed and forgotten meanwhile", async () => {
  for (const suspend of ["advance", "shiftWall"] as const) {
    const archive = new Archive();
    await archive.append(1);
    let suspensions = 0;
    archive.index.afterChange = async (operations) => {
      if (suspensions > 0 || !isOfMessages(operations)) return;
      suspensions++;
      archive.clock[suspend](1_000_000);
      await archive.otherHeads.change(0, (head) => ({ ...head, open: [] }));
      archive.index.documents.delete(operations[0]!.id);
    };
    await assert.rejects(archive.append(2), { code: "storage/conflict" });
    assert.deepEqual(await archive.append(2), ["stored"]);
    assert.deepEqual(await archive.visible(), [1, 2]);
  }
});

Deno.test("ArchiveAppender stores a message whose garbage is removed and forgotten while it looks at it", async () => {
  const archive = new Archive();
  await archive.write("garbage", 1);
  await archive.otherHeads.change(0, (head) => giveUp(head, new Set(["garbage"]), NOW));
  let found = 0;
  archive.index.beforeGet = async (names) => {
    const [{ id }] = names as [DocumentName];
    if (id.startsWith("message:")) found++;
    if (found !== 1 || !id.startsWith("head:")) return;
    found++;
    await archive.otherHeads.change(0, (head) => ({ ...head, voids: [] }));
    archive.index.documents.delete(messageDocumentId(PLACE, conformanceArchived(1)));
  };
  assert.deepEqual(await archive.append(1), ["stored"]);
  assert.deepEqual(await archive.visible(), [1]);
});

Deno.test("ArchiveAppender writes nothing to positions that it reserved long ago", async () => {
  const archive = new Archive();
  await archive.append(1);
  await archive.wantNone();
  archive.index.beforeGet = (names) => {
    if (names.some(({ id }) => id.startsWith("message:"))) archive.clock.advance(300_001);
  };
  const writes: BulkOperation[] = [];
  archive.index.beforeChange = (operations) => {
    writes.push(...operations.filter(({ id }) => id.startsWith("message:")));
  };
  const wanted = { archive: "carol@example.com" };
  const batch = [conformanceArchived(2), conformanceArchived(3, wanted)];
  const { index, heads, clock } = archive;
  const appender = new ArchiveAppender({ index, heads, place: "the index", clock });
  await assert.rejects(appender.append(batch, NOW), { code: "storage/conflict" });
  assert.deepEqual(writes, []);
});

Deno.test("ArchiveHeads lets a change that throws fail alone", async () => {
  const { heads } = new Archive();
  const changes = [
    heads.change(0, (head) => reserved(head, "one")),
    heads.change(0, () => {
      throw OVERLOAD;
    }),
    heads.change(0, (head) => reserved(head, "two")),
    heads.change(1, (head) => reserved(head, "three")),
  ];
  const results = await Promise.allSettled(changes);
  assert.deepEqual(results.map(({ status }) => status), [
    "fulfilled",
    "rejected",
    "fulfilled",
    "fulfilled",
  ]);
  const tokens = [...(await heads.read([0, 1])).values()]
    .map(({ open }) => open.map(({ token }) => token));
  assert.deepEqual(tokens, [["one", "two"], ["three"]]);
});

Deno.test("ArchiveHeads remembers no more reservations to release than a head can have", async () => {
  const { heads } = new Archive();
  const tokens = Array.from({ length: 100 }, (_, i) => `${i}`);
  await heads.change(0, (head) => tokens.reduce(reserved, head));
  for (const token of tokens) heads.abandon(0, token, true);
  const { open } = await heads.change(0, () => undefined);
  assert.deepEqual(open.map(({ token }) => token), tokens.slice(0, 36));
});
