import assert from "node:assert/strict";
import { mssqlDump, schemaFiles } from "../../backends.ts";
import { statementsOf } from "../schema.ts";
import { assertParses } from "../testing/transact_sql.ts";

Deno.test("the schema for SQL Server is T-SQL, file by file and as a dump", async () => {
  const files = schemaFiles("mssql")!;
  await assertParses([
    ...files.flatMap((file) => statementsOf(file)),
    ...mssqlDump("server"),
    ...mssqlDump("cloud"),
  ]);
});

Deno.test("assertParses() refuses what is no T-SQL", async () => {
  await assert.rejects(assertParses(["SELECT 1", "SELECT FROM users WHERE"]), /SELECT FROM users/);
  await assert.rejects(assertParses(["INSERT users INTO (1)"]));
});
