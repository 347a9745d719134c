import { Buffer } from "node:buffer";
import { isIP } from "node:net";
import type { Connection, QueryResult } from "mysql2";
import { MysqlQueryCompiler, sql as raw } from "kysely";
import type { StorageFailure } from "../../storage_error.ts";
import { codeOf, connectionFailureOf } from "../../storage_error.ts";
import type { SqlConnection, SqlResult, SqlRow } from "../sql_connection.ts";
import type { SqlDialect } from "../sql_dialect.ts";
import { schemaFiles } from "../sql_dialect.ts";
import type { SessionLimits, SqlAddress, SqlEngine } from "../sql_server.ts";
import { readTls } from "../sql_server.ts";
import { isAtLeast } from "../../catalogue/catalogue.ts";
import { MYSQL_SEARCH } from "../text_search.ts";
import schema0 from "../schema/mysql/0.sql" with { type: "text" };
import schema1 from "../schema/mysql/1.sql" with { type: "text" };
import schema2 from "../schema/mysql/2.sql" with { type: "text" };
import schema3 from "../schema/mysql/3.sql" with { type: "text" };
import schema4 from "../schema/mysql/4.sql" with { type: "text" };
import schema5 from "../schema/mysql/5.sql" with { type: "text" };
import schema6 from "../schema/mysql/6.sql" with { type: "text" };
import schema7 from "../schema/mysql/7.sql" with { type: "text" };
import schema8 from "../schema/mysql/8.sql" with { type: "text" };
import schema9 from "../schema/mysql/9.sql" with { type: "text" };
import schema10 from "../schema/mysql/10.sql" with { type: "text" };
import schema11 from "../schema/mysql/11.sql" with { type: "text" };
import schema12 from "../schema/mysql/12.sql" with { type: "text" };
import schema13 from "../schema/mysql/13.sql" with { type: "text" };
import schema14 from "../schema/mysql/14.sql" with { type: "text" };
import schema15 from "../schema/mysql/15.sql" with { type: "text" };
import schema16 from "../schema/mysql/16.sql" with { type: "text" };

/** Error numbers of MySQL and MariaDB that have a name. */
const FAILURES: ReadonlyMap<number, StorageFailure | "constraint"> = new Map([
  [1021, "full"],
  [1040, "too-many-connections"],
  [1044, "denied"],
  [1045, "denied"],
  [1047, "no-quorum"], // Galera: this server belongs to no cluster that may change anything
  [1049, "no-database"],
  [1053, "unreachable"], // it shuts down
  [1062, "constraint"],
  [1114, "full"],
  [1118, "value-too-large"],
  [1142, "denied"],
  [1143, "denied"],
  [1146, "schema-missing"],
  [1153, "value-too-large"], // a packet above max_allowed_packet
  [1194, "corrupt"],
  [1203, "too-many-connections"],
  [1205, "busy"],
  [1213, "conflict"],
  [1226, "too-many-connections"],
  [1227, "denied"],
  [1290, "read-only"],
  [1317, "timeout"],
  [1406, "value-too-large"],
  [1698, "denied"],
  [1792, "read-only"],
  [1820, "denied"], // the password has expired
  [1836, "read-only"],
  [1862, "denied"],
  [1927, "unreachable"],
  [1969, "timeout"],
  [3024, "timeout"],
  [3032, "unreachable"], // it is in offline mode
  [3101, "conflict"], // Group Replication: a member has changed the same rows
  [3118, "denied"], // the account is locked
  [4031, "unreachable"],
  [4151, "denied"], // MariaDB: the account is locked
]);

/** Classes of SQLSTATEs whose errors have a name, if their numbers have none. */
const CLASSES: ReadonlyMap<string, StorageFailure> = new Map([
  ["08", "unreachable"],
  ["40", "conflict"],
]);

/** Error numbers for a column and an index that a statement would add and that are there already. */
const THERE_ALREADY: ReadonlySet<unknown> = new Set([1060, 1061]);

/**
 * Error numbers of statements that the server does not prepare: it holds as many as it may, for all its
 * clients, or tables change or leave its cache too often.
 */
const NOT_PREPARED: ReadonlySet<unknown> = new Set([1461, 1615]);

