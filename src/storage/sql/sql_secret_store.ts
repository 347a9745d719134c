import { randomBytes } from "node:crypto";
import type { SqlDatabase } from "./sql_database.ts";
import { bytesOf } from "./sql_dialect.ts";

const SECRET_BYTES = 32;

/**
 * Returns random bytes that stay the same as long as the database exists, for all that use it. The
 * first call makes them, or takes those of another database.
 *
 * @throws CausewayError with a code `storage/…`
 */
export async function secretOf(
  database: SqlDatabase,
  name: string,
  moved?: Uint8Array,
): Promise<Uint8Array> {
  const { dialect } = database;
  return await database.transact("use", async (queries) => {
    const found = await queries.selectFrom("secrets").select("value")
      .where("name", "=", dialect.text(name)).executeTakeFirst();
    if (found !== undefined) return bytesOf(found.value);
    const value = moved ?? new Uint8Array(randomBytes(SECRET_BYTES));
    await queries.insertInto("secrets").values({ name: dialect.text(name), value }).execute();
    return value;
  });
}
