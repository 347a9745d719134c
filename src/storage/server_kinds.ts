import { CASSANDRA } from "./cassandra/cassandra_kind.ts";
import { ELASTIC } from "./elastic/elastic_backend.ts";
import { RIAK } from "./riak/riak_stores.ts";
import type { ServerKind } from "./server_kind.ts";
import type { ServerBackendId, ServerPoolOptions } from "./server_pools.ts";
import type { SchemaFile } from "./sql/sql_dialect.ts";

type OptionsOf<B extends ServerBackendId> = Extract<ServerPoolOptions, { readonly backend: B }>;

/** Every kind of server that this version serves. */
const SERVER_KINDS: { readonly [B in ServerBackendId]?: ServerKind<OptionsOf<B>> } = {
  elasticsearch: ELASTIC,
  cassandra: CASSANDRA,
  riak: RIAK,
};

/** Backends among `ServerBackendId` that this version serves. */
export const SERVER_BACKENDS = Object.keys(SERVER_KINDS) as readonly ServerBackendId[];

/** Returns the kind of server behind a pool. */
export function serverKindOf<O extends ServerPoolOptions>({ backend }: O): ServerKind<O> {
  const kind = SERVER_KINDS[backend];
  if (kind === undefined) throw new TypeError(`Cannot use ${backend}: it is not served`);
  return kind as unknown as ServerKind<O>; // the entry of that very backend
}

/** Returns the schema files of a backend; undefined when it has none. */
export function serverSchema(backend: string): readonly SchemaFile[] | undefined {
  return SERVER_KINDS[backend as ServerBackendId]?.schema;
}
