import assert from "node:assert/strict";
import { distance, parseHandled, toHandled } from "./counter.ts";

Deno.test("toHandled() and distance() wrap at 2^32", () => {
  assert.equal(toHandled(2 ** 32 - 1), 4294967295);
  assert.equal(toHandled(2 ** 32), 0);
  assert.equal(distance(4294967295, 0), 1);
  assert.equal(distance(4294967290, 4), 10);
  assert.equal(distance(5, 5), 0);
  assert.equal(distance(5, 4), 4294967295);
});

for (
  const [text, value] of [
    ["0", 0],
    ["007", 7],
    [" 4294967295 ", 4294967295],
    ["4294967296", undefined],
    ["", undefined],
    ["-1", undefined],
    ["1.0", undefined],
    ["1e3", undefined],
    ["99999999999", undefined],
    [undefined, undefined],
  ] as const
) {
  Deno.test(`parseHandled() reads [${text}] as ${value}`, () => {
    assert.equal(parseHandled(text), value);
  });
}
