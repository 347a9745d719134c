import assert from "node:assert/strict";
import type { Roster } from "../../storage/mod.ts";
import { changesSince } from "./roster_changes.ts";
import { unlistedItem } from "./subscription_state.ts";

function roster(versions: readonly number[], bounds: Partial<Roster> = {}): Roster {
  const items = versions.map((version) => ({
    ...unlistedItem(`u${version}@example.com`),
    isListed: true,
    version,
  }));
  return { version: Math.max(...versions), removedVersion: 10, items, ...bounds };
}

function versionsSince(of: Roster, known: string): number[] | undefined {
  return changesSince(of, known)?.map(({ version }) => version);
}

Deno.test("changesSince() returns later changes in their order, and nothing for the present version", () => {
  const of = roster([12, 30, 25, 11]);
  assert.deepEqual(versionsSince(of, "30"), []);
  assert.deepEqual(versionsSince(of, "12"), [25, 30]);
  assert.deepEqual(versionsSince(of, "10"), [11, 12, 25, 30]);
});

Deno.test("changesSince() leaves out items that clients do not see", () => {
  const of = roster([12, 13]);
  const items = of.items.map((item) => item.version === 13 ? { ...item, isListed: false } : item);
  assert.deepEqual(versionsSince({ ...of, items }, "11"), [12]);
});

Deno.test("changesSince() asks for the whole roster where a removal or the version is unknown", () => {
  const of = roster([12, 30]);
  for (const known of ["9", "31", "", "-1", "011", "1e1", "12 ", "zwölf", "9".repeat(17)]) {
    assert.equal(versionsSince(of, known), undefined, known);
  }
});

Deno.test("changesSince() asks for the whole roster after very many changes", () => {
  const versions = Array.from({ length: 101 }, (_, i) => 11 + i);
  assert.equal(versionsSince(roster(versions), "10"), undefined);
  assert.equal(versionsSince(roster(versions), "11")?.length, 100);
});

Deno.test("changesSince() of a roster that was never changed is empty for version 0", () => {
  const of: Roster = { version: 0, removedVersion: 0, items: [] };
  assert.deepEqual(changesSince(of, "0"), []);
  assert.equal(changesSince(of, "1"), undefined);
});
