import assert from "node:assert/strict";
import { SenderWorkers } from "./sender_workers.ts";

Deno.test("SenderWorkers keeps a sender's items in order behind one that waits", async () => {
  const done: number[] = [];
  const gates = new Map<number, PromiseWithResolvers<void>>();
  const workers = new SenderWorkers<number>((item) => {
    const gate = gates.get(item);
    if (gate === undefined) {
      done.push(item);
      return undefined;
    }
    return gate.promise.then(() => void done.push(item));
  }, 100);
  const first = Promise.withResolvers<void>();
  gates.set(3, Promise.withResolvers());
  workers.begin("a", first.promise.then(() => void done.push(1)));
  for (const item of [2, 3, 4]) assert.equal(workers.enqueue("a", item), true);
  assert.deepEqual(done, []);
  assert.equal(workers.isBusy("b"), false);
  first.resolve();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(done, [1, 2]);
  assert.equal(workers.queued, 1);
  gates.get(3)!.resolve();
  await workers.idle();
  assert.deepEqual(done, [1, 2, 3, 4]);
  assert.equal(workers.active, 0);
  assert.equal(workers.queued, 0);
});

Deno.test("SenderWorkers.enqueue() refuses one past its bound", async () => {
  const workers = new SenderWorkers<number>(() => undefined, 2);
  const first = Promise.withResolvers<void>();
  workers.begin("a", first.promise);
  assert.deepEqual([1, 2, 3].map((item) => workers.enqueue("a", item)), [true, true, false]);
  first.resolve();
  await workers.idle();
});

Deno.test("SenderWorkers takes items enqueued while it works, past its compaction point", async () => {
  const done: number[] = [];
  const workers = new SenderWorkers<number>((item) => {
    done.push(item);
    return item % 7 === 0 ? Promise.resolve() : undefined;
  }, 10_000);
  const first = Promise.withResolvers<void>();
  workers.begin("a", first.promise);
  const expected = Array.from({ length: 5000 }, (_, i) => i);
  for (const item of expected) workers.enqueue("a", item);
  first.resolve();
  await workers.idle();
  assert.deepEqual(done, expected);
});

Deno.test("SenderWorkers tells of a long queue once, and again when it is gone", async () => {
  const told: string[] = [];
  const workers = new SenderWorkers<number>(
    () => undefined,
    10_000,
    (item, isOver) => void told.push(`${item} ${isOver}`),
  );
  const first = Promise.withResolvers<void>();
  workers.begin("a", first.promise);
  for (let item = 1; item < 256; item++) workers.enqueue("a", item);
  assert.deepEqual(told, []);
  for (let item = 256; item < 1000; item++) workers.enqueue("a", item);
  assert.deepEqual(told, ["256 true"]);
  first.resolve();
  await workers.idle();
  assert.deepEqual(told, ["256 true", "256 false"]);
});

Deno.test("SenderWorkers.enqueue() still takes an answer where the queues are full", async () => {
  const workers = new SenderWorkers<number>(() => undefined, 1);
  const first = Promise.withResolvers<void>();
  workers.begin("a", first.promise);
  assert.equal(workers.enqueue("a", 1), true);
  assert.equal(workers.enqueue("a", 2), false);
  assert.equal(workers.enqueue("a", 3, true), true);
  assert.equal(workers.enqueue("a", 4, true), false);
  first.resolve();
  await workers.idle();
});

Deno.test("SenderWorkers.enqueue() for an idle sender is a bug in the caller", () => {
  const workers = new SenderWorkers<number>(() => undefined, 1);
  assert.throws(() => workers.enqueue("a", 1), RangeError);
});
