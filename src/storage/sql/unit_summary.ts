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
  const sum = new ChecksumSum();
  let count = 0;
  for (let after: Content = null;;) {
    const { units, last } = await database.run("read the rows of", async (queries) => {
      const keys = await nextKeys(queries, database, group, { after });
      return {
        units: await readUnits(queries, database.dialect, group, keys),
        last: keys.at(-1),
      };
    });
    if (last === undefined) return { units: count, checksum: sum.text };
    for (const unit of units.values()) {
      sum.add(createHash("sha256").update(fingerprint(unit, group)).digest());
      count++;
    }
    after = contentIn(last, contentsOf(group.tables[0])[group.key]!);
  }
}

/** A sum of checksums, which is the same in every order. */
export class ChecksumSum {
  readonly bytes = new Uint8Array(CHECKSUM_BYTES);

  /** Adds the first bytes of `digest`, as a number of 128 bits whose carry is lost. */
  add(digest: Uint8Array): void {
    let carry = 0;
    for (let i = CHECKSUM_BYTES - 1; i >= 0; i--) {
      carry += this.bytes[i]! + digest[i]!;
      this.bytes[i] = carry & 0xff;
      carry >>= 8;
    }
  }

  /** 32 hexadecimal digits. */
  get text(): string {
    return this.bytes.toHex();
  }
}
