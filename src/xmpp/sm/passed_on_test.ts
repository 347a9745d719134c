import assert from "node:assert/strict";
import { PassedOn } from "./passed_on.ts";

const [ALICE, BOB] = ["alice@example.com", "bob@example.com"];

Deno.test("PassedOn.get() tells the account of a session where it went, and no other account", () => {
  const passed = new PassedOn(10);
  passed.add("a", ALICE, 7);
  assert.equal(passed.get("a", ALICE), 7);
  assert.equal(passed.get("a", BOB), undefined);
  assert.equal(passed.get("b", ALICE), undefined);
});

Deno.test("PassedOn.add() forgets the oldest entries past maxEntries; a session that moves again is new", () => {
  const passed = new PassedOn(2);
  passed.add("a", ALICE, 1);
  passed.add("b", ALICE, 2);
  passed.add("a", ALICE, 3);
  passed.add("c", ALICE, 4);
  const found = ["a", "b", "c"].map((id) => passed.get(id, ALICE));
  assert.deepEqual(found, [3, undefined, 4]);
});

Deno.test("PassedOn.delete() forgets a session that is back", () => {
  const passed = new PassedOn(2);
  passed.add("a", ALICE, 1);
  passed.delete("a");
  assert.equal(passed.get("a", ALICE), undefined);
});
