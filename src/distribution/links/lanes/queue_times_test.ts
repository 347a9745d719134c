import assert from "node:assert/strict";
import { QueueTimes } from "./queue_times.ts";

function measured(): { times: QueueTimes; values: [number, number][] } {
  const values: [number, number][] = [];
  const observe = (value: number, count = 1) => void values.push([value, count]);
  return { times: new QueueTimes({ observe }), values };
}

Deno.test("QueueTimes measures each stanza once, from its batch's arrival to its writing", () => {
  const { times, values } = measured();
  times.appended(10, 100);
  times.appended(10, 101);
  times.appended(15, 105);
  times.written(9, 9, 106);
  assert.deepEqual(values.splice(0), [[6000, 9]]);
  times.written(12, 3, 110);
  assert.deepEqual(values.splice(0), [[10_000, 1], [5000, 2]]);
  times.written(15, 3, 112);
  times.written(15, 0, 113);
  assert.deepEqual(values, [[7000, 3]]);
});

Deno.test("QueueTimes measures no stanza that is written again, or was taken away", () => {
  const { times, values } = measured();
  times.appended(10, 100);
  times.written(10, 10, 101);
  times.written(10, 0, 200); // on the next connection
  times.appended(15, 300);
  times.appended(18, 400); // 11 to 15 went to another lane
  times.written(18, 3, 401);
  assert.deepEqual(values, [[1000, 10], [1000, 3]]);
});

Deno.test("QueueTimes keeps a bounded number of batches; later stanzas count with the newest", () => {
  const { times, values } = measured();
  for (let i = 1; i <= 2000; i++) times.appended(i, i);
  times.written(2000, 2000, 3000);
  assert.equal(values.length, 1024);
  assert.deepEqual(values.at(-1), [(3000 - 1024) * 1000, 977]);
});

Deno.test("QueueTimes.reset() starts over with lower numbers", () => {
  const { times, values } = measured();
  times.appended(50, 1);
  times.reset();
  times.appended(5, 2);
  times.written(5, 5, 3);
  assert.deepEqual(values, [[1000, 5]]);
});
