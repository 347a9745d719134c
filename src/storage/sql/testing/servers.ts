import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { SqlConnection } from "../sql_connection.ts";
import type { SqlAddress, SqlEngine, SqlTls } from "../sql_server.ts";
import { MYSQL } from "../engines/mysql.ts";
import { POSTGRES } from "../engines/postgres.ts";

/** MySQL as `harness/preflight.ts` unpacks it. */
const MYSQL_HOME = fileURLToPath(
  new URL("../../../../.tmp/cache/mysql-8.0.31", import.meta.url),
);
/** `nobody`: PostgreSQL refuses to run as root. */
const UNPRIVILEGED = 65_534;
/** Ports for outgoing connections begin at 32768 on Linux. */
const [FIRST_PORT, LAST_PORT] = [10_240, 32_700];
const USER = "causeway";
const PASSWORD = "o'brien\\ %41 \"ß";

/** Certificate files that a server presents. */
export interface ServerCertificate {
  readonly certfile: string;
  readonly keyfile: string;
}

/** One kind of server: how its data are made and how it is run. */
interface ServerKind {
  readonly name: string;
  readonly engine: SqlEngine;
  /** Commands that make its data, below `directory`. */
  prepare(directory: string): readonly (readonly [string, ...string[]])[];
  run(directory: string, port: number): readonly [string, ...string[]];
  /** More options that make it present a certificate. */
  tls(certificate: ServerCertificate): readonly string[];
  /** Login of its first user, without a password, over its Unix socket. */
  root(directory: string, port: number): SqlAddress;
  /** Statements that make the tests' user. */
  readonly grants: readonly string[];
  grantAll(database: string): string;
}

const POSTGRES_KIND: ServerKind = {
  name: "PostgreSQL",
  engine: POSTGRES,
  prepare: (directory) => [[
    postgresProgram("initdb"),
    ...["-D", join(directory, "data"), "-U", "postgres", "--no-sync"],
    ...["-E", "UTF8", "--locale=C", "--auth-local=trust", "--auth-host=scram-sha-256"],
  ]],
  run: (directory, port) => [
    postgresProgram("postgres"),
    ...["-D", join(directory, "data"), "-k", directory, "-p", String(port)],
    ...["-c", "listen_addresses=127.0.0.1", "-c", "shared_buffers=16MB"],
    ...["-c", "max_connections=40", "-c", "autovacuum=off"],
  ],
  tls: ({ certfile, keyfile }) => [
    ...["-c", "ssl=on", "-c", `ssl_cert_file=${certfile}`, "-c", `ssl_key_file=${keyfile}`],
  ],
  root: (directory, port) => ({
    host: directory,
    port,
    database: "postgres",
    username: "postgres",
    password: { reveal: () => "" },
  }),
  grants: [`CREATE USER ${USER} PASSWORD '${PASSWORD.replaceAll("'", "''")}'`],
  grantAll: (database) => `ALTER DATABASE ${database} OWNER TO ${USER}`,
};

const MYSQL_LIMITS = [
  ...["--skip-log-bin", "--innodb-buffer-pool-size=32M", "--max-connections=40"],
  ...["--skip-name-resolve", "--performance-schema=OFF"],
];

function mysqlKind(name: string, program: string, own: Partial<ServerKind>): ServerKind {
  const escaped = PASSWORD.replaceAll("\\", "\\\\").replaceAll("'", "\\'");
  return {
    name,
    engine: MYSQL,
    prepare: () => [],
    run: (directory, port) => [
      program,
      ...["--no-defaults", `--datadir=${directory}/data`, `--socket=${directory}/mysql.sock`],
      ...[`--port=${port}`, "--bind-address=127.0.0.1", `--pid-file=${directory}/pid`],
      ...MYSQL_LIMITS,
    ],
    tls: ({ certfile, keyfile }) => [`--ssl-cert=${certfile}`, `--ssl-key=${keyfile}`],
    root: (directory) => ({
      host: join(directory, "mysql.sock"),
      port: 0,
      database: "mysql",
      username: "root",
      password: { reveal: () => "" },
    }),
    grants: [`CREATE USER '${USER}'@'%' IDENTIFIED BY '${escaped}'`],
    grantAll: (database) => `GRANT ALL ON ${database}.* TO '${USER}'@'%'`,
    ...own,
  };
}

