import assert from "node:assert/strict";
import { Patience } from "./patience.ts";
import { until } from "./until.ts";

/** Keeps this thread busy, as a machine that stands still does. */
function standStill(forMs: number): void {
  const endMs = performance.now() + forMs;
  while (performance.now() < endMs);
}

Deno.test("Patience is over when its time has passed", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  using patience = new Patience(5, resolve);
  assert.ok(!patience.isOver);
  await promise;
  assert.ok(patience.isOver);
});

Deno.test("Patience takes a standstill of the machine for one step", async () => {
  using patience = new Patience(60_000);
  using longer = new Patience(1_500);
  standStill(1_600);
  await until(() => true, { what: "a turn of the event loop" });
  assert.ok(!patience.isOver);
  assert.ok(!longer.isOver);
});

Deno.test("until() looks again after a standstill that is longer than its time", async () => {
  let looks = 0;
  const probe = () => {
    looks++;
    if (looks === 2) standStill(1_600);
    return looks > 3;
  };
  await until(probe, { what: "the fourth look", withinMs: 1_500, everyMs: 1 });
});

Deno.test("Patience that is disposed of calls nobody", async () => {
  let calls = 0;
  {
    using _patience = new Patience(1, () => calls++);
  }
  using other = new Patience(5);
  await until(() => other.isOver, { what: "the other is over", everyMs: 1 });
  assert.equal(calls, 0);
});