/**
 * Statements that a connection keeps prepared. Lists of all lengths make thousands of different ones, and
 * a server holds 16 382 for all clients by default.
 */
const MAX_PREPARED = 200;

/** Codes of the driver about connections that ended. */
const CONNECTION_ENDED: ReadonlySet<unknown> = new Set([
  ...["PROTOCOL_CONNECTION_LOST", "PROTOCOL_SEQUENCE_TIMEOUT"],
]);
const CLOSED_MESSAGE = /closed state|Connection lost|Connection is closed/;

/** Name of the lock on the schema. Locks belong to the server, so it names the database. */
const SCHEMA_LOCK = "CONCAT('causeway_schema.', LEFT(SHA1(DATABASE()), 16))";
const LOCK_TIMEOUT_S = 60;

/** Settings of a session that its statements rely on, whatever the server gives to new sessions. */
const SESSION_SETTINGS = [
  "NAMES utf8mb4", // a server may ignore what the driver asks for at the login
  "sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO'",
  "autocommit = 1", // most changes are a statement alone, which would never be committed
  "completion_type = 'NO_CHAIN'", // a commit begins no other transaction, and ends no session
  "sql_safe_updates = 0",
  "sql_select_limit = 18446744073709551615",
  "sql_big_selects = 1",
] as const;

/** Variables that MySQL 5.7.8 and older need for indexes on names, and their values there. */
const OLD_SERVER_SETTINGS = [
  ["innodb_large_prefix", "ON", "true"],
  ["innodb_file_format", "BARRACUDA", "BARRACUDA"],
  ["innodb_file_format_max", "BARRACUDA", "BARRACUDA"],
  ["innodb_file_per_table", "ON", "true"],
] as const;

const DIALECT: SqlDialect = {
  name: "mysql",
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
    schema16,
  ]),
  hasTransactionalSchema: false,
  begin: "START TRANSACTION",
  commit: "COMMIT",
  rollback: "ROLLBACK",
  compiler: () => new MysqlQueryCompiler(),
  // Servers refuse a LIMIT parameter that is not an integer, as which the driver sends no number.
  limit: (query, count) => query.limit(raw.lit(Math.trunc(count))),
  // MySQL knows the size of a table that grows fast only seconds later. Until then it reads all rows by
  // another index, and sorts them. MariaDB takes the hint for a comment.
  byKey: (table) => raw`/*+ INDEX(${raw.table(table)} PRIMARY) */`,
  // A prepared statement of MySQL compares with the UNIX_TIMESTAMP() of its first execution each time
  // (seen with 8.0.31). NOW() counts an hour twice where clocks are set back. Versions before 5.6.4
  // know no parts of a second.
  clockMs: raw<number>`TIMESTAMPDIFF(SECOND, '1970-01-01', UTC_TIMESTAMP()) * 1000`,
  // MariaDB has no `server_uuid`, and servers in containers may share all the rest but the time.
  identity: raw`(SELECT CONCAT_WS(' ', @@hostname, @@port, @@datadir, DATABASE(), create_time)
    FROM information_schema.tables
    WHERE table_schema = DATABASE() AND table_name = 'causeway_schema')`,
  rowLocks: "for-update",
  byteLength: "length",
  textSearch: MYSQL_SEARCH,
  text: (value) => value,

  failureOf(thrown) {
    if (CONNECTION_ENDED.has(codeOf(thrown))) return "unreachable";
    if (typeof thrown !== "object" || thrown === null) return undefined;
    const named = "errno" in thrown && typeof thrown.errno === "number"
      ? FAILURES.get(thrown.errno)
      : undefined;
    if (named !== undefined) return named;
    const message = thrown instanceof Error ? thrown.message : "";
    if (/errno: 28\b|No space left/.test(message)) return "full";
    if (/^Got error 149\b/.test(message)) return "conflict"; // found at the end of a transaction
    if (CLOSED_MESSAGE.test(message)) return "unreachable";
    const state = "sqlState" in thrown ? thrown.sqlState : undefined;
    if (typeof state !== "string" || state === "") return connectionFailureOf(thrown);
    return CLASSES.get(state.slice(0, 2));
  },

  wasDone: (thrown) => hasNumber(thrown, THERE_ALREADY),

  async serverVersion(connection) {
    const { rows } = await connection.execute("SELECT VERSION() AS version");
    const version = String(rows[0]!["version"]);
    return { product: /mariadb/i.test(version) ? "mariadb" : "mysql", version };
  },

  // Servers before MySQL 5.6.4 and MariaDB 10.0.5 make the table without it.
  async hasTextIndex(connection) {
    const sql = "SHOW INDEX FROM archive_texts WHERE Index_type = 'FULLTEXT'";
    return (await connection.execute(sql)).rows.length > 0;
  },

  async tables(connection) {
    const sql = "SELECT LOWER(table_name) AS name FROM information_schema.tables " +
      "WHERE table_schema = DATABASE()";
    return new Set((await connection.execute(sql)).rows.map((row) => String(row["name"])));
  },

  async indexes(connection) {
    const sql = "SELECT DISTINCT LOWER(index_name) AS name FROM information_schema.statistics " +
      "WHERE table_schema = DATABASE()";
    return new Set((await connection.execute(sql)).rows.map((row) => String(row["name"])));
  },

  async lockSchema(connection) {
    const sql = `SELECT GET_LOCK(${SCHEMA_LOCK}, ${LOCK_TIMEOUT_S}) AS is_locked`;
    const { rows } = await connection.execute(sql);
    if (Number(rows[0]!["is_locked"]) !== 1) {
      throw new Error(`another process has been changing the schema for ${LOCK_TIMEOUT_S} s`);
    }
  },

  async settingProblems(connection) {
    const sql = "SHOW GLOBAL VARIABLES WHERE Variable_name LIKE 'innodb\\_%'";
    const { rows } = await connection.execute(sql);
    const values = new Map(
      rows.map((row) => [String(row["Variable_name"]), String(row["Value"])]),
    );
    return mysqlSettingProblems(await DIALECT.serverVersion(connection), values);
  },
};

