import assert from "node:assert/strict";
import fc from "fast-check";
import type { ArchiveHead } from "./archive_head.ts";
import { EMPTY_HEAD, finish, giveUp, reserve, stateOf, visibleUpTo } from "./archive_head.ts";

function reserved(head: ArchiveHead, token: string, count: number): ArchiveHead {
  return reserve(head, { token, count, tries: 0 });
}

Deno.test("a position is visible once its reservation and those before it are finished", () => {
  let head = reserved(EMPTY_HEAD, "one", 3);
  head = reserved(head, "two", 2);
  assert.equal(visibleUpTo(head), 0);
  assert.equal(stateOf(head, 2).kind, "open");
  head = finish(head, "two")!;
  assert.equal(stateOf(head, 4).kind, "pending");
  assert.equal(visibleUpTo(head), 0);
  head = finish(head, "one")!;
  assert.equal(visibleUpTo(head), 5);
  assert.deepEqual([1, 3, 4, 5].map((each) => stateOf(head, each).kind), Array(4).fill("visible"));
  assert.equal(finish(head, "one"), undefined);
});

Deno.test("a reservation that is given up is void for ever, and keeps nobody waiting", () => {
  let head = reserved(reserved(EMPTY_HEAD, "one", 3), "two", 2);
  head = finish(giveUp(head, new Set(["one", "none"]), 7)!, "two")!;
  assert.equal(visibleUpTo(head), 5);
  assert.deepEqual([1, 3, 4].map((each) => stateOf(head, each).kind), ["void", "void", "visible"]);
  assert.equal(finish(head, "one"), undefined);
  assert.equal(giveUp(head, new Set(["one"]), 8), undefined);
  assert.deepEqual(head.voids, [{ from: 1, to: 3, atMs: 7 }]);
});

Deno.test("void ranges that touch are one, as new as the newest of them", () => {
  let head = EMPTY_HEAD;
  for (const token of ["one", "two", "three", "four", "five"]) head = reserved(head, token, 2);
  head = finish(head, "four")!;
  head = giveUp(head, new Set(["one"]), 9)!;
  head = giveUp(head, new Set(["five"]), 5)!;
  head = giveUp(head, new Set(["three"]), 8)!;
  assert.deepEqual(head.voids.map(({ from, to }) => [from, to]), [[1, 2], [5, 6], [9, 10]]);
  head = giveUp(head, new Set(["two"]), 7)!;
  assert.deepEqual(head.voids, [{ from: 1, to: 6, atMs: 9 }, { from: 9, to: 10, atMs: 5 }]);
});

Deno.test("what readers see grows at its end alone, whatever writers do", () => {
  const step = fc.record({
    kind: fc.constantFrom("reserve", "finish", "giveUp"),
    writer: fc.integer({ min: 0, max: 4 }),
    count: fc.integer({ min: 1, max: 5 }),
  });
  const visible = (head: ArchiveHead) =>
    Array.from({ length: head.last }, (_, i) => i + 1)
      .filter((position) => stateOf(head, position).kind === "visible");
  fc.assert(fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
    let head = EMPTY_HEAD;
    let before: readonly number[] = [];
    for (const [i, { kind, writer, count }] of steps.entries()) {
      const token = head.open[writer]?.token ?? "";
      if (kind === "reserve") head = reserved(head, `writer ${i}`, count);
      else if (kind === "finish") head = finish(head, token) ?? head;
      else head = giveUp(head, new Set([token]), 0) ?? head;
      const after = visible(head);
      assert.deepEqual(after.slice(0, before.length), before);
      before = after;
    }
  }));
});
