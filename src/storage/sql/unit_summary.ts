import { createHash } from "node:crypto";
import type { TableGroup } from "./copied_tables.ts";
import type { SqlDatabase } from "./sql_database.ts";
import type { Content } from "./unit_rows.ts";
import { contentIn, contentsOf, fingerprint, nextKeys, readUnits } from "./unit_rows.ts";

/** Number and content of the units of a group in one database. */
export interface UnitSummary {
  readonly units: number;
  /** 32 hexadecimal digits, the same for the same content in every engine and every order. */
  readonly checksum: string;
}

/** Bytes of a checksum. */
const CHECKSUM_BYTES = 16;

/**
 * Reads all units of a group, and returns their number and checksum.
 *
 * @throws CausewayError with a code `storage/…`
 */
export async function summarizeUnits(
  database: SqlDatabase,
  group: TableGroup,
): Promise<UnitSummary> {
  const sum = new Uint8Array(CHECKSUM_BYTES);
  let count = 0;
  for (let after: Content = null;;) {
    const { units, last } = await database.run("read the rows of", async (queries) => {
      const keys = await nextKeys(queries, database, group, { after });
      return {
        units: await readUnits(queries, database.dialect, group, keys),
        last: keys.at(-1),
      };
    });
    if (last === undefined) return { units: count, checksum: sum.toHex() };
    for (const unit of units.values()) {
      add(sum, createHash("sha256").update(fingerprint(unit, group)).digest());
      count++;
    }
    after = contentIn(last, contentsOf(group.tables[0])[group.key]!);
  }
}

/** Adds the first bytes of `digest` to `sum`, as numbers of 128 bits whose carry is lost. */
function add(sum: Uint8Array, digest: Uint8Array): void {
  let carry = 0;
  for (let i = sum.length - 1; i >= 0; i--) {
    carry += sum[i]! + digest[i]!;
    sum[i] = carry & 0xff;
    carry >>= 8;
  }
}
