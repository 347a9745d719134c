import type { Run } from "../process/mod.ts";
import { DatabaseServer } from "./database_server.ts";
import { MARIADB, POSTGRESQL, type ServerKind } from "./server_kinds.ts";

/** The one database that all nodes of a cluster share. */
export type DatabaseKind = "internal" | "postgresql" | "mariadb";

/** `auto`: the first of PostgreSQL, MariaDB and the built-in store that is there. */
export type DatabaseChoice = DatabaseKind | "auto";
export const DATABASE_CHOICES: readonly DatabaseChoice[] = [
  "auto",
  "internal",
  "postgresql",
  "mariadb",
];

/** Sections of a node's configuration that name the database. */
export interface DatabaseSections {
  readonly storage: { readonly internal: { readonly path: string } };
  readonly [section: string]: unknown;
}

/** A database that all nodes share. It keeps its place and its data while the object lives. */
export interface SharedDatabase extends AsyncDisposable {
  readonly kind: DatabaseKind;
  /** For people, its port on loopback included: `PostgreSQL :23456`. */
  readonly description: string;
  /** True when tables have to be made before the first node starts. */
  readonly needsPreparing: boolean;
  /** Port on loopback; undefined for the built-in store, which is no process. */
  readonly port: number | undefined;
  /**
   * Sections for the node that has the file `storePath` to itself.
   *
   * @param port where the node finds the database. Default: the database's own port
   */
  sections(storePath: string, port?: number): DatabaseSections;
  /** Its processes now; none for the built-in store. */
  readonly pids: readonly number[];
  /** Ends it as a crash would. @throws for the built-in store, which is no process */
  kill(): Promise<void>;
  /** Suspends it with its connections open. Returns a function that resumes it. @throws as `kill` */
  suspend(): () => void;
  /** Starts it again, in the same place and with its data. @throws for the built-in store */
  restart(): Promise<void>;
}

/** Options of a shared database. */
export interface SharedDatabaseOptions {
  readonly run: Run;
  /** Nodes that will use it. */
  readonly nodes: number;
  /** Further arguments of its server. @default none */
  readonly args?: readonly string[];
  /** Further statements of its first user, before it answers anybody. @default none */
  readonly statements?: readonly string[];
}

/** Connections of a node: enough for the crowds of the harness, few enough for its largest cluster. */
const WORKERS = 4;
/** Connections beside those of the nodes, for commands. */
const SPARE_CONNECTIONS = 20;
const [DATABASE, USER] = ["causeway", "causeway"];

const SERVERS: Readonly<Record<Exclude<DatabaseKind, "internal">, ServerKind>> = {
  postgresql: POSTGRESQL,
  mariadb: MARIADB,
};

/**
 * Starts the database of a cluster.
 *
 * @throws when its programs are not there
 */
export async function startSharedDatabase(
  choice: DatabaseChoice,
  options: SharedDatabaseOptions,
): Promise<SharedDatabase> {
  const kind = choice === "auto" ? firstThere() : choice;
  if (kind === "internal") return new SharedFile(options.run.path("shared.sqlite"));
  const server = SERVERS[kind];
  if (!server.isThere()) throw new Error(`Cannot start ${server.name}: it is not installed`);
  return await SharedServer.start(kind, server, options);
}

function firstThere(): DatabaseKind {
  for (const kind of ["postgresql", "mariadb"] as const) {
    if (Deno.build.os !== "windows" && SERVERS[kind].isThere()) return kind;
  }
  return "internal";
}

/** One SQLite file that the nodes of this machine share. */
class SharedFile implements SharedDatabase {
  readonly kind = "internal";
  readonly description = "one SQLite file";
  readonly needsPreparing = false; // the first to open it makes its tables
  readonly port = undefined;
  readonly pids = [];
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  sections(): DatabaseSections {
    return { storage: { internal: { path: this.#path } } };
  }

  kill(): Promise<void> {
    return Promise.reject(new TypeError("Cannot kill the built-in store: it is a file"));
  }

  suspend(): () => void {
    throw new TypeError("Cannot suspend the built-in store: it is a file");
  }

  restart(): Promise<void> {
    return Promise.reject(new TypeError("Cannot start the built-in store: it is a file"));
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

/** A server on loopback, for all nodes. */
class SharedServer implements SharedDatabase {
  readonly kind: DatabaseKind;
  readonly needsPreparing = true;
  readonly #server: DatabaseServer;
  readonly #password: string;

  private constructor(kind: DatabaseKind, server: DatabaseServer, password: string) {
    this.kind = kind;
    this.#server = server;
    this.#password = password;
  }

  static async start(
    kind: DatabaseKind,
    server: ServerKind,
    { run, nodes, args = [], statements = [] }: SharedDatabaseOptions,
  ): Promise<SharedServer> {
    const password = crypto.randomUUID();
    const started = await DatabaseServer.start(server, {
      run,
      args: [...server.connections(nodes * WORKERS + SPARE_CONNECTIONS), ...args],
      statements: [...server.grants(USER, password, DATABASE), ...statements],
    });
    return new SharedServer(kind, started, password);
  }

  get description(): string {
    return `${this.#server.kind.name} :${this.#server.port}`;
  }

  get pids(): readonly number[] {
    return this.#server.pids;
  }

  get port(): number {
    return this.#server.port;
  }

  sections(storePath: string, port: number = this.port): DatabaseSections {
    const connection = {
      driver: this.#server.kind.driver,
      host: "127.0.0.1",
      port,
      database: DATABASE,
      username: USER,
      password: this.#password,
    };
    return {
      storage: { internal: { path: storePath } },
      auth: { backend: "rdbms" },
      outgoing_pools: { rdbms: { default: { workers: WORKERS, connection } } },
    };
  }

  async kill(): Promise<void> {
    await this.#server.kill();
  }

  suspend(): () => void {
    return this.#server.suspend();
  }

  async restart(): Promise<void> {
    await this.#server.launch();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }
}
