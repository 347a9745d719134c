import { join } from "node:path";
import type { ServerCertificate } from "../../../../harness/databases/mod.ts";
import {
  DatabaseServer,
  MARIADB,
  MSSQL_DOUBLE,
  MYSQL,
  POSTGRESQL,
} from "../../../../harness/databases/mod.ts";
import type { ServerKind as ProgramKind } from "../../../../harness/databases/mod.ts";
import { COLUMNS } from "../copied_tables.ts";
import { MSSQL } from "../engines/mssql.ts";
import { MYSQL as MYSQL_ENGINE } from "../engines/mysql.ts";
import { POSTGRES } from "../engines/postgres.ts";
import type { SqlConnection } from "../sql_connection.ts";
import type { SqlAddress, SqlEngine, SqlTls } from "../sql_server.ts";

const USER = "causeway";
const PASSWORD = "o'brien\\ %41 \"ß";

/** One kind of server, and how tests log in to it. */
export interface ServerKind extends ProgramKind {
  readonly engine: SqlEngine;
  /** Login of its first user, without a password, over its Unix socket. */
  root(directory: string, port: number): SqlAddress;
  /** Statement that makes the tests' user. */
  readonly creation: string;
  grantAll(database: string): string;
  /** Statement that makes a database read-only, or no longer so, for sessions that begin later. */
  setReadOnly(database: string, isOn: boolean): string;
  /** Query for the sessions of a database as `id`, without those of the first user. */
  sessions(database: string): string;
  /** Statement that ends a session. */
  endSession(id: number): string;
  /** Query that has rows while a session of a database waits for a row that another one locked. */
  blocked(database: string): string;
  /** Expression for a text as columns have it. The text has no quotes in it. */
  text(value: string): string;
  /** Statement that locks a row until its transaction ends. */
  lockRow(table: string, id: number): string;
  /** Statements within a database that make insertions into a table fail. */
  failInsertions(failure: InsertionFailure): readonly string[];
  /** Statements within a database that make insertions into tables and updates of them fail. */
  failWrites(tables: readonly string[]): readonly string[];
}

/** A failure of a server whose disk is full, or that finds rows too large. */
export interface InsertionFailure {
  /** @default the disk is full */
  readonly why?: "too-large";
  readonly table: string;
  /** Column and value of the rows that fail. Absent: all rows. */
  readonly only?: { readonly column: string; readonly value: string };
}

const WITHOUT_PASSWORD = { reveal: () => "" };

const POSTGRES_KIND: ServerKind = {
  ...POSTGRESQL,
  // Autovacuum is on, as a check expects it, and never begins: no table of a test needs it.
  run: (directory, port) => [...POSTGRESQL.run(directory, port), "-c", "autovacuum_naptime=20d"],
  engine: POSTGRES,
  root: (directory, port) => ({
    host: directory,
    port,
    database: "postgres",
    username: "postgres",
    password: WITHOUT_PASSWORD,
  }),
  creation: `CREATE USER ${USER} PASSWORD '${PASSWORD.replaceAll("'", "''")}'`,
  grantAll: (database) => `ALTER DATABASE ${database} OWNER TO ${USER}`,
  setReadOnly: (database, isOn) =>
    `ALTER DATABASE ${database} SET default_transaction_read_only = ${isOn ? "on" : "off"}`,
  sessions: (database) =>
    `SELECT pid AS id FROM pg_stat_activity ` +
    `WHERE datname = '${database}' AND usename <> 'postgres'`,
  endSession: (id) => `SELECT pg_terminate_backend(${id})`,
  blocked: (database) =>
    `SELECT pid FROM pg_stat_activity WHERE datname = '${database}' AND wait_event_type = 'Lock'`,
  text: (value) => `'${value}'`,
  lockRow: (table, id) => `SELECT id FROM ${table} WHERE id = ${id} FOR UPDATE`,
  failInsertions: ({ table, only, why }) => [
    `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ` +
    (only === undefined
      ? ""
      : `IF NEW.${only.column} <> '${only.value}' THEN RETURN NEW; END IF; `) +
    `RAISE EXCEPTION 'no room' USING ERRCODE = '${why === undefined ? 53100 : 54000}'; END $$`,
    `CREATE TRIGGER fail BEFORE INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION fail()`,
  ],
  failWrites: (tables) => [
    "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " +
    "RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END $$",
    ...tables.map((table) =>
      `CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION fail()`
    ),
  ],
};

