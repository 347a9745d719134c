import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { CausewayError, ManualClock } from "../../base/mod.ts";
import { SILENT_LOGGER } from "../../observe/mod.ts";
import type { ArchivedMessage, ArchiveOutcome, ArchiveStore } from "../../storage/mod.ts";
import { conformanceArchived } from "../../storage/testing/archive_store_conformance.ts";
import { ArchiveWriter, GATHERING_MS, GRACE_MS } from "./archive_writer.ts";

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

  /** Sequences of the messages of the last batch. */
  get last(): readonly number[] {
    return this.batches.at(-1)!;
  }

  async answer(error?: Error): Promise<void> {
    this.#answer!(error);
    await turn();
  }
}

/** A store that refuses batches with some messages, without a name for the failure. */
class RuledStore {
  isRefused: (sequence: number) => boolean = () => false;
  failure = ODD;
  attempts = 0;

  append(messages: readonly ArchivedMessage[]): Promise<readonly ArchiveOutcome[]> {
    this.attempts++;
    return messages.some(({ sequence }) => this.isRefused(sequence))
      ? Promise.reject(this.failure)
      : Promise.resolve(messages.map(() => "stored"));
  }
}

/** Waits for the turn in which a writer begins with what it has, and its answer. */
async function turn(): Promise<void> {
  for (let i = 0; i < 2; i++) await new Promise((resolve) => setImmediate(resolve));
}

function open(batchMessages?: number) {
  return withWriter(new HeldStore(batchMessages));
}

function openRuled() {
  const opened = withWriter(new RuledStore());
  const pauses = async (count: number) => {
    for (let i = 0; i < count; i++) {
      await turn();
      opened.clock.advance(500);
      await turn();
    }
  };
  return { ...opened, pauses };
}

function withWriter<S extends HeldStore | RuledStore>(store: S) {
  const clock = new ManualClock();
  const writer = new ArchiveWriter({
    store: store as unknown as ArchiveStore, // a writer only adds
    logger: SILENT_LOGGER,
    clock,
  });
  const told: string[] = [];
  const add = (sequence: number, archive?: string, isAwaited = true) => {
    const entry = {
      message: conformanceArchived(sequence, archive === undefined ? {} : { archive }),
      isAwaited,
      late: () => void told.push(`${sequence} late`),
      refused: () => void told.push(`${sequence} refused`),
      done: (outcome: string) => void told.push(`${sequence} ${outcome}`),
    };
    writer.add(entry);
    return entry;
  };
  return { store, clock, writer, told, add };
}

const DOWN = new CausewayError("storage/unreachable", "Cannot reach it", { retryable: true });
const LATE = new CausewayError("storage/timeout", "It did not answer in time", { retryable: true });
const TOO_LARGE = new CausewayError("storage/value-too-large", "Cannot store so much");
const DAMAGED = new CausewayError("storage/corrupt", "Cannot store it: it is damaged");
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

Deno.test("ArchiveWriter begins a transaction after what the last one has let go", async () => {
  const { store, writer, told, add } = open();
  const { message } = add(1);
  // A connection writes so at the end of the turn.
  const done = () => void setImmediate(() => told.push(`left at batch ${store.batches.length}`));
  writer.add({ message, late() {}, done });
  await turn();
  add(2);
  await store.answer();
  deepStrictEqual(told, ["1 stored", "left at batch 1"]);
  strictEqual(store.batches.length, 2);
  await store.answer();
});

