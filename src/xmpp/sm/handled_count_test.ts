import assert from "node:assert/strict";
import fc from "fast-check";
import { HandledCount } from "./handled_count.ts";

Deno.test("HandledCount covers every stanza before the first open one", () => {
  const count = new HandledCount(1000);
  for (let n = 0; n < 4; n++) count.receive();
  count.cover(2);
  count.cover(3);
  assert.equal(count.covered, 0);
  count.cover(1);
  assert.equal(count.covered, 3);
  count.cover(2); // called twice: held first, settled later
  count.cover(4);
  assert.equal(count.covered, 4);
  assert.equal(count.dueMs, undefined);
});

Deno.test("HandledCount.expire() covers stanzas that were open too long, and returns their number", () => {
  const count = new HandledCount(800);
  for (let n = 0; n < 3; n++) count.receive();
  count.hold(0);
  count.cover(2);
  count.receive();
  count.hold(500);
  assert.equal(count.dueMs, 800);
  assert.equal(count.expire(799), 0);
  assert.equal(count.expire(800), 2);
  assert.deepEqual([count.covered, count.dueMs], [3, 1300]);
  count.cover(4);
  assert.equal(count.expire(9000), 0);
});

Deno.test("HandledCount.coverAll() returns the number of open stanzas", () => {
  const count = new HandledCount(800);
  for (let n = 0; n < 5; n++) count.receive();
  count.cover(1);
  count.cover(4);
  assert.equal(count.coverAll(), 3);
  assert.equal(count.h, 5);
});

Deno.test("HandledCount covers only a gapless prefix, and never holds a stanza longer than holdMs", () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("receive" as const) }),
    fc.record({ kind: fc.constant("cover" as const), which: fc.nat() }),
    fc.record({ kind: fc.constant("wait" as const), ms: fc.nat(300) }),
  );
  fc.assert(fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
    const holdMs = 1000;
    const count = new HandledCount(holdMs);
    let nowMs = 0;
    const receivedMs: number[] = [];
    const covered = new Set<number>();
    for (const each of steps) {
      switch (each.kind) {
        case "receive":
          count.receive();
          receivedMs.push(nowMs);
          count.hold(nowMs);
          break;
        case "cover": {
          if (receivedMs.length === 0) break;
          const number = each.which % receivedMs.length + 1;
          count.cover(number);
          covered.add(number);
          break;
        }
        case "wait":
          nowMs += each.ms;
          count.expire(nowMs);
          break;
        default:
          each satisfies never;
      }
      for (let number = 1; number <= receivedMs.length; number++) {
        const ageMs = nowMs - receivedMs[number - 1]!;
        if (number <= count.covered) {
          assert.ok(covered.has(number) || ageMs >= holdMs * 7 / 8, `${number} covered too early`);
        } else {
          assert.ok(ageMs < holdMs || each.kind !== "wait", `${number} held too long`);
        }
      }
    }
  }));
});
