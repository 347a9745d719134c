import assert from "node:assert/strict";
import { msOutside } from "./span.ts";

const SPAN = { fromMs: 100, toMs: 200 };

Deno.test("msOutside() leaves out every window once", () => {
  const of = (...windows: readonly (readonly [number, number])[]) =>
    msOutside(SPAN, windows.map(([fromMs, toMs]) => ({ fromMs, toMs })));
  assert.equal(of(), 100);
  assert.equal(of([0, 100], [200, 300]), 100);
  assert.equal(of([110, 120]), 90);
  assert.equal(of([150, 170], [110, 160]), 40);
  assert.equal(of([110, 190], [120, 130]), 20);
  assert.equal(of([0, 150]), 50);
  assert.equal(of([150, 300]), 50);
  assert.equal(of([0, 300]), 0);
});