function mysqlKind(kind: ProgramKind): ServerKind {
  const escaped = PASSWORD.replaceAll("\\", "\\\\").replaceAll("'", "\\'");
  return {
    ...kind,
    engine: MYSQL_ENGINE,
    root: (directory) => ({
      host: join(directory, "mysql.sock"),
      port: 0,
      database: "mysql",
      username: "root",
      password: WITHOUT_PASSWORD,
    }),
    creation: `CREATE USER '${USER}'@'%' IDENTIFIED BY '${escaped}'`,
    grantAll: (database) => `GRANT ALL ON ${database}.* TO '${USER}'@'%'`,
    setReadOnly: (_, isOn) => `SET GLOBAL read_only = ${isOn ? "ON" : "OFF"}`,
    sessions: (database) =>
      `SELECT id AS id FROM information_schema.processlist ` +
      `WHERE db = '${database}' AND user <> 'root'`,
    endSession: (id) => `KILL ${id}`,
    blocked: () => "SELECT trx_id FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
    text: (value) => `'${value}'`,
    lockRow: (table, id) => `SELECT id FROM ${table} WHERE id = ${id} FOR UPDATE`,
    failInsertions: ({ table, only, why }) => [
      `CREATE TRIGGER fail BEFORE INSERT ON ${table} FOR EACH ROW ` +
      (only === undefined ? "" : `IF NEW.${only.column} = '${only.value}' THEN `) +
      `SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = ${why === undefined ? 1114 : 1118}, ` +
      "MESSAGE_TEXT = 'no room'" +
      (only === undefined ? "" : "; END IF"),
    ],
    failWrites: (tables) =>
      tables.flatMap((table) =>
        ["INSERT", "UPDATE"].map((change) =>
          `CREATE TRIGGER fail_${change}_${table} BEFORE ${change} ON ${table} FOR EACH ROW ` +
          "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1114, MESSAGE_TEXT = 'no room'"
        )
      ),
  };
}

const MSSQL_KIND: ServerKind = {
  ...MSSQL_DOUBLE,
  engine: MSSQL,
  root: (_, port) => ({
    host: "127.0.0.1",
    port,
    database: "master",
    username: "sa",
    password: WITHOUT_PASSWORD,
  }),
  creation: `CREATE LOGIN ${USER} WITH PASSWORD = N'${PASSWORD.replaceAll("'", "''")}'`,
  grantAll: (database) => `ALTER AUTHORIZATION ON DATABASE::${database} TO ${USER}`,
  setReadOnly: (database, isOn) =>
    `ALTER DATABASE ${database} SET ${isOn ? "READ_ONLY" : "READ_WRITE"} WITH ROLLBACK IMMEDIATE`,
  sessions: (database) =>
    "SELECT session_id AS id FROM sys.dm_exec_sessions " +
    `WHERE database_id = DB_ID(N'${database}') AND login_name <> N'sa'`,
  endSession: (id) => `KILL ${id}`,
  blocked: (database) =>
    "SELECT session_id FROM sys.dm_exec_requests " +
    `WHERE database_id = DB_ID(N'${database}') AND wait_type LIKE N'LCK%'`,
  text: (value) => `CONVERT(VARBINARY(1023), '${value}')`,
  lockRow: (table, id) => `SELECT id FROM ${table} WITH (UPDLOCK, ROWLOCK) WHERE id = ${id}`,
  // A procedure of the double's own.
  failInsertions: ({ table, only, why }) => [
    `EXEC tds_fail @table = N'${table}', @number = ${why === undefined ? 1105 : 511}` +
    (only === undefined ? "" : `, @column = N'${only.column}', @value = N'${only.value}'`),
  ],
  failWrites: () => ["EXEC tds_fail @table = N'*', @number = 1105"],
};

