import {
  CASSANDRA_DATACENTER,
  CASSANDRA_ROOT,
  CassandraServer,
} from "../../../../harness/databases/mod.ts";
import type { ArchiveStoreFixture } from "../../testing/archive_store_conformance.ts";
import { PATIENT } from "../../testing/patient_bounds.ts";
import { CassandraArchiveStore } from "../cassandra_archive_store.ts";
import { CassandraCluster, connectCassandra } from "../cassandra_cluster.ts";
import type { CassandraPoolOptions } from "../../server_pools.ts";
import { prepareKeyspace } from "../cassandra_schema.ts";

/** Tables with the columns of their partitions. Once they are empty, nobody finds what others have. */
const FIRST_TABLES = {
  archives: ["owner"],
  archive_removals: ["owner"],
  archive_days: ["day", "shard"],
  archive_known_days: ["id"],
};

/** Returns a pool for a server of a test, as its first user. */
export function cassandraPool(
  port: number,
  options: Partial<CassandraPoolOptions> = {},
): CassandraPoolOptions {
  const { username, password } = CASSANDRA_ROOT;
  return {
    servers: [{ host: "127.0.0.1", port }],
    keyspace: "causeway",
    localDatacenter: CASSANDRA_DATACENTER, // to find it out takes a connection
    backend: "cassandra",
    username,
    password: { reveal: () => password },
    bounds: PATIENT,
    ...options,
  };
}

/** Runs statements as the first user, one after another. */
export async function asRoot(
  port: number,
  ...statements: readonly string[]
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const client = await connectCassandra(cassandraPool(port), "cluster");
  try {
    let rows: readonly Readonly<Record<string, unknown>>[] = [];
    for (const statement of statements) ({ rows } = await client.execute(statement));
    return rows;
  } finally {
    await client.shutdown();
  }
}

/** Makes the keyspace of a pool, and its tables. */
export async function prepare(options: CassandraPoolOptions): Promise<void> {
  const client = await connectCassandra(options, "cluster");
  try {
    await prepareKeyspace(client, options.keyspace, "the test's keyspace");
  } finally {
    await client.shutdown();
  }
}

/** Removes all archives of a pool. To truncate tables takes a second for each. */
export async function empty(pool: CassandraPoolOptions): Promise<void> {
  const client = await connectCassandra(pool);
  try {
    for (const [table, columns] of Object.entries(FIRST_TABLES)) {
      const { rows } = await client.execute(`SELECT DISTINCT ${columns.join(", ")} FROM ${table}`);
      const query = `DELETE FROM ${table} WHERE ${
        columns.map((each) => `${each} = ?`).join(" AND ")
      }`;
      for (const row of rows) {
        await client.execute(query, columns.map((each) => row[each]), { prepare: true });
      }
    }
  } finally {
    await client.shutdown();
  }
}

/** Opens the archives of a pool. */
export function archivesAt(
  options: CassandraPoolOptions,
): ArchiveStoreFixture & { readonly cluster: CassandraCluster } {
  const cluster = new CassandraCluster({ pool: "cassandra.default", options });
  const store = new CassandraArchiveStore(cluster);
  return {
    cluster,
    archives: () => store,
    [Symbol.asyncDispose]: () => cluster.close(),
  };
}

/** Registers a server that runs during the tests of a file, with a keyspace that is prepared. */
export function cassandraDuringTests(): {
  server(): CassandraServer;
  /** Opens the archives, and empties them. */
  open(options?: Partial<CassandraPoolOptions>): Promise<ReturnType<typeof archivesAt>>;
} {
  let server: CassandraServer | undefined;
  Deno.test.beforeAll(async () => {
    server = await CassandraServer.start();
    await prepare(cassandraPool(server.port));
  });
  Deno.test.afterAll(async () => {
    await server?.[Symbol.asyncDispose](); // undefined: it did not start, which has been reported
  });
  return {
    server: () => server!, // tests do not run before it has started
    async open(options = {}) {
      const { port } = server!;
      await empty(cassandraPool(port)); // a test's time limits are not for this
      return archivesAt(cassandraPool(port, options));
    },
  };
}