/** MySQL and MariaDB. */
export const MYSQL: SqlEngine = {
  dialect: DIALECT,
  name: "MySQL or MariaDB",
  productNames: { mysql: "MySQL", mariadb: "MariaDB" },
  connect: (address, limits) => MysqlConnection.open(address, limits),
};

/**
 * Lists what is wrong with the variables of a server.
 *
 * @param values by name, as `SHOW GLOBAL VARIABLES` gives them
 */
export function mysqlSettingProblems(
  { product, version }: { readonly product: string; readonly version: string },
  values: ReadonlyMap<string, string>,
): readonly string[] {
  const problems: string[] = [];
  const isOld = product === "mysql" ? !isAtLeast(version, "5.7.9") : !isAtLeast(version, "10.2.2");
  if (isOld) {
    for (const [name, needed, shown] of OLD_SERVER_SETTINGS) {
      if (values.get(name)?.toUpperCase() === needed) continue;
      problems.push(
        `${name} is ${values.get(name) ?? "absent"}: version ${version} needs ${name}=${shown}`,
      );
    }
  }
  const flush = values.get("innodb_flush_log_at_trx_commit");
  if (flush !== undefined && flush !== "1") {
    problems.push(
      `innodb_flush_log_at_trx_commit is ${flush}: a change is reported before it is on the disk; ` +
        "set it to 1",
    );
  }
  return problems;
}

/** The driver compares certificates with names alone: an address would accept any name. */
class CertificateNeedsName extends Error {
  override readonly message = "name the server by its host name: certificates are not compared " +
    "with addresses";
  readonly code = "ERR_TLS_CERT_ALTNAME_INVALID";
}

/** A value of a statement, as the driver takes it. */
type Parameter = string | number | Buffer | null;

class MysqlConnection implements SqlConnection {
  readonly #connection: Connection;
  #isOpen = true;

