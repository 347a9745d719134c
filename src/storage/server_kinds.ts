import { CASSANDRA } from "./cassandra/cassandra_kind.ts";
import { ELASTIC } from "./elastic/elastic_backend.ts";
import { RIAK } from "./riak/riak_stores.ts";
import type { ServerKind } from "./server_kind.ts";
import type { ServerBackendId, ServerPoolOptions } from "./server_pools.ts";
import type { SchemaFile } from "./sql/sql_dialect.ts";

type OptionsOf<B extends ServerBackendId> = Extract<ServerPoolOptions, { readonly backend: B }>;

/** Every kind of database server that speaks neither SQL nor LDAP. */
const SERVER_KINDS: { readonly [B in ServerBackendId]: ServerKind<OptionsOf<B>> } = {
  elasticsearch: ELASTIC,
  cassandra: CASSANDRA,
  riak: RIAK,
};

/** Backends of these servers that have schema files. */
export const SERVER_SCHEMAS: ReadonlyMap<string, readonly SchemaFile[]> = new Map(
  Object.entries(SERVER_KINDS).flatMap(([backend, { schema }]) =>
    schema === undefined ? [] : [[backend, schema]]
  ),
);

/** Returns the kind of server behind a pool. */
export function serverKindOf<O extends ServerPoolOptions>({ backend }: O): ServerKind<O> {
  return SERVER_KINDS[backend] as unknown as ServerKind<O>; // the entry of that very backend
}
