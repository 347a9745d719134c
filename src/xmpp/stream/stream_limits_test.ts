import assert from "node:assert/strict";
import type { StreamLimits } from "./stream_limits.ts";
import { resolveStreamLimits, STREAM_LIMIT_RANGES } from "./stream_limits.ts";

Deno.test("resolveStreamLimits() fills in every default", () => {
  const resolved = resolveStreamLimits();
  for (const [name, range] of Object.entries(STREAM_LIMIT_RANGES)) {
    assert.equal(resolved[name as keyof StreamLimits], range.byDefault);
  }
});

for (const [name, range] of Object.entries(STREAM_LIMIT_RANGES)) {
  Deno.test(`resolveStreamLimits() accepts ${name} in its range and not one past it`, () => {
    for (const value of [range.min, range.max]) {
      assert.equal(resolveStreamLimits({ [name]: value })[name as keyof StreamLimits], value);
    }
    for (const value of [range.min - 1, range.max + 1, range.min + 0.5, NaN]) {
      assert.throws(() => resolveStreamLimits({ [name]: value }), RangeError);
    }
  });
}