const MARIADB_KIND = mysqlKind("MariaDB", "/usr/sbin/mariadbd", {
  prepare: (directory) => [[
    "mariadb-install-db",
    ...["--no-defaults", `--datadir=${directory}/data`, "--skip-test-db"],
    "--auth-root-authentication-method=normal",
  ]],
});

const MYSQL_KIND = mysqlKind("MySQL", `${MYSQL_HOME}/bin/mysqld`, {
  prepare: (directory) => [[
    `${MYSQL_HOME}/bin/mysqld`,
    ...["--no-defaults", "--initialize-insecure", `--datadir=${directory}/data`],
    ...[`--basedir=${MYSQL_HOME}`, `--lc-messages-dir=${MYSQL_HOME}/share`],
  ]],
  run: (directory, port) => [
    `${MYSQL_HOME}/bin/mysqld`,
    ...["--no-defaults", `--datadir=${directory}/data`, `--socket=${directory}/mysql.sock`],
    ...[`--port=${port}`, "--bind-address=127.0.0.1", `--pid-file=${directory}/pid`],
    ...[`--basedir=${MYSQL_HOME}`, `--lc-messages-dir=${MYSQL_HOME}/share`, "--mysqlx=OFF"],
    ...MYSQL_LIMITS,
  ],
});

/** The servers that tests run: each engine that is reached over the network. */
export const SERVER_KINDS: readonly ServerKind[] = [
  POSTGRES_KIND,
  MARIADB_KIND,
  // Its binary is for this processor alone.
  ...(Deno.build.arch === "x86_64" ? [MYSQL_KIND] : []),
];

/**
 * A database server of its own, in a directory of its own, on a port of loopback. It runs without
 * privileges, and is ended by its pid.
 */
export class TestServer implements AsyncDisposable {
  readonly kind: ServerKind;
  readonly directory: string;
  port = 0;
  #process: Deno.ChildProcess | undefined;
  #databases = 0;

  private constructor(kind: ServerKind, directory: string) {
    this.kind = kind;
    this.directory = directory;
  }

