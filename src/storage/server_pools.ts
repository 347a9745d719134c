import type { BackendId } from "./catalogue/catalogue.ts";
import type { PoolBounds } from "./sql/connection_pool.ts";
import type { SqlPassword, SqlTls } from "./sql/sql_server.ts";

/** Backends whose servers have a protocol of their own, neither SQL nor LDAP. */
export type ServerBackendId = Extract<BackendId, "elasticsearch" | "riak" | "cassandra">;

/** Address of one server. */
export interface ServerAddress {
  /** Name or address. */
  readonly host: string;
  readonly port: number;
}

/** Options that the pools of all such backends have. */
interface ServerPool {
  /** Servers with the same content; at least one. */
  readonly servers: readonly ServerAddress[];
  /** Absent: no TLS. Otherwise each server's certificate must name its `host`. */
  readonly tls?: SqlTls | undefined;
  /** Undefined: nobody logs in. */
  readonly username: string | undefined;
  readonly password: SqlPassword;
  /** `workers` is the number of requests at once, where a protocol carries one on a connection. */
  readonly bounds: PoolBounds;
}

/** A pool of Elasticsearch or OpenSearch: `outgoing_pools.elastic.TAG`. */
export interface ElasticPoolOptions extends ServerPool {
  readonly backend: "elasticsearch";
}

/** A pool of Riak's HTTP interface: `outgoing_pools.riak.TAG`. */
export interface RiakPoolOptions extends ServerPool {
  readonly backend: "riak";
}

/** A pool of Cassandra: `outgoing_pools.cassandra.TAG`. */
export interface CassandraPoolOptions extends ServerPool {
  readonly backend: "cassandra";
  readonly keyspace: string;
  /** The datacenter of Cassandra that is asked. @default that of the first server that answers */
  readonly localDatacenter?: string | undefined;
  /** Replicas that a page is read from. @default "local_quorum" */
  readonly consistency?: "local_one" | "local_quorum" | "quorum";
  /**
   * Replicas that agree on the order of an archive. `local_serial` is for archives that one
   * datacenter of Cassandra alone writes to. @default "serial"
   */
  readonly serialConsistency?: "serial" | "local_serial";
}

/** One pool of a backend that is neither SQL nor LDAP. */
export type ServerPoolOptions = ElasticPoolOptions | RiakPoolOptions | CassandraPoolOptions;
