import type { Backend } from "./backend.ts";
import type { DataStores } from "./data_stores.ts";
import type { ServerPoolOptions } from "./server_pools.ts";
import type { SchemaFile } from "./sql/sql_dialect.ts";

/** A pool and its name: the kind of the pool and the tag, `elastic.default`. */
export interface NamedPool<O extends ServerPoolOptions = ServerPoolOptions> {
  readonly name: string;
  readonly options: O;
}

/** One kind of database server, neither SQL nor LDAP. */
export interface ServerKind<O extends ServerPoolOptions> {
  /** Returns the stores of one database; it connects at need. */
  open(pool: NamedPool<O>): DataStores;
  /** Returns the same database for the commands that prepare and check it. */
  backend(pool: NamedPool<O>): Backend;
  /** Schema files as shipped, in their order. @default none */
  readonly schema?: readonly SchemaFile[];
}
