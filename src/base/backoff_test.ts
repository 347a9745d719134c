import assert from "node:assert/strict";
import { backoffMs } from "./backoff.ts";

Deno.test("backoffMs() doubles up to its bound", () => {
  const options = { firstMs: 200, maxMs: 1000 };
  const middle = { unit: () => 0.5 };
  assert.deepEqual([1, 2, 3, 4].map((n) => backoffMs(n, options, middle)), [200, 400, 800, 1000]);
});

Deno.test("backoffMs() stays within its jitter", () => {
  const options = { firstMs: 200, maxMs: 1000, jitter: 0.1 };
  assert.equal(Math.round(backoffMs(1, options, { unit: () => 0 })), 180);
  assert.ok(backoffMs(1, options, { unit: () => 0.999999 }) <= 220);
});
