import type { ServerKind } from "../server_kind.ts";
import type { CassandraPoolOptions } from "../server_pools.ts";
import { CassandraBackend } from "./cassandra_backend.ts";
import { CASSANDRA_SCHEMA } from "./cassandra_schema.ts";
import { CassandraStores } from "./cassandra_stores.ts";

/** Cassandra, as stores and commands know it. */
export const CASSANDRA: ServerKind<CassandraPoolOptions> = {
  open: (pool) => new CassandraStores(pool),
  backend: (pool) => new CassandraBackend(pool),
  schema: CASSANDRA_SCHEMA,
};
