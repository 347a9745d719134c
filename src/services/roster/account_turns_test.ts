import assert from "node:assert/strict";
import { AccountTurns } from "./account_turns.ts";

const COST = { payer: "alice", bytes: 100 };

Deno.test("steps of one key run in order, and no more steps at once than the bound", async () => {
  const turns = new AccountTurns({
    maxWaiting: 1_000,
    maxBytes: 1e7,
    maxRunning: { prompt: 3, portioned: 1, patient: 1 },
    failed: assert.fail,
  });
  const order = new Map<string, number[]>();
  let running = 0;
  let most = 0;
  for (let i = 0; i < 30; i++) {
    const key = `key ${i % 10}`;
    const isTaken = turns.run(key, async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve));
      order.set(key, [...order.get(key) ?? [], i]);
      running--;
    }, COST);
    assert.equal(isTaken, true);
  }
  assert.equal(turns.waiting, 30);
  await turns.settled();
  assert.equal(most, 3);
  assert.equal(turns.waiting, 0);
  for (const numbers of order.values()) {
    assert.equal(numbers.length, 3);
    assert.deepEqual(numbers, numbers.toSorted((one, other) => one - other));
  }
});

Deno.test("patient steps leave places to others, and keep the order of their own keys", async () => {
  const turns = new AccountTurns({
    maxWaiting: 1_000,
    maxBytes: 1e7,
    maxRunning: { prompt: 1, portioned: 1, patient: 2 },
    failed: assert.fail,
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  const ran: string[] = [];
  const step = (name: string, until?: Promise<void>) => async () => {
    ran.push(name);
    await until;
  };
  for (const key of ["a", "b", "c"]) turns.runAlways(key, step(`${key} first`, promise), "patient");
  turns.runAlways("a", step("a later"));
  turns.run("c", step("c later"), COST);
  turns.runAlways("d", step("d"));
  turns.run("e", step("e", promise), { ...COST, kind: "patient" });
  await new Promise((done) => setTimeout(done));
  assert.deepEqual(ran, ["a first", "b first", "d"]);
  resolve();
  await turns.settled();
  assert.equal(ran.length, 7);
  for (const key of ["a", "c"]) {
    assert.ok(ran.indexOf(`${key} first`) < ran.indexOf(`${key} later`), key);
  }
});

Deno.test("a step beyond the bound is refused, unless it is always taken", async () => {
  const turns = new AccountTurns({
    maxWaiting: 1,
    maxBytes: 1e7,
    maxRunning: { prompt: 1, portioned: 1, patient: 1 },
    failed: assert.fail,
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  const ran: string[] = [];
  turns.run("a", () => promise, COST);
  assert.equal(turns.run("b", () => Promise.resolve(), COST), false);
  turns.runAlways("b", () => Promise.resolve(void ran.push("b")));
  resolve();
  await turns.settled();
  assert.deepEqual(ran, ["b"]);
});

Deno.test("a step that fails ends neither the process nor its key", async () => {
  const failures: unknown[] = [];
  const ran: string[] = [];
  const turns = new AccountTurns({
    maxWaiting: 100,
    maxBytes: 1e7,
    maxRunning: { prompt: 10, portioned: 1, patient: 1 },
    failed: (thrown) => void failures.push(thrown),
  });
  turns.run("a", () => Promise.reject(new Error("rejected")), COST);
  turns.run("a", () => {
    throw new Error("thrown");
  }, COST);
  turns.run("a", () => Promise.resolve(void ran.push("later")), COST);
  await turns.settled();
  assert.deepEqual(failures.map(String), ["Error: rejected", "Error: thrown"]);
  assert.deepEqual([ran, turns.waiting], [["later"], 0]);
});

Deno.test("one payer finds no more room long before others do, and finds it again later", async () => {
  const turns = new AccountTurns({
    maxWaiting: 1_000,
    maxBytes: 1e7,
    maxRunning: { prompt: 10, portioned: 1, patient: 1 },
    failed: assert.fail,
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  const fill = (payer: string, bytes: number) => {
    let taken = 0;
    while (turns.run(`key of ${payer}`, () => promise, { payer, bytes })) taken++;
    return taken;
  };
  assert.equal(fill("alice", 0), 200, "a fifth of the steps");
  const large = fill("bob", 20_000);
  assert.ok(large > 0 && large < 100, `${large} large ones`);
  assert.equal(turns.run("key of carol", () => promise, { payer: "carol", bytes: 100 }), true);
  resolve();
  await turns.settled();
  assert.equal(fill("alice", 0), 200);
  await turns.settled();
});
