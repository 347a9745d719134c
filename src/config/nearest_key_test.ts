import assert from "node:assert/strict";
import fc from "fast-check";
import { editDistance, nearestKey } from "./nearest_key.ts";

Deno.test("editDistance() counts insertions, removals, replacements and swaps", () => {
  const cases: readonly (readonly [string, string, number])[] = [
    ["", "", 0],
    ["", "abc", 3],
    ["abc", "abc", 0],
    ["abc", "abd", 1],
    ["abc", "ac", 1],
    ["abc", "acb", 1],
    ["kitten", "sitting", 3],
  ];
  for (const [a, b, distance] of cases) assert.equal(editDistance(a, b), distance, `${a} ${b}`);
});

Deno.test("editDistance() is symmetric, zero only for equal texts, and at most the longer length", () => {
  fc.assert(fc.property(fc.string({ maxLength: 12 }), fc.string({ maxLength: 12 }), (a, b) => {
    const distance = editDistance(a, b);
    assert.equal(distance, editDistance(b, a));
    assert.equal(distance === 0, a === b);
    assert.ok(distance <= Math.max(a.length, b.length));
  }));
});

Deno.test("nearestKey() names the key that was probably meant, or none", () => {
  const keys = ["hosts", "node_name", "message_ttl", "expire_after", "refresh_after"];
  const cases: readonly (readonly [string, string | undefined])[] = [
    ["host", "hosts"],
    ["node-name", "node_name"],
    ["nodeName", "node_name"],
    ["mesage_tll", "message_ttl"],
    ["expire_after_seconds", "expire_after"],
    ["message", "message_ttl"],
    ["zebra", undefined],
    ["x", undefined],
    ["", undefined],
  ];
  for (const [written, meant] of cases) assert.equal(nearestKey(written, keys), meant, written);
});
