import { join } from "node:path";
import type { ServerCertificate } from "../../../../harness/databases/mod.ts";
import { DatabaseServer, MARIADB, MYSQL, POSTGRESQL } from "../../../../harness/databases/mod.ts";
import type { ServerKind as ProgramKind } from "../../../../harness/databases/mod.ts";
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
}

const WITHOUT_PASSWORD = { reveal: () => "" };

const POSTGRES_KIND: ServerKind = {
  ...POSTGRESQL,
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
  };
}

/** The servers that tests run: each engine that is reached over the network. */
export const SERVER_KINDS: readonly ServerKind[] = [
  POSTGRES_KIND,
  mysqlKind(MARIADB),
  // Its binary is for this processor alone.
  ...(Deno.build.arch === "x86_64" ? [mysqlKind(MYSQL)] : []),
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

  /** Opens a connection as the first user, whose statements may take long. */
  async connect(database?: string): Promise<SqlConnection> {
    const root = this.kind.root(this.#server.directory, this.port);
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
