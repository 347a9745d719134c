import assert from "node:assert/strict";
import { StaleCounts } from "./stale_counts.ts";

Deno.test("StaleCounts returns the counts of an account's own streams, for a while", () => {
  const counts = new StaleCounts({ lifetimeMs: 100, maxEntries: 10 });
  counts.add("id", "a@x", { h: 7, nowMs: 0 });
  assert.equal(counts.get("id", "a@x", 99), 7);
  assert.equal(counts.get("id", "b@x", 99), undefined);
  assert.equal(counts.get("id", "a@x", 100), undefined);
});

Deno.test("StaleCounts forgets the oldest past its bound, and all that have expired", () => {
  const counts = new StaleCounts({ lifetimeMs: 100, maxEntries: 2 });
  for (const [n, id] of ["1", "2", "3"].entries()) counts.add(id, "a@x", { h: 0, nowMs: n });
  assert.deepEqual(["1", "2", "3"].map((id) => counts.get(id, "a@x", 3)), [undefined, 0, 0]);
  counts.add("4", "a@x", { h: 0, nowMs: 1000 });
  assert.equal(counts.size, 1);
});

Deno.test("StaleCounts remembers nothing with a lifetime of 0", () => {
  const counts = new StaleCounts({ lifetimeMs: 0, maxEntries: 2 });
  counts.add("1", "a@x", { h: 0, nowMs: 0 });
  assert.equal(counts.size, 0);
});
