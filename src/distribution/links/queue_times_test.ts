import assert from "node:assert/strict";
import { QueueTimes } from "./queue_times.ts";

function measured(): { times: QueueTimes; values: number[] } {
  const values: number[] = [];
  return { times: new QueueTimes({ observe: (value) => values.push(value) }), values };
}

Deno.test("QueueTimes measures each batch once, when all of it is written", () => {
  const { times, values } = measured();
  times.appended(10, 100);
  times.appended(10, 101);
  times.appended(15, 105);
  times.written(9, 106);
  assert.deepEqual(values, []);
  times.written(12, 110);
  assert.deepEqual(values, [10_000]);
  times.written(15, 112);
  times.written(15, 113);
  assert.deepEqual(values, [10_000, 7000]);
});

Deno.test("QueueTimes keeps a bounded number of batches, the newest standing for the rest", () => {
  const { times, values } = measured();
  for (let i = 1; i <= 2000; i++) times.appended(i, i);
  times.written(2000, 3000);
  assert.equal(values.length, 1024);
});

Deno.test("QueueTimes.reset() starts over with lower numbers", () => {
  const { times, values } = measured();
  times.appended(50, 1);
  times.reset();
  times.appended(5, 2);
  times.written(5, 3);
  assert.deepEqual(values, [1000]);
});
