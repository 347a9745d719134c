import assert from "node:assert/strict";
import { integerIn, resolveIntegers } from "./integer_option.ts";

const DECLARED = {
  few: { byDefault: 3, min: 1, max: 5 },
  many: { byDefault: 7, min: 0 },
};

Deno.test("integerIn() accepts both ends of the range", () => {
  for (const value of [1, 5]) assert.equal(integerIn("few", value, { min: 1, max: 5 }), value);
});

for (const value of [0, 6, 1.5, NaN, Infinity]) {
  Deno.test(`integerIn() refuses ${value} outside 1 to 5`, () => {
    assert.throws(() => integerIn("few", value, { min: 1, max: 5 }), {
      name: "RangeError",
      message: `Cannot set few to ${value}: it must be an integer from 1 to 5`,
    });
  });
}

Deno.test("integerIn() without a largest value refuses numbers that are not exact", () => {
  assert.equal(integerIn("many", 2 ** 53 - 1, { min: 0 }), 2 ** 53 - 1);
  assert.throws(() => integerIn("many", 2 ** 53, { min: 0 }), {
    message: `Cannot set many to ${2 ** 53}: it must be an integer of at least 0`,
  });
});

Deno.test("resolveIntegers() fills in defaults and names the option that is out of range", () => {
  assert.deepEqual(resolveIntegers(DECLARED, {}), { few: 3, many: 7 });
  assert.deepEqual(resolveIntegers(DECLARED, { many: 0 }), { few: 3, many: 0 });
  assert.throws(() => resolveIntegers(DECLARED, { few: 9 }), /few to 9/);
});
