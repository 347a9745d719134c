import { MssqlQueryCompiler, sql as raw } from "kysely";
import type { StorageFailure } from "../../storage_error.ts";
import { codeOf, connectionFailureOf } from "../../storage_error.ts";
import type { SqlConnection } from "../sql_connection.ts";
import type { SqlDialect } from "../sql_dialect.ts";
import { schemaFiles } from "../sql_dialect.ts";
import type { SqlEngine } from "../sql_server.ts";
import { MssqlConnection } from "./mssql_connection.ts";
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
import schema10 from "../schema/mssql/10.sql" with { type: "text" };
import schema11 from "../schema/mssql/11.sql" with { type: "text" };
import schema12 from "../schema/mssql/12.sql" with { type: "text" };
import schema13 from "../schema/mssql/13.sql" with { type: "text" };
import schema14 from "../schema/mssql/14.sql" with { type: "text" };
import schema15 from "../schema/mssql/15.sql" with { type: "text" };

/** Error numbers of SQL Server that have a name. */
const FAILURES: ReadonlyMap<number, StorageFailure | "constraint"> = new Map([
  [-2, "timeout"],
  [208, "schema-missing"],
  [229, "denied"],
  [230, "denied"],
  [262, "denied"],
  [511, "value-too-large"],
  [701, "overloaded"], // no memory, like 802, 8628, 8645 and 8651
  [802, "overloaded"],
  [823, "io"],
  [824, "corrupt"],
  [921, "unreachable"], // the database is being recovered
  [922, "unreachable"],
  [976, "unreachable"], // the database belongs to another server of its availability group
  [983, "unreachable"],
  [988, "no-quorum"],
  [1105, "full"],
  [1204, "overloaded"], // no locks
  [1205, "conflict"],
  [1222, "busy"],
  [2601, "constraint"],
  [2627, "constraint"],
  [2628, "value-too-large"],
  [3906, "read-only"],
  [3908, "read-only"],
  [3960, "conflict"],
  [4060, "no-database"],
  [4064, "no-database"],
  [6005, "unreachable"], // it shuts down
  [8152, "value-too-large"],
  [8628, "overloaded"],
  [8645, "overloaded"],
  [8651, "overloaded"],
  [9002, "full"],
  [10928, "too-many-connections"],
  [10929, "too-many-connections"],
  [17142, "unreachable"], // it is paused
  [17809, "too-many-connections"],
  [18456, "denied"],
  [40197, "unreachable"], // the cloud's service moves the database
  [40501, "busy"], // the cloud's service is overloaded, or moves the database
  [40613, "unreachable"],
  [49918, "overloaded"],
  [49919, "overloaded"],
  [49920, "overloaded"],
]);

/** Codes of the driver about the connection. */
const CONNECTION_FAILURES: ReadonlyMap<unknown, StorageFailure> = new Map([
  ["ECLOSE", "unreachable"],
  ["EENCRYPT", "no-tls"],
  ["EINVALIDSTATE", "unreachable"], // it ended between two statements
  ["ESOCKET", "unreachable"],
  ["ETIMEOUT", "timeout"],
]);

const LOCK_TIMEOUT_S = 60;

/** Lets transactions read what was committed last, instead of waiting for each other. */
export const SNAPSHOT_ON = "ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON";

const DIALECT: SqlDialect = {
  name: "mssql",
  schema: schemaFiles([
    schema0,
    schema1,
    schema2,
    schema3,
    schema4,
    schema5,
    schema6,
    schema7,
    schema8,
    schema9,
    schema10,
    schema11,
    schema12,
    schema13,
    schema14,
    schema15,
  ]),
  hasTransactionalSchema: true,
  begin: "BEGIN TRANSACTION",
  commit: "COMMIT TRANSACTION",
  rollback: "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION", // a severe error has ended it already
  compiler: () => new MssqlQueryCompiler(),
  limit: (query, count) => query.top(count),
  // From 1970, the seconds would not fit into an INT any more in 2038.
  clockMs: raw<
    number
  >`CONVERT(BIGINT, DATEDIFF(SECOND, '2020-01-01', SYSUTCDATETIME())) * 1000 + 1577836800000`,
  rowLocks: "update",
  byteLength: "datalength",
  text: (value) => new TextEncoder().encode(value),

  failureOf(thrown) {
    // A statement that fails with several errors names the reason in one of them.
    if (thrown instanceof AggregateError) {
      return thrown.errors.map((each) => DIALECT.failureOf(each)).find((each) =>
        each !== undefined
      );
    }
    if (typeof thrown !== "object" || thrown === null) return undefined;
    if ("number" in thrown && typeof thrown.number === "number") return FAILURES.get(thrown.number);
    // The driver wraps what sockets and TLS report.
    const cause = "cause" in thrown ? connectionFailureOf(thrown.cause) : undefined;
    return cause ?? connectionFailureOf(thrown) ?? CONNECTION_FAILURES.get(codeOf(thrown));
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

  async indexes(connection) {
    const sql = "SELECT LOWER(name) AS name FROM sys.indexes WHERE name IS NOT NULL";
    return new Set((await connection.execute(sql)).rows.map((row) => String(row["name"])));
  },

  async lockSchema(connection) {
    const { rows } = await connection.execute(
      "DECLARE @outcome INT; " +
        "EXEC @outcome = sp_getapplock @Resource = N'causeway_schema', " +
        "@LockMode = N'Exclusive', @LockOwner = N'Transaction', " +
        `@LockTimeout = ${LOCK_TIMEOUT_S * 1000}; ` +
        "SELECT @outcome AS outcome",
    );
    // Without the lock it goes on, and says so in this number alone.
    if (Number(rows[0]!["outcome"]) < 0) {
      throw new Error(`another process has been changing the schema for ${LOCK_TIMEOUT_S} s`);
    }
  },

  async settingProblems(connection) {
    return await hasSnapshotIsolation(connection) ? [] : [
      "READ_COMMITTED_SNAPSHOT is OFF: rooms that are created in parallel cause deadlocks; run " +
      "`causeway backends prepare --fix-isolation`",
    ];
  },

  async isolationFix(connection) {
    // It waits until no other session uses the database.
    return await hasSnapshotIsolation(connection) ? [] : [SNAPSHOT_ON];
  },
};

/** Microsoft SQL Server, and its cloud variant. */
export const MSSQL: SqlEngine = {
  dialect: DIALECT,
  name: "SQL Server",
  connect: (address, limits) => MssqlConnection.open(address, limits),
};

async function hasSnapshotIsolation(connection: SqlConnection): Promise<boolean> {
  const sql = "SELECT is_read_committed_snapshot_on AS is_on FROM sys.databases " +
    "WHERE database_id = DB_ID()";
  const { rows } = await connection.execute(sql);
  return Number(rows[0]!["is_on"]) === 1; // the driver makes a boolean of it
}
