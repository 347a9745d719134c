import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { keyOf } from "./keys.ts";
import { RecentKeys } from "./recent_keys.ts";

Deno.test("RecentKeys.keyOf() returns the key of each text, and the same one while it remembers it", () => {
  const keys = new RecentKeys();
  const first = keys.keyOf("alice@example.com");
  deepStrictEqual(first, keyOf("alice@example.com"));
  strictEqual(keys.keyOf("alice@example.com"), first);
  for (let i = 0; i < 10_000; i++) {
    const text = `person${i}@example.com`;
    if (i % 1_000 === 0) deepStrictEqual(keys.keyOf(text), keyOf(text));
    else keys.keyOf(text);
  }
  const again = keys.keyOf("alice@example.com");
  strictEqual(again === first, false, "it has been forgotten");
  deepStrictEqual(again, first);
});
