import assert from "node:assert/strict";
import { LateStanzas } from "./late_stanzas.ts";

function setUp(count: number) {
  const late = new LateStanzas();
  const numbers = Array.from({ length: count }, () => late.next());
  let calls = 0;
  late.whenSeenTo(() => calls++);
  return { late, numbers, calls: () => calls };
}

Deno.test("LateStanzas.whenSeenTo() calls at once when nothing is open", () => {
  assert.equal(setUp(0).calls(), 1);
});

Deno.test("LateStanzas.whenSeenTo() calls once, when the last is held or settled, in any order", () => {
  const { late, numbers, calls } = setUp(3);
  late.held(numbers[2]!);
  late.held(numbers[2]!);
  late.settle(numbers[2]!);
  late.settle(numbers[0]!);
  assert.equal(calls(), 0);
  late.held(numbers[1]!);
  late.settle(numbers[1]!);
  assert.equal(calls(), 1);
});
