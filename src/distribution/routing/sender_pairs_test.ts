import assert from "node:assert/strict";
import { SenderPairs } from "./sender_pairs.ts";

Deno.test("SenderPairs.has() knows each pair that was added, and no other", () => {
  const pairs = new SenderPairs();
  pairs.add("alice", "bob");
  pairs.add("carol", "bob");
  pairs.add("alice", "dan");
  const known = [["alice", "bob"], ["carol", "bob"], ["alice", "dan"], ["carol", "dan"], [
    "bob",
    "alice",
  ]].map(([sender, recipient]) => pairs.has(sender!, recipient!));
  assert.deepEqual(known, [true, true, true, false, false]);
});
