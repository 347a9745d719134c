import assert from "node:assert/strict";
import fc from "fast-check";
import { SettledNumbers } from "./settled_numbers.ts";

Deno.test("SettledNumbers agrees with a plain set, in any order and over growth", () => {
  const permutation = fc.integer({ min: 1, max: 3000 }).chain((count) =>
    fc.shuffledSubarray(Array.from({ length: count }, (_, i) => i + 11), {
      minLength: Math.floor(count / 2),
    })
  );
  fc.assert(
    fc.property(permutation, fc.nat(5), (numbers, every) => {
      const settled = new SettledNumbers(10);
      const model = new Set<number>();
      const told = new Set<number>();
      let count = 0;
      for (const number of numbers) {
        settled.add(number);
        settled.add(number);
        model.add(number);
        if (every > 0 && ++count % (every * 50) === 0) take(settled, told);
      }
      take(settled, told);
      let upTo = 10;
      while (model.has(upTo + 1)) upTo++;
      assert.equal(settled.upTo, upTo);
      for (const number of model) assert.ok(number <= upTo || told.has(number));
      for (const number of told) assert.ok(model.has(number));
      settled.renew();
      const again = new Set<number>();
      take(settled, again);
      assert.deepEqual(again, new Set([...model].filter((n) => n > upTo)));
    }),
    { numRuns: 60 },
  );
});

/** Takes the news, checks its form, and adds its numbers to `told`. */
function take(settled: SettledNumbers, told: Set<number>): void {
  let last = settled.upTo;
  for (const { first, count } of settled.takeNews()) {
    assert.ok(first > last && count > 0);
    last = first + count - 1;
    for (let i = 0; i < count; i++) told.add(first + i);
  }
  assert.equal(settled.hasNews, false);
}

Deno.test("SettledNumbers.skipTo() passes numbers that never come", () => {
  const settled = new SettledNumbers(0);
  settled.add(4);
  settled.add(9);
  settled.skipTo(3);
  assert.equal(settled.upTo, 4);
  settled.skipTo(2);
  assert.equal(settled.upTo, 4);
  settled.skipTo(20);
  assert.equal(settled.upTo, 20);
  assert.deepEqual(settled.takeNews(), []);
  settled.add(21);
  settled.add(23);
  assert.equal(settled.upTo, 21);
  assert.deepEqual(settled.takeNews(), [{ first: 23, count: 1 }]);
});
