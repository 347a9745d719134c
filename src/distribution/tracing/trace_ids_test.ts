import assert from "node:assert/strict";
import { TraceIds } from "./trace_ids.ts";

Deno.test("TraceIds.next() gives another id each time, of the length that was asked for", () => {
  const ids = new TraceIds();
  const seen = new Set<string>();
  // Lengths that do not divide the bytes drawn at once, and far more than those.
  for (let i = 0; i < 1_000; i++) {
    for (const byteLength of [16, 8, 8]) {
      const id = ids.next(byteLength);
      assert.match(id, new RegExp(`^[0-9a-f]{${2 * byteLength}}$`));
      seen.add(id.slice(0, 16));
    }
  }
  assert.equal(seen.size, 3_000);
});
