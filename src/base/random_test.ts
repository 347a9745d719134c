import assert from "node:assert/strict";
import { randomHex, randomIncarnation, SeededRandom } from "./random.ts";

Deno.test("SeededRandom repeats its sequence and stays in [0, 1)", () => {
  const one = new SeededRandom(42);
  const two = new SeededRandom(42);
  for (let i = 0; i < 1000; i++) {
    const value = one.unit();
    assert.equal(value, two.unit());
    assert.ok(value >= 0 && value < 1);
  }
  assert.notEqual(new SeededRandom(43).unit(), new SeededRandom(42).unit());
});

Deno.test("randomIncarnation() is a positive integer that fits a double", () => {
  const drawn = new Set<number>();
  for (let i = 0; i < 100; i++) {
    const incarnation = randomIncarnation();
    assert.ok(Number.isSafeInteger(incarnation) && incarnation >= 1 && incarnation < 2 ** 52);
    drawn.add(incarnation);
  }
  assert.equal(drawn.size, 100);
});

Deno.test("randomHex() gives two digits for each byte", () => {
  assert.match(randomHex(16), /^[0-9a-f]{32}$/);
});
