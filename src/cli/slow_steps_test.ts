import assert from "node:assert/strict";
import { ManualClock } from "../base/mod.ts";
import { SlowSteps } from "./slow_steps.ts";

Deno.test("SlowSteps tells of steps that take long, again and again, and of no others", () => {
  const clock = new ManualClock();
  const lines: string[] = [];
  const io = { error: (line: string) => void lines.push(line) };
  {
    using steps = new SlowSteps("rdbms.default", { io, clock });
    steps.begin({ done: 0, total: 3, statement: "CREATE TABLE quick" });
    clock.advance(4_999);
    steps.begin({ done: 1, total: 3, statement: "CREATE INDEX slow\n  ON big (x)" });
    clock.advance(5_000);
    clock.advance(30_000);
    steps.begin({ done: 2, total: 3, statement: "x".repeat(200) });
    clock.advance(5_000);
  }
  clock.advance(100_000);
  assert.deepEqual(lines, [
    "causeway: rdbms.default: step 2 of 3 has run for 5 s: CREATE INDEX slow",
    "causeway: rdbms.default: step 2 of 3 has run for 35 s: CREATE INDEX slow",
    `causeway: rdbms.default: step 3 of 3 has run for 5 s: ${"x".repeat(100)}`,
  ]);
});
