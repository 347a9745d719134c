import {
  CASSANDRA_DATACENTER,
  CASSANDRA_ROOT,
  CassandraServer,
  DatabaseServer,
  elasticsearch8,
  MARIADB,
  MYSQL,
  openSearch2,
  POSTGRESQL,
} from "../../../harness/databases/mod.ts";
import type { CassandraNode, ServerKind } from "../../../harness/databases/mod.ts";
import { Run } from "../../../harness/process/mod.ts";
import { backendsOf } from "../../../src/storage/mod.ts";
import type { ArchiveDatabase, ArchivePlace } from "./archive_protocol.ts";
import { flushedBytes } from "./cassandra_flush.ts";
import { storesOptions } from "./open_archives.ts";

/** A database that is empty and prepared. */
export interface ArchiveServer extends AsyncDisposable {
  readonly place: ArchivePlace;
  /** Returns the bytes of its tables and indexes on the disk, without logs of changes. */
  storedBytes(): Promise<number>;
}

/** Part of a place that its server settles, and the folder or file with its tables. */
type Started = Pick<ArchivePlace, "port" | "name" | "username" | "password"> & {
  readonly data: string;
};

const [NAME, USERNAME, PASSWORD] = ["causeway", "causeway", "bench"];

/** An SQL server, which tests run with little memory, with what a small machine gives it. */
interface SqlKind {
  readonly kind: ServerKind;
  readonly args: readonly string[];
  /** Folder of the tables in that of its data. */
  readonly data: string;
}

/** Arguments of PostgreSQL. */
export const POSTGRESQL_ARGS = [
  ...["-c", "shared_buffers=512MB", "-c", "max_wal_size=4GB", "-c", "min_wal_size=2GB"],
] as const;

const SQL_KINDS: Readonly<Record<"postgresql" | "mariadb" | "mysql", SqlKind>> = {
  postgresql: {
    kind: POSTGRESQL,
    args: POSTGRESQL_ARGS,
    data: "base",
  },
  mariadb: {
    kind: MARIADB,
    args: ["--innodb-buffer-pool-size=1G", "--innodb-log-file-size=512M"],
    data: NAME,
  },
  mysql: {
    kind: MYSQL,
    args: ["--innodb-buffer-pool-size=1G", "--innodb-redo-log-capacity=1G"],
    data: NAME,
  },
};

/** Heap of the servers that run on Java: tests do with less, a large archive does not. */
const HEAP_MEGABYTES = 1_024;
const CASSANDRA_NODE: CassandraNode = {
  address: "127.0.0.1",
  datacenter: CASSANDRA_DATACENTER,
  heapMegabytes: HEAP_MEGABYTES,
};

/** Starts the server of a database, and prepares it as `causeway backends prepare` does. */
export async function startArchiveServer(
  database: ArchiveDatabase,
  { hasSearch }: { readonly hasSearch: boolean },
): Promise<ArchiveServer> {
  await using stack = new AsyncDisposableStack();
  const run = stack.use(await Run.start());
  const common = { database, hasSearch, file: run.path("bench.sqlite") };
  const { data, ...server } = await startProgram(database, run, stack);
  const place = { ...common, ...server };
  for (const backend of backendsOf(storesOptions(place))) await backend.prepare();
  const owned = stack.move();
  return {
    place,
    storedBytes: () => storedBytes(place, data),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function storedBytes(place: ArchivePlace, data: string): Promise<number> {
  const { database, port } = place;
  if (database === "elasticsearch" || database === "opensearch") {
    const index = `http://127.0.0.1:${port}/messages`;
    await (await fetch(`${index}/_flush?force=true`, { method: "POST" })).text();
    const response = await fetch(`${index}/_stats/store`);
    const { _all: all } = await response.json() as {
      readonly _all: { readonly primaries: { readonly store: { readonly size_in_bytes: number } } };
    };
    return all.primaries.store.size_in_bytes;
  }
  if (database === "cassandra") return await flushedBytes(place, () => diskBytes(data));
  return await diskBytes(data);
}

async function diskBytes(data: string): Promise<number> {
  const { stdout } = await new Deno.Command("du", { args: ["--bytes", "--summarize", data] })
    .output();
  return Number.parseInt(new TextDecoder().decode(stdout), 10);
}

async function startProgram(
  database: ArchiveDatabase,
  run: Run,
  stack: AsyncDisposableStack,
): Promise<Started> {
  const login = { name: NAME, username: USERNAME, password: PASSWORD };
  switch (database) {
    case "sqlite":
      return { ...login, port: 0, data: run.path("bench.sqlite") };
    case "elasticsearch":
    case "opensearch": {
      const kind = (database === "elasticsearch" ? elasticsearch8 : openSearch2)(HEAP_MEGABYTES);
      const { port, directory } = stack.use(await DatabaseServer.start(kind, { run }));
      return { ...login, port, data: directory };
    }
    case "cassandra": {
      const { port, directory } = stack.use(await CassandraServer.start(CASSANDRA_NODE, run));
      return { ...CASSANDRA_ROOT, name: NAME, port, data: `${directory}/data/${NAME}` };
    }
    default: {
      const { kind, args, data } = SQL_KINDS[database];
      const statements = kind.grants(USERNAME, PASSWORD, NAME);
      const server = stack.use(await DatabaseServer.start(kind, { run, args, statements }));
      return { ...login, port: server.port, data: `${server.directory}/data/${data}` };
    }
  }
}