  private constructor(connection: Connection) {
    this.#connection = connection;
    // Without a listener, a connection that is lost while idle would end the process.
    connection.on("error", () => this.#isOpen = false);
    connection.on("end", () => this.#isOpen = false);
  }

  static async open(address: SqlAddress, limits: SessionLimits): Promise<MysqlConnection> {
    const { host, port, database, username, tls } = address;
    if (tls !== undefined && isIP(host) !== 0) throw new CertificateNeedsName();
    const material = tls === undefined ? undefined : await readTls(tls);
    // Loaded at need: most commands and many nodes use no such server.
    const { createConnection } = (await import("mysql2")).default;
    const inner = createConnection({
      ...(host.startsWith("/") ? { socketPath: host } : { host, port }),
      database,
      user: username,
      password: address.password.reveal(),
      ...(material === undefined
        ? {}
        : { ssl: { ...material, rejectUnauthorized: true, verifyIdentity: true } }),
      charset: "utf8mb4",
      connectTimeout: limits.connectTimeoutMs,
      supportBigNumbers: true,
      maxPreparedStatements: MAX_PREPARED,
      enableKeepAlive: true,
    });
    const connection = new MysqlConnection(inner);
    try {
      await connection.#connected();
      await connection.#makeSettings(limits);
      return connection;
    } catch (thrown) {
      connection.destroy();
      throw thrown;
    }
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  async execute(sql: string, values?: readonly unknown[]): Promise<SqlResult> {
    const result = await this.#send(sql, values);
    if (Array.isArray(result)) return { rows: result as SqlRow[], affectedRows: 0 };
    return { rows: [], affectedRows: result.affectedRows };
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#connection.end(() => resolve()); // an error means that it was lost already
    await promise;
    this.#connection.destroy();
  }

  destroy(): void {
    this.#isOpen = false;
    this.#connection.destroy();
  }

  #connected(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#connection.connect((error) => error ? reject(error) : resolve());
    return promise;
  }

  /** Sends a statement with parameters as a prepared one, and one without them as text. */
  async #send(sql: string, values: readonly unknown[] = []): Promise<QueryResult> {
    if (values.length === 0) return await this.#sendAs("query", sql, []);
    const parameters = values.map(parameterOf);
    try {
      return await this.#sendAs("execute", sql, parameters);
    } catch (thrown) {
      if (!hasNumber(thrown, NOT_PREPARED)) throw thrown;
      // The server has not begun it. The driver writes the parameters into the text.
      return await this.#sendAs("query", sql, parameters);
    }
  }

  #sendAs(
    way: "query" | "execute",
    sql: string,
    parameters: readonly Parameter[],
  ): Promise<QueryResult> {
    const { promise, resolve, reject } = Promise.withResolvers<QueryResult>();
    const done = (error: Error | null, result: QueryResult) => {
      if (!error) return resolve(result);
      // The driver tells whoever waits for a statement that the connection is lost, and nobody else.
      if (DIALECT.failureOf(error) === "unreachable") this.destroy();
      reject(error);
    };
    if (way === "query") this.#connection.query(sql, [...parameters], done);
    else this.#connection.execute(sql, [...parameters], done);
    return promise;
  }

  async #makeSettings({ statementTimeoutMs }: SessionLimits): Promise<void> {
    // The server gives up before the client cuts the connection. Otherwise the statement would be
    // carried out after its time, once the lock is free.
    const seconds = Math.max(1, Math.ceil(statementTimeoutMs / 1000) - 1);
    const settings = [...SESSION_SETTINGS, `innodb_lock_wait_timeout = ${seconds}`];
    await this.#send(`SET ${settings.join(", ")}`);
    // Without the locks on gaps between rows, changes of different accounts do not wait for each
    // other. A server that logs statements instead of rows refuses to write then.
    const { rows } = await this.execute("SHOW VARIABLES LIKE 'binlog_format'");
    if (rows[0]?.["Value"] === "STATEMENT") return;
    await this.#send("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
  }
}

function hasNumber(thrown: unknown, numbers: ReadonlySet<unknown>): boolean {
  return typeof thrown === "object" && thrown !== null && "errno" in thrown &&
    numbers.has(thrown.errno);
}

/** The driver knows bytes as a Buffer alone. */
function parameterOf(value: unknown): Parameter {
  if (value instanceof Uint8Array) {
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  }
  return value as Exclude<Parameter, Buffer>; // stores pass nothing else
}
