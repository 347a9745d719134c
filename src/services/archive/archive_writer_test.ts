import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { CausewayError, ManualClock } from "../../base/mod.ts";
import { SILENT_LOGGER } from "../../observe/mod.ts";
import type { ArchivedMessage, ArchiveOutcome, ArchiveStore } from "../../storage/mod.ts";
import { conformanceArchived } from "../../storage/testing/archive_store_conformance.ts";
import { ArchiveWriter, GRACE_MS } from "./archive_writer.ts";

/** A store that the test lets answer. */
class HeldStore {
  readonly batches: number[][] = [];
  readonly batchMessages: number | undefined;
  #answer: ((error?: Error) => void) | undefined;

  constructor(batchMessages?: number) {
    this.batchMessages = batchMessages;
  }

  append(messages: readonly ArchivedMessage[]): Promise<readonly ArchiveOutcome[]> {
    this.batches.push(messages.map(({ sequence }) => sequence));
    return new Promise((resolve, reject) => {
      this.#answer = (error) => error ? reject(error) : resolve(messages.map(() => "stored"));
    });
  }

  async answer(error?: Error): Promise<void> {
    this.#answer!(error);
    await turn();
  }
}

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

function open(batchMessages?: number) {
  const store = new HeldStore(batchMessages);
  const clock = new ManualClock();
  const writer = new ArchiveWriter({
    store: store as unknown as ArchiveStore, // a writer only adds
    logger: SILENT_LOGGER,
    clock,
  });
  const told: string[] = [];
  const add = (sequence: number) => {
    const entry = {
      message: conformanceArchived(sequence),
      late: () => void told.push(`${sequence} late`),
      done: (outcome: string) => void told.push(`${sequence} ${outcome}`),
    };
    writer.add(entry);
    return entry;
  };
  return { store, clock, writer, told, add };
}

const DOWN = new CausewayError("storage/unreachable", "Cannot reach it", { retryable: true });
const ODD = new CausewayError("storage/failed", "Cannot store it");

Deno.test("ArchiveWriter writes what gathers while it writes, in one transaction and in order", async () => {
  const { store, told, add } = open();
  add(1);
  add(2);
  await turn();
  add(3);
  add(4);
  deepStrictEqual([store.batches, told], [[[1, 2]], []]);
  await store.answer();
  deepStrictEqual([store.batches, told], [[[1, 2], [3, 4]], ["1 stored", "2 stored"]]);
  await store.answer();
  deepStrictEqual(told.slice(2), ["3 stored", "4 stored"]);
  add(5);
  await turn();
  await store.answer();
  strictEqual(told.at(-1), "5 stored");
});

Deno.test("ArchiveWriter lets a message be delivered before it ends the next one", async () => {
  const { store, writer } = open();
  const told: string[] = [];
  for (const sequence of [1, 2, 3]) {
    const { promise, resolve } = Promise.withResolvers<void>();
    writer.add({
      message: conformanceArchived(sequence),
      isDelivery: true,
      late: () => {},
      done: () => {
        told.push(`${sequence} done`);
        resolve();
      },
    });
    // As the router does: the wait for an archive, within that of a worker.
    const ready = promise.then(() => () => void told.push(`${sequence} delivered`));
    void (async () => (await ready)())();
  }
  await turn();
  await store.answer();
  deepStrictEqual(told, [1, 2, 3].flatMap((each) => [`${each} done`, `${each} delivered`]));
});

Deno.test("ArchiveWriter adds as many messages at once as its store likes, else 256", async () => {
  for (const [batchMessages, expected] of [[undefined, 256], [300, 300]] as const) {
    const { store, add } = open(batchMessages);
    for (let i = 0; i < 310; i++) add(i);
    await turn();
    strictEqual(store.batches[0]!.length, expected);
    await store.answer();
    strictEqual(store.batches[1]!.length, 310 - expected);
    await store.answer();
  }
});

Deno.test("ArchiveWriter tries again when the store fails, and lets go who waits for too long", async () => {
  const { store, clock, writer, told, add } = open();
  add(1);
  await turn();
  await store.answer(DOWN);
  deepStrictEqual([store.batches.length, told], [1, []]);
  clock.advance(GRACE_MS);
  await turn();
  deepStrictEqual(told, ["1 late"]);
  add(2);
  deepStrictEqual(told.slice(1), ["2 late"], "no other waits as long");
  await store.answer(DOWN);
  clock.advance(GRACE_MS);
  await turn();
  deepStrictEqual(store.batches.at(-1), [1, 2]);
  strictEqual(writer.pending, 2);
  await store.answer();
  deepStrictEqual(told.slice(2), ["1 stored", "2 stored"]);
  add(3);
  strictEqual(told.length, 4, "the store is fast again");
  await turn();
  await store.answer();
  strictEqual(clock.pendingTimers, 0);
});

Deno.test("ArchiveWriter lets each entry wait for a second, however many the slow store takes before", async () => {
  const { store, clock, told, add } = open();
  add(1);
  await turn();
  add(2);
  for (let sequence = 3; sequence <= 300; sequence++) add(sequence);
  clock.advance(GRACE_MS - 400);
  await store.answer(); // the first one; the next transaction does not take all others
  clock.advance(399);
  strictEqual(told.length, 1);
  clock.advance(1);
  strictEqual(told.filter((each) => each.endsWith("late")).length, 299);
  while (told.filter((each) => each.endsWith("stored")).length < 300) await store.answer();
  strictEqual(clock.pendingTimers, 0);
});

Deno.test("ArchiveWriter gives up a message that the store cannot hold, and no other", async () => {
  const { store, told, add } = open();
  for (const each of [1, 2, 3]) add(each);
  await turn();
  await store.answer(ODD);
  deepStrictEqual(store.batches.at(-1), [1]);
  await store.answer();
  deepStrictEqual(store.batches.at(-1), [2, 3]);
  await store.answer(ODD);
  await store.answer(ODD);
  await store.answer();
  deepStrictEqual(told, ["1 stored", "2 failed", "3 stored"]);
});

Deno.test("ArchiveWriter gives an entry back, unless a transaction has it", async () => {
  const { store, writer, told, add } = open();
  const first = add(1);
  await turn();
  const second = add(2);
  strictEqual(writer.cancel(first), false);
  strictEqual(writer.cancel(second), true);
  strictEqual(writer.cancel(second), false);
  await store.answer();
  deepStrictEqual([store.batches, told, writer.pending], [[[1]], ["1 stored"], 0]);
});

Deno.test("ArchiveWriter.close() writes what it has, or gives it up when the store fails", async () => {
  const { store, writer, told, add } = open();
  add(1);
  await turn();
  add(2);
  const closing = writer.close();
  await store.answer();
  await store.answer(DOWN);
  await closing;
  deepStrictEqual(told, ["1 stored", "2 failed"]);
  add(3);
  strictEqual(told.at(-1), "3 failed");
});
