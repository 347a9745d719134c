import { Socket } from "node:net";
import { PostgresQueryCompiler, sql as raw } from "kysely";
import type { StorageFailure } from "../../storage_error.ts";
import { codeOf, connectionFailureOf } from "../../storage_error.ts";
import { POSTGRES_STEP } from "../archive_step.ts";
import { COLUMNS } from "../copied_tables.ts";
import type { SqlConnection, SqlResult } from "../sql_connection.ts";
import type { SqlDialect } from "../sql_dialect.ts";
import { schemaFiles } from "../sql_dialect.ts";
import type { SessionLimits, SqlAddress, SqlEngine } from "../sql_server.ts";
import { readTls } from "../sql_server.ts";
import { POSTGRES_SEARCH } from "../text_search.ts";
import type { PostgresClient } from "./postgres_client.ts";
import schema0 from "../schema/pgsql/0.sql" with { type: "text" };
import schema1 from "../schema/pgsql/1.sql" with { type: "text" };
import schema2 from "../schema/pgsql/2.sql" with { type: "text" };
import schema3 from "../schema/pgsql/3.sql" with { type: "text" };
import schema4 from "../schema/pgsql/4.sql" with { type: "text" };
import schema5 from "../schema/pgsql/5.sql" with { type: "text" };
import schema6 from "../schema/pgsql/6.sql" with { type: "text" };
import schema7 from "../schema/pgsql/7.sql" with { type: "text" };
import schema8 from "../schema/pgsql/8.sql" with { type: "text" };
import schema9 from "../schema/pgsql/9.sql" with { type: "text" };
import schema10 from "../schema/pgsql/10.sql" with { type: "text" };
import schema11 from "../schema/pgsql/11.sql" with { type: "text" };
import schema12 from "../schema/pgsql/12.sql" with { type: "text" };
import schema13 from "../schema/pgsql/13.sql" with { type: "text" };
import schema14 from "../schema/pgsql/14.sql" with { type: "text" };
import schema15 from "../schema/pgsql/15.sql" with { type: "text" };
import schema16 from "../schema/pgsql/16.sql" with { type: "text" };

/** SQLSTATEs that have a name (PostgreSQL documentation, appendix A); two letters name a class. */
const FAILURES: ReadonlyMap<string, StorageFailure | "constraint"> = new Map([
  ["08", "unreachable"],
  ["23505", "constraint"],
  ["25006", "read-only"],
  ["25P03", "timeout"], // the transaction was idle for too long
  ["25P04", "timeout"], // or took too long
  ["28", "denied"],
  ["3D000", "no-database"],
  ["40000", "conflict"],
  ["40001", "conflict"],
  ["40003", "timeout"], // nobody knows whether it was done
  ["40P01", "conflict"],
  ["42501", "denied"],
  ["42P01", "schema-missing"],
  ["53", "overloaded"], // no memory, or another bound of the server
  ["53100", "full"],
  ["53300", "too-many-connections"],
  ["55000", "unreachable"], // the database accepts no connections
  ["54000", "value-too-large"], // a row, or an entry of an index
  ["55P03", "busy"],
  ["57014", "timeout"],
  ["57", "unreachable"], // it shuts down, crashes or starts, or ends the session
  ["57P04", "no-database"],
  ["58", "io"],
  ["XX001", "corrupt"],
  ["XX002", "corrupt"],
]);

/** Effect of a server that removes no dead rows, and does not count the others. */
const WITHOUT_VACUUM =
  "tables grow by all that is changed in them, and reading large archives takes long";

/** Messages of the driver about connections that ended, or never were; they have no code. */
const CONNECTION_ENDED =
  /^Connection terminated|connection error and is not queryable|was closed|^timeout expired$/;

/** Messages of the driver about logins, for want of a password for example; they have no code. */
const LOGIN_FAILED = /^SASL: /;

/**
 * SQLSTATEs of a prepared statement that this connection must not use again: its result has other types
 * by now, or a pooler between has changed the connection to the database under it.
 */
const UNPREPARED: ReadonlySet<unknown> = new Set(["0A000", "26000", "42P05"]);

/** Key of the advisory lock, any number of our own: `cwsc` in ASCII. */
const SCHEMA_LOCK = 0x63777363;

