import { MssqlQueryCompiler, sql as raw } from "kysely";
import type { StorageFailure } from "../../storage_error.ts";
import { connectionFailureOf } from "../../storage_error.ts";
import type { SqlDialect } from "../sql_dialect.ts";
import schema0 from "../schema/mssql/0.sql" with { type: "text" };
import schema1 from "../schema/mssql/1.sql" with { type: "text" };
import schema2 from "../schema/mssql/2.sql" with { type: "text" };
import schema3 from "../schema/mssql/3.sql" with { type: "text" };
import schema4 from "../schema/mssql/4.sql" with { type: "text" };
import schema5 from "../schema/mssql/5.sql" with { type: "text" };
import schema6 from "../schema/mssql/6.sql" with { type: "text" };
import schema7 from "../schema/mssql/7.sql" with { type: "text" };
import schema8 from "../schema/mssql/8.sql" with { type: "text" };
import schema9 from "../schema/mssql/9.sql" with { type: "text" };

/** Error numbers of SQL Server that have a name. */
const FAILURES: ReadonlyMap<number, StorageFailure | "constraint"> = new Map([
  [-2, "timeout"],
  [208, "schema-missing"],
  [229, "denied"],
  [230, "denied"],
  [823, "io"],
  [824, "corrupt"],
  [1105, "full"],
  [1205, "conflict"],
  [1222, "busy"],
  [2601, "constraint"],
  [2627, "constraint"],
  [3906, "read-only"],
  [3908, "read-only"],
  [3960, "conflict"],
  [4060, "no-database"],
  [9002, "full"],
  [10928, "too-many-connections"],
  [18456, "denied"],
]);

/** Microsoft SQL Server, and its cloud variant. */
export const MSSQL: SqlDialect = {
  name: "mssql",
  schema: [
    { version: 0, text: schema0 },
    { version: 1, text: schema1 },
    { version: 2, text: schema2 },
    { version: 3, text: schema3 },
    { version: 4, text: schema4 },
    { version: 5, text: schema5 },
    { version: 6, text: schema6 },
    { version: 7, text: schema7 },
    { version: 8, text: schema8 },
    { version: 9, text: schema9 },
  ],
  hasTransactionalSchema: true,
  begin: "BEGIN TRANSACTION",
  commit: "COMMIT TRANSACTION",
  rollback: "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION", // a severe error has ended it already
  compiler: () => new MssqlQueryCompiler(),
  limit: (query, count) => query.top(count),
  clockMs: raw<number>`CAST(DATEDIFF(SECOND, '1970-01-01', SYSUTCDATETIME()) AS BIGINT) * 1000`,
  rowLocks: "update",
  byteLength: "datalength",
  text: (value) => new TextEncoder().encode(value),

  failureOf(thrown) {
    if (typeof thrown !== "object" || thrown === null) return undefined;
    if (!("number" in thrown)) return connectionFailureOf(thrown);
    return typeof thrown.number === "number" ? FAILURES.get(thrown.number) : undefined;
  },

  async serverVersion(connection) {
    const sql = "SELECT CONVERT(VARCHAR(32), SERVERPROPERTY('ProductVersion')) AS version";
    const { rows } = await connection.execute(sql);
    return { product: "mssql", version: String(rows[0]!["version"]) };
  },

  async tables(connection) {
    const sql = "SELECT LOWER(name) AS name FROM sys.tables WHERE schema_id = SCHEMA_ID()";
    return new Set((await connection.execute(sql)).rows.map((row) => String(row["name"])));
  },

  async lockSchema(connection) {
    await connection.execute(
      "EXEC sp_getapplock @Resource = N'causeway_schema', @LockMode = N'Exclusive', " +
        "@LockOwner = N'Transaction', @LockTimeout = 60000",
    );
  },

  async settingProblems(connection) {
    const sql = "SELECT is_read_committed_snapshot_on AS is_on FROM sys.databases " +
      "WHERE database_id = DB_ID()";
    const { rows } = await connection.execute(sql);
    return Number(rows[0]!["is_on"]) === 1
      ? []
      : ["READ_COMMITTED_SNAPSHOT is OFF: rooms that are created in parallel cause deadlocks"];
  },
};
