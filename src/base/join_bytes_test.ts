import assert from "node:assert/strict";
import { joinBytes } from "./mod.ts";

Deno.test("joinBytes() copies all parts in their order, empty ones too", () => {
  const parts = [Uint8Array.of(1, 2), new Uint8Array(0), Uint8Array.of(3)];
  const whole = joinBytes(parts);
  parts[0]![0] = 9;
  assert.deepEqual(whole, Uint8Array.of(1, 2, 3));
  assert.deepEqual(joinBytes([]), new Uint8Array(0));
});
