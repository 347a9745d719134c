import { z } from "zod";
import type { BackendId } from "../storage/mod.ts";
import { CATALOGUE } from "../storage/mod.ts";
import { LDAP_POOL } from "./schema_ldap.ts";
import { CASSANDRA_POOL, ELASTIC_POOL, RIAK_POOL, serverPools } from "./schema_server_pools.ts";
import { TLS } from "./schema_tls.ts";
import {
  absent,
  domain,
  filePath,
  integer,
  milliseconds,
  secret,
  text,
  withWords,
} from "./schema_words.ts";

/** Any backend of the catalogue: a rule says which of them may hold which data. */
export const BACKEND = z.enum(CATALOGUE.map(({ id }) => id) as [BackendId, ...BackendId[]]);

/** Name of a pool under `outgoing_pools.KIND`. */
export const POOL_TAG = text();

/** Kinds of SQL servers, as `rdbms_server_type` and `driver` name them. */
export const RDBMS_SERVER_TYPE = z.enum(["pgsql", "mysql", "mssql"]);

const SERVER = withWords(z.string().regex(/^(\/\S+|[^\s#/@[\]]+)$/), {
  allowed: "a host name, an IP address or the absolute path of a Unix socket",
});

const RDBMS_CONNECTION = z.strictObject({
  url: secret().optional().describe(
    "server, database and login in one: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE` or " +
      "`mysql://…`; it replaces `driver`, `host`, `port`, `database` and `username`",
  ),
  driver: absent(
    RDBMS_SERVER_TYPE,
    "`rdbms_server_type`",
    "kind of the server; `mysql` is MariaDB too",
  ),
  server: secret().optional().describe(
    "data source and login of SQL Server in one: `DSN=<name>;UID=<user>;PWD=<password>`; its entry " +
      "in `odbc_file` replaces `host`, `port` and `database`, and the rest `username`",
  ),
  odbc_file: absent(
    filePath(),
    "`/etc/odbc.ini`",
    "ODBC configuration file with the entry that `server` names",
  ),
  host: absent(
    SERVER,
    '`"localhost"`',
    "address of the server; for PostgreSQL, a path is the directory of its socket",
  ),
  port: absent(
    z.int().min(1).max(65535),
    "5432, 3306 or 1433, by `driver`",
    "TCP port of the server",
  ),
  database: text().optional().describe("name of the database; required without `url` or `server`"),
  username: text().optional().describe("user of the database; required without `url` or `server`"),
  password: secret().optional().describe("password of the user; absent or empty for no password"),
  tls: absent(
    TLS,
    "`true`, but `false` on loopback and for a Unix socket",
    "encrypts the connections and checks the server's certificate, which must name `host`; " +
      "`true` means an empty table",
  ),
  query_timeout: milliseconds(100).default(5000).describe(
    "milliseconds that a statement may take; then the node replaces the connection",
  ),
  connect_timeout: milliseconds(100).default(5000).describe(
    "milliseconds that opening a connection may take, its login included",
  ),
});

const RDBMS_POOL = z.strictObject({
  scope: z.enum(["global", "host", "single_host"]).default("global").describe(
    "hosts that share the connections: all of them, each host with connections of its own, or " +
      "the one that `host` names",
  ),
  host: domain().optional().describe("the host of the scope `single_host`; one of `hosts`"),
  workers: integer(1, 1000).default(10).describe("most connections at once"),
  max_waiting: integer(0, 1_000_000).default(1000).describe(
    "requests that may wait for a connection; one more fails at once",
  ),
  call_timeout: milliseconds(100).default(5000).describe(
    "milliseconds that a request waits for a connection before it fails",
  ),
  connection: RDBMS_CONNECTION.describe("the server, and how to log in there"),
});

/** `[outgoing_pools]`. */
export const OUTGOING_POOLS = z.strictObject({
  cassandra: serverPools(CASSANDRA_POOL, "Cassandra"),
  elastic: serverPools(ELASTIC_POOL, "Elasticsearch or OpenSearch"),
  ldap: withWords(z.record(z.string().min(1), LDAP_POOL), {
    allowed: "a table of pools by name",
  }).default({}).describe("pools to LDAP directories"),
  rdbms: withWords(z.record(z.string().min(1), RDBMS_POOL), {
    allowed: "a table of pools by name",
  }).default({}).describe("pools to PostgreSQL, MySQL, MariaDB and SQL Server"),
  riak: serverPools(RIAK_POOL, "Riak"),
});
