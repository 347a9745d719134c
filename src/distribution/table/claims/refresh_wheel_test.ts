import assert from "node:assert/strict";
import { Account } from "./account.ts";
import { ReadBackQueue } from "./read_back_queue.ts";
import { RefreshWheel } from "./refresh_wheel.ts";

Deno.test("RefreshWheel.tick() names every account once a round, in equal portions", () => {
  const wheel = new RefreshWheel(60_000);
  const slots = Math.round(60_000 / wheel.tickMs);
  assert.equal(slots, 600);
  for (let i = 0; i < 6_000; i++) wheel.add(new Account(`a${i}`));
  const seen = new Set<Account>();
  for (let i = 0; i < slots; i++) {
    const portion = wheel.tick();
    assert.equal(portion.size, 10);
    for (const account of portion) seen.add(account);
  }
  assert.equal(seen.size, 6_000);
});

Deno.test("RefreshWheel.remove() removes an account, even twice", () => {
  const wheel = new RefreshWheel(100);
  const account = new Account("a");
  wheel.add(account);
  wheel.add(account);
  assert.equal(wheel.size, 1);
  wheel.remove(account);
  wheel.remove(account);
  assert.equal(wheel.size, 0);
});

Deno.test("ReadBackQueue.take() returns each account once after each delay", () => {
  const queue = new ReadBackQueue([100, 300]);
  const account = new Account("a");
  queue.add(account, 0);
  queue.add(account, 0);
  assert.equal(queue.take(99).size, 0);
  assert.equal(queue.take(100).size, 1);
  assert.equal(queue.take(299).size, 0);
  assert.equal(queue.take(300).size, 1);
  assert.equal(queue.take(10_000).size, 0);
});

Deno.test("ReadBackQueue keeps its order through many entries", () => {
  const queue = new ReadBackQueue([10]);
  let taken = 0;
  for (let nowMs = 0; nowMs < 5_000; nowMs++) {
    queue.add(new Account(`a${nowMs}`), nowMs);
    taken += queue.take(nowMs).size;
  }
  assert.equal(taken, 4_990);
});
