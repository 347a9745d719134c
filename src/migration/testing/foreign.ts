import { ForeignDatabase } from "../../storage/mod.ts";
import type { TestServer } from "../../storage/sql/testing/servers.ts";
import { SERVER_KINDS } from "../../storage/sql/testing/servers.ts";

/** Kinds of servers that another program may have left its tables in. */
export const FOREIGN_KINDS = SERVER_KINDS.filter(({ driver }) => driver !== "mssql");

/** Opens a database with `statements` carried out. */
export async function foreign(server: TestServer, statements: readonly string[]) {
  const address = await server.database();
  for (const statement of statements) await server.asRoot(statement, address.database);
  if (server.kind.driver === "pgsql") {
    await server.asRoot(
      "GRANT SELECT ON ALL TABLES IN SCHEMA public TO causeway",
      address.database,
    );
  }
  const { driver } = server.kind;
  if (driver === "mssql") throw new TypeError("Cannot read accounts from SQL Server");
  return await ForeignDatabase.open(driver, address);
}
