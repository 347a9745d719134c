import assert from "node:assert/strict";
import { liveMs } from "./live_clock.ts";

/** Keeps this thread busy, as a machine that stands still does. */
function standStill(forMs: number): void {
  const endMs = performance.now() + forMs;
  while (performance.now() < endMs);
}

Deno.test("liveMs() goes on, and takes a standstill for a second", () => {
  const beginMs = liveMs();
  standStill(1_500);
  const afterMs = liveMs();
  assert.equal(Math.round(afterMs - beginMs), 1_000);
  standStill(2);
  assert.ok(liveMs() > afterMs);
});
