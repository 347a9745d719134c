import { answeringServer, SERVERS } from "./answering_server.ts";
import type { SqlAddress } from "./sql/sql_server.ts";
import { sqlError } from "./sql/sql_database.ts";
import type { SqlConnection, SqlRow } from "./sql/sql_connection.ts";
import type { SqlDriver } from "./database_pools.ts";
import { sqlEngineOf } from "./database_pools.ts";
import { storageError } from "./storage_error.ts";

const LIMITS = { connectTimeoutMs: 10_000, statementTimeoutMs: 120_000 };

/** Codes of failures to connect that a server of another kind leads to. */
const MAY_BE_ANOTHER = new Set(["storage/failed", "storage/unreachable"]);

/** Engines whose tables other programs left. */
export type ForeignDriver = Exclude<SqlDriver, "mssql">;

/** A database whose tables are another program's. It is only read. */
export class ForeignDatabase implements AsyncDisposable {
  readonly driver: ForeignDriver;
  /** Name for messages, without secrets. */
  readonly place: string;
  readonly #connection: SqlConnection;

  private constructor(driver: ForeignDriver, place: string, connection: SqlConnection) {
    this.driver = driver;
    this.place = place;
    this.#connection = connection;
  }

  /**
   * @throws CausewayError with a code `storage/…`: `storage/wrong-server` where a server of another
   * kind answers
   */
  static async open(
    driver: ForeignDriver,
    address: SqlAddress,
    limits = LIMITS,
  ): Promise<ForeignDatabase> {
    const { name: engineName, productNames = {}, connect, dialect } = sqlEngineOf(driver);
    const name = (address.product && productNames[address.product]) ?? engineName;
    const place = `the database ${name} ${address.database} at ${address.host}:${address.port}`;
    try {
      return new ForeignDatabase(driver, place, await connect(address, limits));
    } catch (thrown) {
      const context = { action: "connect to", place };
      const error = sqlError(dialect, thrown, context);
      if (!MAY_BE_ANOTHER.has(error.code)) throw error;
      // A driver that waits for its own protocol cannot say what it is that answers in another one.
      const server = await answeringServer(address.host, address.port);
      if (server === undefined || server === driver) throw error;
      const reason = `${SERVERS[server]} answers there`;
      throw storageError("wrong-server", context, { reason, cause: thrown });
    }
  }

  /**
   * Runs a statement that reads. `?` stands for each value.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async query(sql: string, values: readonly (string | number)[] = []): Promise<readonly SqlRow[]> {
    let count = 0;
    const written = this.driver === "pgsql" ? sql.replaceAll("?", () => `$${++count}`) : sql;
    try {
      return (await this.#connection.execute(written, values)).rows;
    } catch (thrown) {
      const { dialect } = sqlEngineOf(this.driver);
      throw sqlError(dialect, thrown, { action: "read", place: this.place });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection.close();
  }
}
