import assert from "node:assert/strict";
import { Unacknowledged } from "./unacknowledged.ts";

Deno.test("Unacknowledged keeps what the server has not handled, in order", () => {
  const queue = new Unacknowledged();
  for (let n = 1; n <= 100; n++) queue.push(`s${n}`);
  queue.acknowledge(3);
  assert.deepEqual(queue.all().slice(0, 2), ["s4", "s5"]);
  queue.acknowledge(98);
  queue.push("s101");
  assert.deepEqual(queue.all(), ["s99", "s100", "s101"]);
  queue.acknowledge(101);
  assert.equal(queue.size, 0);
});

Deno.test("Unacknowledged.acknowledge() refuses what was never sent", () => {
  const queue = new Unacknowledged();
  queue.push("s1");
  assert.throws(() => queue.acknowledge(2), RangeError);
  queue.acknowledge(1);
  assert.throws(() => queue.acknowledge(0), RangeError, "and going back");
});

Deno.test("Unacknowledged.restart() hands everything out and counts from zero", () => {
  const queue = new Unacknowledged();
  for (const stanza of ["a", "b", "c"]) queue.push(stanza);
  queue.acknowledge(1);
  assert.deepEqual(queue.restart(), ["b", "c"]);
  queue.push("b");
  queue.acknowledge(1);
  assert.equal(queue.size, 0);
});