/** The servers that tests run: each engine that is reached over the network. */
export const SERVER_KINDS: readonly ServerKind[] = [
  POSTGRES_KIND,
  mysqlKind(MARIADB),
  // Its binary is for this processor alone.
  ...(Deno.build.arch === "x86_64" ? [mysqlKind(MYSQL)] : []),
  MSSQL_KIND,
];

/** A database server of a test, with the rights of its first user. */
export class TestServer implements AsyncDisposable {
  readonly kind: ServerKind;
  readonly #server: DatabaseServer;
  #databases = 0;

  private constructor(kind: ServerKind, server: DatabaseServer) {
    this.kind = kind;
    this.#server = server;
  }

  /** Makes its data and starts it. */
  static async start(kind: ServerKind): Promise<TestServer> {
    const server = new TestServer(kind, await DatabaseServer.start(kind));
    try {
      await server.asRoot(kind.creation);
      return server;
    } catch (thrown) {
      await server[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  get port(): number {
    return this.#server.port;
  }

  /** Returns the end of what it wrote. */
  log(): string {
    return this.#server.log();
  }

  /** Starts it after `kill` again on the same port, with more options. */
  async launch(...args: readonly string[]): Promise<void> {
    await this.#server.launch(...args);
  }

  /** Ends it as a crash would. */
  async kill(): Promise<void> {
    await this.#server.kill();
  }

  /** Suspends it with its connections open. Returns a function that resumes it. */
  suspend(): () => void {
    return this.#server.suspend();
  }

  /** Copies a certificate to where the server may read it, and nobody else. */
  async install(certificate: ServerCertificate): Promise<ServerCertificate> {
    return await this.#server.install(certificate);
  }

  /** Login of the first user. */
  get rootAddress(): SqlAddress {
    return this.kind.root(this.#server.directory, this.port);
  }

  /** Opens a connection as the first user, whose statements may take long. */
  async connect(database?: string): Promise<SqlConnection> {
    const root = this.rootAddress;
    const address = database === undefined ? root : { ...root, database };
    return await this.kind.engine.connect(address, LIMITS);
  }

  /** Runs a statement as the first user, in any database. */
  async asRoot(
    sql: string,
    database?: string,
  ): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const connection = await this.connect(database);
    try {
      return (await connection.execute(sql)).rows;
    } finally {
      await connection.close();
    }
  }

  /** Ends the sessions of a database, and waits until the server has none of them any more. */
  async endSessions(database: string): Promise<void> {
    for (;;) {
      const sessions = await this.asRoot(this.kind.sessions(database));
      if (sessions.length === 0) return;
      for (const { id } of sessions) {
        await this.asRoot(this.kind.endSession(Number(id))).catch(() => {}); // it has ended already
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Makes insertions into a table fail. */
  async failInsertions(database: string, failure: InsertionFailure): Promise<void> {
    for (const sql of this.kind.failInsertions(failure)) await this.asRoot(sql, database);
  }

  /** Makes insertions into all tables and updates of them fail as if the disk was full. */
  async fillDisk(database: string): Promise<void> {
    const connection = await this.connect(database);
    try {
      for (const sql of this.kind.failWrites(Object.keys(COLUMNS))) await connection.execute(sql);
    } finally {
      await connection.close();
    }
  }

  /** Makes an empty database and returns the address at which the tests' user reaches it. */
  async database(tls?: SqlTls): Promise<SqlAddress> {
    const database = `test${++this.#databases}`;
    await this.asRoot(`CREATE DATABASE ${database}`);
    await this.asRoot(this.kind.grantAll(database));
    return {
      host: "127.0.0.1",
      port: this.port,
      database,
      username: USER,
      password: { reveal: () => PASSWORD },
      ...(tls === undefined ? {} : { tls }),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }
}

const LIMITS = { connectTimeoutMs: 20_000, statementTimeoutMs: 20_000 };

/**
 * Registers a server that runs during the tests of a file. Returns a function that gives it, once
 * the tests have begun.
 */
export function serverDuringTests(kind: ServerKind): () => TestServer {
  let server: TestServer | undefined;
  Deno.test.beforeAll(async () => {
    server = await TestServer.start(kind);
  });
  Deno.test.afterAll(async () => {
    await server?.[Symbol.asyncDispose](); // undefined: it did not start, which has been reported
  });
  return () => server!; // tests do not run before it has started
}
