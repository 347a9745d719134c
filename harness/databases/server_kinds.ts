import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isFile, isOnPath } from "./programs.ts";

/** Certificate files that a server presents. */
export interface ServerCertificate {
  readonly certfile: string;
  readonly keyfile: string;
}

/** A program and its arguments. */
export type CommandLine = readonly [string, ...string[]];

/** One server program: how its data are made and how it is run. */
export interface ServerProgram {
  readonly name: string;
  /** True for a program of ours, which runs with the rights of the harness. */
  readonly isOwn?: true;
  /** True for a program whose children are the server: they are ended with it. */
  readonly hasChildren?: true;
  /** First and last port that it can use. @default those below the ports for outgoing connections */
  readonly ports?: readonly [number, number];
  /** Address of loopback that it listens on. @default 127.0.0.1 */
  readonly address?: string;
  /** True when it makes the same `data` in each directory: it makes them once, and servers copy them. */
  readonly preparesOnce?: true;
  /** Commands that make its data, below `directory`. */
  prepare(directory: string): readonly CommandLine[];
  run(directory: string, port: number): CommandLine;
  /** Text in its output that says that it answers. */
  readonly readyText: string;
  /** Signal that ends it as a crash would. */
  readonly killSignal: "SIGKILL" | "SIGQUIT";
}

/** One kind of database server. */
export interface ServerKind extends ServerProgram {
  readonly name: "PostgreSQL" | "MariaDB" | "MySQL" | "SQL Server";
  /** Name of its engine in a node's configuration. */
  readonly driver: "pgsql" | "mysql" | "mssql";
  /** True when its programs are on this machine. */
  isThere(): boolean;
  /** More options that make it present a certificate. */
  tls(certificate: ServerCertificate): readonly string[];
  /** More options that let it accept so many connections. */
  connections(count: number): readonly string[];
  /** Statements that make a user who owns a database. The password has no quotes in it. */
  grants(user: string, password: string, database: string): readonly string[];
}

/** MySQL as `harness/preflight.ts` unpacks it. */
export const MYSQL_HOME = fileURLToPath(new URL("../../.tmp/cache/mysql-8.0.31", import.meta.url));

/** Checkers of `python_checkers.ts` as `harness/preflight.ts` installs them. */
export const PYTHON_CHECKERS_HOME = fileURLToPath(
  new URL("../../.tmp/cache/python-checkers", import.meta.url),
);

export const POSTGRESQL: ServerKind = {
  name: "PostgreSQL",
  driver: "pgsql",
  isThere: () => isFile(postgresProgram("initdb")) || isOnPath("initdb"),
  preparesOnce: true,
  prepare: (directory) => [[
    postgresProgram("initdb"),
    ...["-D", join(directory, "data"), "-U", "postgres", "--no-sync"],
    ...["-E", "UTF8", "--locale=C", "--auth-local=trust", "--auth-host=scram-sha-256"],
  ]],
  run: (directory, port) => [
    postgresProgram("postgres"),
    ...["-D", join(directory, "data"), "-k", directory, "-p", String(port)],
    ...["-c", "listen_addresses=127.0.0.1", "-c", "shared_buffers=16MB"],
    ...["-c", "max_connections=40"],
  ],
  readyText: "database system is ready to accept connections",
  // Its sessions are processes of their own. They would outlive a SIGKILL for a while, and answer.
  // SIGQUIT ends them too, without a checkpoint or a word to their clients.
  killSignal: "SIGQUIT",
  tls: ({ certfile, keyfile }) => [
    ...["-c", "ssl=on", "-c", `ssl_cert_file=${certfile}`, "-c", `ssl_key_file=${keyfile}`],
  ],
  connections: (count) => ["-c", `max_connections=${count}`],
  grants: (user, password, database) => [
    `CREATE USER ${user} PASSWORD '${password}'`,
    `CREATE DATABASE ${database} OWNER ${user}`,
  ],
};

const MYSQL_LIMITS = [
  ...["--skip-log-bin", "--innodb-buffer-pool-size=32M", "--max-connections=40"],
  ...["--skip-name-resolve", "--performance-schema=OFF"],
];

type MysqlParts = Pick<ServerKind, "name" | "isThere" | "prepare"> & {
  readonly program: string;
  readonly options?: readonly string[];
};

function mysqlKind({ program, options = [], ...parts }: MysqlParts): ServerKind {
  return {
    ...parts,
    driver: "mysql",
    preparesOnce: true,
    run: (directory, port) => [
      program,
      ...["--no-defaults", `--datadir=${directory}/data`, `--socket=${directory}/mysql.sock`],
      ...[`--port=${port}`, "--bind-address=127.0.0.1", `--pid-file=${directory}/pid`],
      ...options,
      ...MYSQL_LIMITS,
    ],
    readyText: "ready for connections",
    killSignal: "SIGKILL",
    tls: ({ certfile, keyfile }) => [`--ssl-cert=${certfile}`, `--ssl-key=${keyfile}`],
    connections: (count) => [`--max-connections=${count}`],
    grants: (user, password, database) => [
      `CREATE DATABASE ${database}`,
      `CREATE USER '${user}'@'%' IDENTIFIED BY '${password}'`,
      `GRANT ALL ON ${database}.* TO '${user}'@'%'`,
    ],
  };
}

export const MARIADB: ServerKind = mysqlKind({
  name: "MariaDB",
  program: "/usr/sbin/mariadbd",
  isThere: () => isFile("/usr/sbin/mariadbd") && isOnPath("mariadb-install-db"),
  prepare: (directory) => [[
    "mariadb-install-db",
    ...["--no-defaults", `--datadir=${directory}/data`, "--skip-test-db"],
    "--auth-root-authentication-method=normal",
  ]],
});

/** Stands in for SQL Server, which is not to be had. */
export const MSSQL_DOUBLE: ServerKind = {
  name: "SQL Server",
  driver: "mssql",
  isOwn: true,
  isThere: () => true,
  prepare: () => [],
  run: (directory, port) => [
    Deno.execPath(),
    ...["run", "--no-prompt", "--no-lock", "--no-config", "--allow-net=127.0.0.1", "--allow-read"],
    ...[`--allow-write=${directory}`, fileURLToPath(new URL("tds/main.ts", import.meta.url))],
    ...["--port", String(port), "--data", join(directory, "data")],
  ],
  readyText: "ready for connections",
  killSignal: "SIGKILL",
  tls: ({ certfile, keyfile }) => ["--cert", certfile, "--key", keyfile],
  connections: (count) => ["--max-connections", String(count)],
  grants: (user, password, database) => [
    `CREATE LOGIN ${user} WITH PASSWORD = '${password}'`,
    `CREATE DATABASE ${database}`,
    `ALTER AUTHORIZATION ON DATABASE::${database} TO ${user}`,
  ],
};

const MYSQL_SHARE = [`--basedir=${MYSQL_HOME}`, `--lc-messages-dir=${MYSQL_HOME}/share`];

export const MYSQL: ServerKind = mysqlKind({
  name: "MySQL",
  program: `${MYSQL_HOME}/bin/mysqld`,
  isThere: () => isFile(`${MYSQL_HOME}/bin/mysqld`),
  prepare: (directory) => [[
    `${MYSQL_HOME}/bin/mysqld`,
    ...["--no-defaults", "--initialize-insecure", `--datadir=${directory}/data`],
    ...MYSQL_SHARE,
  ]],
  options: [...MYSQL_SHARE, "--mysqlx=OFF"],
});

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
