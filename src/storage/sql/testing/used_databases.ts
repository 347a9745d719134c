import assert from "node:assert/strict";
import { COLUMNS } from "../copied_tables.ts";
import { VERSIONS_TABLE } from "../schema.ts";
import type { SqlConnection } from "../sql_connection.ts";
import type { SqlServerOptions } from "../sql_server.ts";
import { preparedDatabase, withConnection } from "./databases.ts";
import type { ServerKind, TestServer } from "./servers.ts";

/** Rows that a database may have had to be used again. What many leave behind slows the next test. */
const MOST_ROWS = 1_000;

/**
 * Databases with the present schema that tests have one after another: a new one takes a server up to
 * half a second of the processor, and most tests write a few rows.
 */
export class UsedDatabases {
  readonly #server: () => TestServer;
  readonly #free: SqlServerOptions[] = [];
  /** Tables that tests write to; all databases have the same. */
  #tables: readonly string[] | undefined;

  /** @param server is called once a test takes a database */
  constructor(server: () => TestServer) {
    this.#server = server;
  }

  /** Returns a database without rows, which nobody else has until it is given back. */
  async take(): Promise<SqlServerOptions> {
    return this.#free.pop() ?? await preparedDatabase(this.#server());
  }

  /** Takes a database back whose connections are closed and whose schema is as it was. */
  async giveBack(options: SqlServerOptions): Promise<void> {
    const { kind } = this.#server();
    const rows = await withConnection(options, async (connection) => {
      this.#tables ??= tablesWithRows(await kind.engine.dialect.tables(connection));
      return await removeRows(kind, { connection, tables: this.#tables });
    });
    if (rows <= MOST_ROWS) this.#free.push(options);
  }
}

/** Returns the tables of a database but for those that describe its schema. */
function tablesWithRows(tables: ReadonlySet<string>): readonly string[] {
  const found = [...tables].filter((table) => !table.startsWith(VERSIONS_TABLE));
  for (const table of found) assert.ok(table in COLUMNS, `${table} is a table of the schema`);
  return found;
}

/** Removes the rows of all tables, but for those that come with the schema. Returns how many. */
async function removeRows(
  { engine: { dialect }, text }: ServerKind,
  { connection, tables }: {
    readonly connection: SqlConnection;
    readonly tables: readonly string[];
  },
): Promise<number> {
  let rows = 0;
  await connection.execute(dialect.begin);
  for (const table of tables) {
    // The schema has an account without a name, behind all others.
    const named = table === "users" ? ` WHERE domainpart <> ${text("")}` : "";
    rows += (await connection.execute(`DELETE FROM ${table}${named}`)).affectedRows;
  }
  await connection.execute(dialect.commit);
  return rows;
}
