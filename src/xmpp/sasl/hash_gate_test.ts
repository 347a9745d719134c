import assert from "node:assert/strict";
import { HashGate } from "./hash_gate.ts";

Deno.test("HashGate.run() runs maxAtOnce tasks at once, and the others in order", async () => {
  const gate = new HashGate(2);
  const ends = Array.from({ length: 4 }, () => Promise.withResolvers<void>());
  const begun: number[] = [];
  const tasks = ends.map((end, index) =>
    gate.run(() => {
      begun.push(index);
      return end.promise;
    })
  );
  assert.deepEqual(begun, [0, 1]);
  assert.equal(gate.waitingCount, 2);
  ends[1]!.reject(new Error("fails"));
  await assert.rejects(tasks[1]!, /fails/);
  assert.deepEqual(begun, [0, 1, 2]);
  for (const end of ends) end.resolve();
  await Promise.allSettled(tasks);
  assert.deepEqual(begun, [0, 1, 2, 3]);
  assert.equal(gate.waitingCount, 0);
  assert.equal(await gate.run(() => Promise.resolve("again")), "again");
});
