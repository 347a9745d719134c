import assert from "node:assert/strict";
import { Turns } from "./turns.ts";

Deno.test("Turns.run() keeps the order of one key and lets others pass", async () => {
  const turns = new Turns();
  const gate = Promise.withResolvers<void>();
  const log: string[] = [];
  const first = turns.run("a", async () => {
    await gate.promise;
    log.push("a1");
    throw new Error("a1 fails");
  });
  const second = turns.run("a", () => {
    log.push("a2");
    return Promise.resolve(2);
  });
  await turns.run("b", () => {
    log.push("b1");
    return Promise.resolve();
  });
  assert.deepEqual(log, ["b1"]);
  gate.resolve();
  await assert.rejects(first, /a1 fails/);
  assert.equal(await second, 2);
  assert.deepEqual(log, ["b1", "a1", "a2"]);
});

Deno.test("Turns.settled() also waits for tasks that tasks begin", async () => {
  const turns = new Turns();
  const log: string[] = [];
  void turns.run("a", () => {
    void turns.run("b", async () => {
      await Promise.resolve();
      log.push("b");
    });
    return Promise.resolve();
  });
  await turns.settled();
  assert.deepEqual(log, ["b"]);
});

Deno.test("Turns.run() queues a task's own requests after that task", async () => {
  const turns = new Turns();
  const order: string[] = [];
  await turns.run("a", async () => {
    turns.run("a", () => Promise.resolve(void order.push("inner")));
    await Promise.resolve();
    order.push("outer");
  });
  await turns.settled();
  assert.deepEqual(order, ["outer", "inner"]);
});

Deno.test("Turns.has() is true while a task of the key runs or waits", async () => {
  const turns = new Turns();
  const task = turns.run("a", () => Promise.resolve());
  assert.deepEqual([turns.has("a"), turns.has("b")], [true, false]);
  await task;
  await turns.settled();
  assert.equal(turns.has("a"), false);
});
