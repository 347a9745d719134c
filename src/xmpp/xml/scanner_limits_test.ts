import assert from "node:assert/strict";
import { resolveScannerLimits } from "./scanner_limits.ts";

Deno.test("resolveScannerLimits() fills in the defaults and freezes them", () => {
  const limits = resolveScannerLimits({ maxDepth: 1 });
  assert.deepEqual(limits, { maxStanzaBytes: 262_144, maxDepth: 1, maxAttributes: 64 });
  assert.ok(Object.isFrozen(limits));
});

Deno.test("resolveScannerLimits() refuses limits that no stanza could meet", () => {
  for (const value of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.throws(() => resolveScannerLimits({ maxStanzaBytes: value }), RangeError);
  }
});
