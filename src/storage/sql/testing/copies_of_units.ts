import assert from "node:assert/strict";
import { fill } from "../../testing/filled_stores.ts";
import { COPIED_KINDS } from "../copied_tables.ts";
import { copyUnits } from "../copy_units.ts";
import type { SqlDatabase } from "../sql_database.ts";
import { SqlStores } from "../sql_stores.ts";
import { summarizeUnits } from "../unit_summary.ts";

/**
 * Registers a test that sends each statement of copying units.
 *
 * @param open gives an empty database
 */
export function copiesOfUnits(name: string, open: () => Promise<SqlDatabase>): void {
  Deno.test(`${name}: units are copied to other ones, kept, replaced and removed`, async () => {
    const [from, to, empty] = [await open(), await open(), await open()];
    try {
      for (const database of [from, to]) await fill(new SqlStores(database));
      for (const group of Object.values(COPIED_KINDS).flat()) {
        const [table] = group.tables;
        const kept = await copyUnits(from, to, group, { differing: "keep" });
        assert.equal(kept.added, 0, table);
        await copyUnits(from, to, group, { differing: "replace" });
        const summary = await summarizeUnits(from, group);
        assert.ok(summary.units > 0, table);
        assert.deepEqual(await summarizeUnits(to, group), summary, table);
        // What only the destination has is removed, where keys have one order in all engines.
        const { removed } = await copyUnits(empty, to, group, { differing: "mirror" });
        assert.equal(removed, group.key === "name" ? 0 : summary.units, table);
        const { added } = await copyUnits(from, empty, group, { differing: "keep" });
        assert.equal(added, summary.units, table);
      }
    } finally {
      for (const database of [from, to, empty]) await database.close();
    }
  });
}
