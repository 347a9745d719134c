import assert from "node:assert/strict";
import fc from "fast-check";
import { OpenNumbers } from "./open_numbers.ts";

Deno.test("OpenNumbers agrees with a plain set, in any order", () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.constant("receive" as const) },
    { weight: 5, arbitrary: fc.nat(400) },
    { weight: 1, arbitrary: fc.constantFrom("take" as const, "renew" as const) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 800 }), (steps) => {
      const numbers = new OpenNumbers(10);
      const open = new Set<number>();
      let told = new Set<number>();
      let received = 10;
      for (const each of steps) {
        if (each === "receive") {
          numbers.receive();
          open.add(++received);
        } else if (each === "take") take(numbers, told);
        else if (each === "renew") {
          numbers.renew();
          told = new Set();
        } else if (received > 10) {
          const number = 11 + each % (received - 10);
          numbers.settle(number);
          numbers.settle(number);
          open.delete(number);
        }
      }
      take(numbers, told);
      const upTo = open.size === 0 ? received : Math.min(...open) - 1;
      assert.deepEqual([numbers.received, numbers.upTo, numbers.count], [
        received,
        upTo,
        open.size,
      ]);
      assert.deepEqual([...numbers.all()], [...open].toSorted((a, b) => a - b));
      for (let number = upTo + 1; number <= received; number++) {
        assert.equal(told.has(number), !open.has(number), `${number} of ${upTo} to ${received}`);
      }
    }),
    { numRuns: 300 },
  );
});

Deno.test("OpenNumbers holds one open number among millions of settled ones, which take no memory", () => {
  const numbers = new OpenNumbers(0);
  numbers.receive();
  for (let number = 2; number <= 5_000_000; number++) {
    numbers.receive();
    numbers.settle(number);
    if (number % 1_000 === 0) assert.equal(numbers.takeNews().length, 1);
  }
  assert.deepEqual([numbers.count, numbers.upTo], [1, 0]);
  numbers.renew();
  assert.deepEqual(numbers.takeNews(), [{ first: 2, count: 4_999_999 }]);
  numbers.settle(1);
  assert.deepEqual([numbers.count, numbers.upTo], [0, 5_000_000]);
});

/** Takes the news, checks its form, and adds its numbers to `told`. */
function take(numbers: OpenNumbers, told: Set<number>): void {
  let last = numbers.upTo;
  for (const { first, count } of numbers.takeNews()) {
    assert.ok(first > last && count > 0);
    last = first + count - 1;
    for (let i = 0; i < count; i++) told.add(first + i);
  }
}

Deno.test("OpenNumbers.skipTo() passes numbers that never come", () => {
  const numbers = new OpenNumbers(0);
  for (let number = 1; number <= 9; number++) numbers.receive();
  numbers.settle(4);
  numbers.settle(9);
  numbers.skipTo(3);
  assert.deepEqual([numbers.upTo, numbers.received], [4, 9]);
  numbers.skipTo(2);
  assert.deepEqual([numbers.upTo, numbers.received], [4, 9]);
  numbers.settle(2);
  numbers.skipTo(20);
  assert.deepEqual([numbers.upTo, numbers.received, numbers.count], [20, 20, 0]);
  assert.deepEqual(numbers.takeNews(), []);
  for (let number = 21; number <= 23; number++) numbers.receive();
  numbers.settle(21);
  numbers.settle(23);
  assert.equal(numbers.upTo, 21);
  assert.deepEqual(numbers.takeNews(), [{ first: 23, count: 1 }]);
});