  /** Makes its data and starts it. */
  static async start(kind: ServerKind, ...args: readonly string[]): Promise<TestServer> {
    // Not below TMPDIR: all folders above must be open to everybody, and socket paths are short.
    const directory = await Deno.makeTempDir({ dir: "/tmp", prefix: "causeway-sql-" });
    const server = new TestServer(kind, directory);
    try {
      if (Deno.uid() === 0) await Deno.chown(directory, UNPRIVILEGED, UNPRIVILEGED);
      for (const command of kind.prepare(directory)) await server.#runToEnd(command);
      await server.launch(...args);
      for (const sql of kind.grants) await server.asRoot(sql);
      return server;
    } catch (thrown) {
      await server[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  /** Returns the end of what it wrote. */
  log(): string {
    return Deno.readTextFileSync(join(this.directory, "log")).slice(-4_000);
  }

  /** Starts it, after `kill` again on the same port, with more options. */
  async launch(...args: readonly string[]): Promise<void> {
    for (let tries = 1;; tries++) {
      if (this.port === 0) this.port = await freePort();
      const [program, ...own] = this.kind.run(this.directory, this.port);
      this.#process = this.#spawn([program, ...own, ...args]);
      if (await this.#isUp()) return;
      await this.kill();
      if (tries >= 3) throw new Error(`${this.kind.name} does not start:\n${this.log()}`);
      this.port = 0; // it was taken in between, by another test
    }
  }

  /** Ends it as a crash would. */
  async kill(): Promise<void> {
    const process = this.#process;
    if (process === undefined) return;
    this.#process = undefined;
    try {
      // PostgreSQL's sessions are processes of their own. They would outlive a SIGKILL for a while,
      // and answer; SIGQUIT ends them too, without a checkpoint or a word to their clients.
      process.kill(this.kind === POSTGRES_KIND ? "SIGQUIT" : "SIGKILL");
    } catch {
      // it has ended by itself
    }
    await process.status;
  }

  /**
   * Suspends it with its connections open, for PostgreSQL with the processes of its sessions.
   * Returns a function that resumes it.
   */
  async suspend(): Promise<() => void> {
    const sessions = this.kind === POSTGRES_KIND
      ? await this.asRoot(
        "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' " +
          "AND pid <> pg_backend_pid()",
      )
      : [];
    const pids = [this.#process!.pid, ...sessions.map(({ pid }) => Number(pid))];
    for (const pid of pids) Deno.kill(pid, "SIGSTOP");
    return () => {
      for (const pid of pids) Deno.kill(pid, "SIGCONT");
    };
  }

  /** Copies a certificate to where the server may read it, and nobody else. */
  async install(certificate: ServerCertificate): Promise<ServerCertificate> {
    const copies = { certfile: `${this.directory}/cert.pem`, keyfile: `${this.directory}/key.pem` };
    for (const name of ["certfile", "keyfile"] as const) {
      await Deno.copyFile(certificate[name], copies[name]);
      await Deno.chmod(copies[name], 0o600);
      if (Deno.uid() === 0) await Deno.chown(copies[name], UNPRIVILEGED, UNPRIVILEGED);
    }
    return copies;
  }

  /** Opens a connection as the first user, whose statements may take long. */
  async connect(database?: string): Promise<SqlConnection> {
    const root = this.kind.root(this.directory, this.port);
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
    await this.kill();
    await Deno.remove(this.directory, { recursive: true });
  }

  async #isUp(): Promise<boolean> {
    const process = this.#process!; // `launch` has just made it
    let hasEnded = false;
    process.status.then(() => hasEnded = true);
    for (let tries = 0; tries < 1_200 && !hasEnded; tries++) {
      try {
        await this.asRoot("SELECT 1");
        return true;
      } catch {
        await pause(50); // it has not opened its socket yet
      }
    }
    return false;
  }

  async #runToEnd(command: readonly string[]): Promise<void> {
    const { success } = await this.#spawn(command).status;
    if (!success) throw new Error(`${command[0]} failed:\n${this.log()}`);
  }

  /** Starts a program that writes into the server's log, so that no test has its pipes open. */
  #spawn(command: readonly string[]): Deno.ChildProcess {
    const isRoot = Deno.uid() === 0;
    return new Deno.Command("/bin/sh", {
      args: ["-c", 'exec "$@" >>log 2>&1', "sh", ...command],
      cwd: this.directory,
      env: { TMPDIR: this.directory },
      stdin: "null",
      stdout: "null",
      stderr: "null",
      ...(isRoot ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {}),
    }).spawn();
  }
}

const LIMITS = { connectTimeoutMs: 20_000, statementTimeoutMs: 20_000 };

/** Debian keeps PostgreSQL's programs off the PATH, in a folder for each version. */
function postgresProgram(name: string): string {
  const root = "/usr/lib/postgresql";
  try {
    const [newest] = [...Deno.readDirSync(root)].map((entry) => Number(entry.name))
      .filter((version) => version > 0).toSorted((one, other) => other - one);
    if (newest !== undefined) return `${root}/${newest}/bin/${name}`;
  } catch {
    // another system, where they are on the PATH
  }
  return name;
}

async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT + 1));
    const server = createServer();
    const { promise, resolve } = Promise.withResolvers<boolean>();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
    if (await promise) return port;
  }
}

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