const DIALECT: SqlDialect = {
  name: "pgsql",
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
  hasTransactionalSchema: true,
  begin: "BEGIN",
  commit: "COMMIT",
  rollback: "ROLLBACK",
  compiler: () => new PostgresQueryCompiler(),
  limit: (query, count) => query.limit(count),
  clockMs: raw<number>`(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT`,
  identity: raw`EXTRACT(EPOCH FROM pg_postmaster_start_time())::TEXT || current_database()`,
  rowLocks: "for-update",
  byteLength: "length",
  textSearch: POSTGRES_SEARCH,
  archiveStep: POSTGRES_STEP,
  text: (value) => value,

  failureOf(thrown) {
    const code = codeOf(thrown);
    // Only what the server says has a severity.
    if (typeof code === "string" && thrown instanceof Error && "severity" in thrown) {
      return FAILURES.get(code) ?? FAILURES.get(code.slice(0, 2));
    }
    const failure = connectionFailureOf(thrown);
    if (failure !== undefined) return failure;
    const message = thrown instanceof Error ? thrown.message : "";
    if (LOGIN_FAILED.test(message)) return "denied";
    return CONNECTION_ENDED.test(message) ? "unreachable" : undefined;
  },

  async serverVersion(connection) {
    const { rows } = await connection.execute("SHOW server_version");
    return { product: "pgsql", version: String(rows[0]!["server_version"]) };
  },

  async tables(connection) {
    const sql =
      "SELECT lower(tablename) AS name FROM pg_tables WHERE schemaname = current_schema()";
    return new Set((await connection.execute(sql)).rows.map((row) => String(row["name"])));
  },

  async indexes(connection) {
    const sql =
      "SELECT lower(indexname) AS name FROM pg_indexes WHERE schemaname = current_schema()";
    return new Set((await connection.execute(sql)).rows.map((row) => String(row["name"])));
  },

  async lockSchema(connection) {
    await connection.execute(`SELECT pg_advisory_xact_lock(${SCHEMA_LOCK})`);
  },

  async settingProblems(connection) {
    const problems: string[] = [];
    const setting = async (name: string) =>
      String((await connection.execute(`SHOW ${name}`)).rows[0]![name]);
    const encoding = await setting("server_encoding");
    if (encoding !== "UTF8") {
      problems.push(`the encoding of the database is ${encoding}: names need UTF8`);
    }
    for (const name of ["fsync", "full_page_writes"]) {
      if (await setting(name) === "on") continue;
      problems.push(`${name} is off: a power failure may lose or damage what was written`);
    }
    // Autovacuum goes by what the server counts.
    for (const name of ["autovacuum", "track_counts"]) {
      if (await setting(name) !== "on") problems.push(`${name} is off: ${WITHOUT_VACUUM}`);
    }
    for (const table of await tablesWithoutVacuum(connection)) {
      problems.push(`autovacuum is off for the table ${table}: ${WITHOUT_VACUUM}`);
    }
    return problems;
  },
};

/** Returns the tables of ours that somebody has excepted from autovacuum. */
async function tablesWithoutVacuum(connection: SqlConnection): Promise<readonly string[]> {
  const sql = "SELECT relname AS name FROM pg_class " +
    "JOIN pg_namespace ON pg_namespace.oid = relnamespace " +
    "CROSS JOIN pg_options_to_table(reloptions) WHERE nspname = current_schema() " +
    "AND relkind = 'r' AND option_name = 'autovacuum_enabled' AND NOT option_value::BOOLEAN " +
    "ORDER BY relname";
  const names = (await connection.execute(sql)).rows.map((row) => String(row["name"]));
  return names.filter((name) => name in COLUMNS);
}

/** PostgreSQL. */
export const POSTGRES: SqlEngine = {
  dialect: DIALECT,
  name: "PostgreSQL",
  connect: (address, limits) => PostgresConnection.open(address, limits),
};

class PostgresConnection implements SqlConnection {
  readonly #client: PostgresClient;
  readonly #socket: Socket;
  #isOpen = true;

  private constructor(client: PostgresClient, socket: Socket) {
    this.#client = client;
    this.#socket = socket;
    // Without a listener, a connection that is lost while idle would end the process.
    client.on("error", () => this.#isOpen = false);
    client.on("end", () => this.#isOpen = false);
  }

  static async open(address: SqlAddress, limits: SessionLimits): Promise<PostgresConnection> {
    const { host, port, database, username, tls } = address;
    const password = address.password.reveal();
    const material = tls === undefined ? undefined : await readTls(tls);
    // Loaded at need: most commands and many nodes use no such server.
    const { PostgresClient } = await import("./postgres_client.ts");
    const socket = new Socket();
    const client = new PostgresClient({
      host,
      port,
      database,
      user: username,
      ...(password === "" ? {} : { password }),
      ssl: material === undefined ? false : { ...material, rejectUnauthorized: true },
      stream: () => socket,
      application_name: "causeway",
      connectionTimeoutMillis: limits.connectTimeoutMs,
      keepAlive: true,
    });
    const connection = new PostgresConnection(client, socket);
    try {
      await client.connect();
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

  async execute(sql: string, values?: readonly unknown[], name?: string): Promise<SqlResult> {
    const query = { text: sql, ...(values && { values: [...values] }), ...(name && { name }) };
    try {
      const { command, rows, rowCount } = await this.#client.run(query);
      return { rows, affectedRows: command === "SELECT" ? 0 : rowCount ?? 0 };
    } catch (thrown) {
      // A new connection prepares it anew.
      if (name !== undefined && UNPREPARED.has(codeOf(thrown))) this.destroy();
      throw thrown;
    }
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    try {
      await this.#client.end();
    } catch {
      this.destroy(); // it was lost already
    }
  }

  destroy(): void {
    this.#isOpen = false;
    this.#socket.destroy();
  }

  /** Keeps what a server may have turned off, and lets the server end what nobody waits for. */
  async #makeSettings({ statementTimeoutMs }: SessionLimits): Promise<void> {
    // The server gives up before the client cuts the connection, and can say why.
    const part = (fraction: number) => `${Math.ceil(statementTimeoutMs * fraction)}ms`;
    const settings = [
      ["statement_timeout", part(0.9)],
      ["lock_timeout", part(0.75)],
      ["idle_in_transaction_session_timeout", part(1)],
      ["default_transaction_isolation", "read committed"],
    ];
    const calls = settings.map(([name, value]) => `set_config('${name}', '${value}', false)`);
    // A commit is reported once it is on the disk, also where the server's default says otherwise.
    const durable = "CASE WHEN current_setting('synchronous_commit') = 'off' " +
      "THEN set_config('synchronous_commit', 'on', false) END";
    await this.#client.run({ text: `SELECT ${[...calls, durable].join(", ")}` });
  }
}