Deno.test("ArchiveWriter tries fewer messages at once while the store gets done with none", async () => {
  const { store, clock, told, add } = open();
  for (let i = 0; i < 200; i++) add(i);
  await turn();
  const sizes: number[] = [];
  while (store.batches.length > sizes.length && sizes.length < 20) {
    const { length } = store.last;
    sizes.push(length);
    const isTooMany = length > 60;
    await store.answer(isTooMany ? LATE : undefined);
    if (isTooMany) clock.advance(500);
    await turn();
  }
  deepStrictEqual(sizes, [200, 100, 50, 100, 50, 100, 50, 50]);
  strictEqual(told.filter((each) => each.endsWith(" stored")).length, 200);
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

Deno.test("ArchiveWriter gives up a message that the store alone cannot hold, or whose archive is damaged, and no other", async () => {
  for (const failure of [ODD, DAMAGED]) {
    const { store, told, add } = open();
    for (const each of [1, 2, 3]) add(each, `archive ${each}`);
    await turn();
    await store.answer(failure);
    deepStrictEqual(store.last, [1]);
    await store.answer();
    deepStrictEqual(store.last, [2, 3]);
    await store.answer(failure);
    deepStrictEqual(store.last, [2]);
    await store.answer(failure);
    deepStrictEqual(store.last, [3], "the message or the store?");
    await store.answer();
    deepStrictEqual(store.last, [2]);
    await store.answer(failure);
    deepStrictEqual(told, ["1 stored", "3 stored", "2 failed"]);
  }
});

Deno.test("ArchiveWriter gives up a message that is too large for the store, and stores its batch", async () => {
  const { store, told, add } = open();
  for (const each of [1, 2, 3]) add(each);
  await turn();
  await store.answer(TOO_LARGE);
  await store.answer();
  await store.answer(TOO_LARGE);
  await store.answer(TOO_LARGE);
  deepStrictEqual(store.batches, [[1, 2, 3], [1], [2, 3], [2], [3]]);
  await store.answer();
  deepStrictEqual(told, ["1 stored", "2 failed", "3 stored"]);
  add(4);
  await turn();
  await store.answer(TOO_LARGE);
  deepStrictEqual(told.at(-1), "4 failed", "though the store has taken no other one since");
});

Deno.test("ArchiveWriter gives up a message at which the store fails as at a broken disk for ten seconds", async () => {
  for (const isBrief of [true, false]) {
    const { store, told, add, pauses } = openRuled();
    store.failure = new CausewayError("storage/io", "Cannot write it", { retryable: true });
    store.isRefused = (sequence) => sequence === 2;
    for (const each of [1, 2, 3]) add(each, `archive ${each}`);
    await pauses(19);
    const ended = () => told.filter((each) => !each.endsWith(" late"));
    deepStrictEqual(ended(), ["1 stored"]);
    if (isBrief) store.isRefused = () => false;
    await pauses(2);
    deepStrictEqual(
      ended(),
      isBrief ? ["1 stored", "2 stored", "3 stored"] : ["1 stored", "3 stored", "2 failed"],
    );
  }
});

Deno.test("ArchiveWriter stores a message that failed for a moment", async () => {
  const { store, told, add } = open();
  for (const each of [1, 2, 3]) add(each, `archive ${each % 2}`);
  await turn();
  await store.answer(ODD);
  await store.answer(ODD);
  deepStrictEqual(store.last, [2], "3 must not overtake 1");
  await store.answer();
  deepStrictEqual(store.last, [1]);
  await store.answer();
  await store.answer();
  deepStrictEqual(told, ["2 stored", "1 stored", "3 stored"]);
});

Deno.test("ArchiveWriter gives up nothing while the store refuses everything without a name", async () => {
  for (const archives of [1, 5, 20]) {
    const { store, pauses, told, add, writer } = openRuled();
    store.isRefused = () => true;
    for (let each = 0; each < 40; each++) add(each, `archive ${each % archives}`);
    await pauses(100);
    ok(store.attempts <= 100 * 8 + 2, "few attempts between two pauses");
    strictEqual(writer.pending, 40);
    store.isRefused = () => false;
    await pauses(1);
    for (let batches = 0; batches < 40; batches++) await turn(); // some have one message
    strictEqual(writer.pending, 0);
    const stored = told.filter((each) => each.endsWith(" stored"));
    deepStrictEqual(stored.length, 40);
    for (let each = 0; each + archives < 40; each++) {
      const [before, after] = [`${each} stored`, `${each + archives} stored`];
      ok(stored.indexOf(before) < stored.indexOf(after), `${after} before ${before}`);
    }
  }
});

Deno.test("ArchiveWriter finds a message that the store takes behind many that it cannot hold", async () => {
  for (const archives of [1, 100]) {
    const { store, pauses, told, add } = openRuled();
    store.isRefused = (sequence) => sequence < 30;
    for (let each = 0; each < 40; each++) add(each, `archive ${each % archives}`);
    await pauses(20);
    const ends = told.filter((each) => /stored|failed/.test(each)).toSorted();
    const expected = (each: number) => `${each} ${each < 30 ? "failed" : "stored"}`;
    deepStrictEqual(ends, Array.from({ length: 40 }, (_, each) => expected(each)).toSorted());
  }
});

Deno.test("ArchiveWriter tells of a message that is refused for long, when there is no other", async () => {
  const { store, pauses, told, add } = openRuled();
  store.isRefused = (sequence) => sequence === 1;
  add(1);
  await pauses(3);
  strictEqual(told.includes("1 refused"), false);
  await pauses(1);
  strictEqual(told.includes("1 refused"), true);
  add(2);
  await pauses(2);
  deepStrictEqual(told.slice(-2), ["2 stored", "1 failed"]);
});

Deno.test("ArchiveWriter.close() ends soon while the store refuses everything without a name", async () => {
  const { store, pauses, told, add, writer } = openRuled();
  store.isRefused = () => true;
  for (let each = 0; each < 40; each++) add(each, `archive ${each}`);
  await pauses(1);
  const before = store.attempts;
  await writer.close();
  ok(store.attempts - before <= 9);
  strictEqual(told.filter((each) => each.endsWith("failed")).length, 40);
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

Deno.test("ArchiveWriter gathers what nobody waits for, for a while or until somebody waits", async () => {
  const { store, clock, told, add } = open();
  const addIdly = (sequence: number) => add(sequence, undefined, false);
  addIdly(1);
  clock.advance(GATHERING_MS - 1);
  addIdly(2);
  await turn();
  deepStrictEqual(store.batches, []);
  clock.advance(1);
  await turn();
  deepStrictEqual(store.batches, [[1, 2]]);
  addIdly(3);
  await store.answer();
  deepStrictEqual([store.batches, told], [[[1, 2]], ["1 stored", "2 stored"]]);
  clock.advance(GATHERING_MS);
  await turn();
  deepStrictEqual(store.last, [3]);
  addIdly(4);
  add(5);
  addIdly(6);
  await store.answer();
  deepStrictEqual(store.last, [4, 5, 6], "somebody waits for the fifth");
  addIdly(7);
  await store.answer();
  deepStrictEqual(store.last, [4, 5, 6]);
  add(8);
  await turn();
  deepStrictEqual(store.last, [7, 8]);
  await store.answer();
  clock.advance(GATHERING_MS);
  await turn();
  strictEqual(store.batches.length, 4, "nothing is left to write");
});

Deno.test("ArchiveWriter writes a whole batch at once, though nobody waits", async () => {
  const { store, clock, add } = open(2);
  for (let sequence = 1; sequence <= 5; sequence++) add(sequence, undefined, false);
  await turn();
  await store.answer();
  await store.answer();
  deepStrictEqual(store.batches, [[1, 2], [3, 4]]);
  clock.advance(GATHERING_MS);
  await turn();
  deepStrictEqual(store.last, [5]);
});

Deno.test("ArchiveWriter tries again what has gathered when the store fails, and closes with it", async () => {
  const { store, clock, writer, told, add } = open();
  add(1, undefined, false);
  writer.begin();
  await turn();
  await store.answer(DOWN);
  clock.advance(500);
  await turn();
  deepStrictEqual(store.batches, [[1], [1]]);
  await store.answer();
  add(2, undefined, false);
  const closing = writer.close();
  await turn();
  await store.answer();
  await closing;
  deepStrictEqual(told, ["1 stored", "2 stored"]);
});

Deno.test("ArchiveWriter writes what gathers after an entry was taken back before its time", async () => {
  const { store, clock, writer, add } = open();
  writer.cancel(add(1, undefined, false));
  clock.advance(GATHERING_MS);
  add(2, undefined, false);
  clock.advance(GATHERING_MS);
  await turn();
  deepStrictEqual(store.batches, [[2]]);
});

Deno.test("ArchiveWriter.entriesOf() returns the entries of an archive that are not done", async () => {
  const { store, writer, add } = open();
  const entries = [add(1, "one"), add(2, "one")];
  add(3, "other");
  deepStrictEqual(writer.entriesOf("one"), entries);
  deepStrictEqual(writer.entriesOf("none"), []);
  await turn();
  await store.answer();
  deepStrictEqual(writer.entriesOf("one"), []);
});
