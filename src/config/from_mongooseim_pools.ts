import { isLoopbackHost } from "./loopback.ts";
import { defined, type ForeignTable, type Table } from "./mongooseim_source.ts";

export const NO_TLS_CHOICE = "not translated: TLS 1.2 and 1.3 with the runtime's ciphers are used";

const CHECKED = "the server's certificate is always checked, and must name its host";

/** Translates `[outgoing_pools]`, apart from the pool of Redis. */
export function translatePools(pools: ForeignTable): Table {
  pools.tables("redis"); // what nobody reads of it is said
  return defined({
    rdbms: translateEach(pools.table("rdbms"), sqlPool),
    cassandra: translateEach(pools.table("cassandra"), cassandraPool),
    elastic: translateEach(pools.table("elastic"), elasticPool),
    riak: translateEach(pools.table("riak"), riakPool),
    ldap: translateEach(pools.table("ldap"), ldapPool),
  });
}

/** Translates the pools of one kind, by tag. */
function translateEach(
  kind: ForeignTable | undefined,
  translate: (pool: ForeignTable) => Table | undefined,
): Table | undefined {
  if (kind === undefined) return undefined;
  const translated: Table = {};
  for (const tag of kind.keys) {
    const pool = kind.table(tag);
    const own = pool && translate(pool);
    if (own !== undefined) translated[tag] = own;
  }
  return translated;
}

function sqlPool(pool: ForeignTable): Table | undefined {
  const connection = pool.table("connection");
  if (connection === undefined) return undefined;
  pool.ignore("strategy");
  connection.ignore("keepalive_interval", "max_reconnect_interval", "max_start_interval");
  const scope = pool.text("scope");
  const driver = connection.text("driver");
  const isServed = driver === undefined || ["pgsql", "mysql", "odbc"].includes(driver);
  if (!isServed) connection.lost("driver", `not translated: no driver ${driver} here`);
  return defined({
    scope: scope === "host_type" ? "host" : scope,
    host: pool.text("host"),
    workers: pool.integer("workers"),
    call_timeout: pool.integer("call_timeout"),
    connection: defined({
      driver: driver === "odbc" ? "mssql" : isServed ? driver : undefined,
      server: connection.text("settings"),
      host: connection.text("host"),
      port: connection.integer("port"),
      database: connection.text("database"),
      username: connection.text("username"),
      password: connection.text("password"),
      query_timeout: connection.integer("query_timeout"),
      tls: driver === "odbc" ? undefined : tlsOf(connection),
    }),
  });
}

/** Reads the options of a pool that all hosts share here. */
function sharedPool(pool: ForeignTable): Table {
  pool.ignore("strategy");
  const scope = pool.text("scope");
  if (scope === "single_host") {
    pool.lost("scope", "not translated: all hosts share the pool here");
    pool.ignore("host");
  } else if (scope !== undefined && scope !== "global") {
    pool.note("scope", "all hosts share the pool here");
  }
  return defined({ workers: pool.integer("workers"), call_timeout: pool.integer("call_timeout") });
}

function cassandraPool(pool: ForeignTable): Table {
  const connection = pool.table("connection");
  const auth = connection?.table("auth")?.table("plain");
  const keyspace = connection?.text("keyspace");
  if (keyspace !== undefined) {
    connection?.note("keyspace", "Causeway has tables of its own there, and reads no others");
  }
  return {
    ...sharedPool(pool),
    connection: defined({
      servers: connection?.value("servers"),
      keyspace,
      username: auth?.text("username"),
      password: auth?.text("password"),
      tls: connection === undefined ? undefined : tlsOf(connection),
    }),
  };
}

function elasticPool(pool: ForeignTable): Table {
  const connection = pool.table("connection");
  connection?.note("host", "Causeway makes indices of its own: see causeway backends plan");
  return {
    ...sharedPool(pool),
    connection: defined({
      host: connection?.text("host"),
      port: connection?.integer("port"),
      tls: connection === undefined ? undefined : tlsOf(connection),
    }),
  };
}

/** Reads the pool of Riak. Older versions have the files of TLS in the connection itself. */
function riakPool(pool: ForeignTable): Table {
  const connection = pool.table("connection");
  const credentials = connection?.table("credentials");
  connection?.note("address", "Causeway speaks HTTP with Riak, at port 8098 unless `port` says so");
  connection?.ignore("port"); // that of the other protocol
  return {
    ...sharedPool(pool),
    connection: defined({
      address: connection?.text("address"),
      username: credentials?.text("user"),
      password: credentials?.text("password"),
      tls: connection === undefined ? undefined : tlsOf(connection, filesOf(connection)),
    }),
  };
}

function ldapPool(pool: ForeignTable): Table {
  const { workers, call_timeout } = sharedPool(pool);
  const connection = pool.table("connection");
  const tls = connection === undefined ? false : tlsOf(connection, filesOf(connection));
  const isEncrypted = tls !== false || connection?.text("encrypt") === "tls";
  const servers = connection?.texts("servers");
  const isNear = (servers ?? ["localhost"]).every(isLoopbackHost);
  connection?.ignore("encrypt");
  if (!isEncrypted && !isNear) {
    connection?.note("servers", "passwords go over the network in the clear, as they did");
  }
  return defined({
    workers,
    call_timeout,
    connection: defined({
      servers,
      port: connection?.integer("port"),
      rootdn: connection?.text("rootdn") ?? connection?.text("root_dn"),
      password: connection?.text("password") || undefined, // empty: none
      connect_interval: connection?.integer("connect_interval"),
      encrypt: isEncrypted ? "tls" : "none",
      tls: tls === false ? undefined : tls,
    }),
  });
}

/** Reads the files of TLS where older versions have them: in the connection. */
function filesOf(connection: ForeignTable): Table | undefined {
  const files = defined({
    cafile: connection.text("cacertfile"),
    certfile: connection.text("certfile"),
    keyfile: connection.text("keyfile"),
  });
  connection.lost("ciphers", NO_TLS_CHOICE);
  return Object.keys(files).length === 0 ? undefined : files;
}

/** Reads `connection.tls`; false when there is none, in whatever spelling. */
export function tlsOf(connection: ForeignTable, older?: Table): Table | false {
  const tls = connection.table("tls");
  if (tls === undefined) return older ?? false;
  tls.ignore("required", "verify_peer", "verify_mode", "server_name_indication", "module");
  connection.note("tls", CHECKED);
  for (const key of ["ciphers", "dhfile", "versions", "protocol_options"]) {
    tls.lost(key, NO_TLS_CHOICE);
  }
  return defined({
    cafile: tls.text("cacertfile"),
    certfile: tls.text("certfile"),
    keyfile: tls.text("keyfile"),
  });
}

/** Remarks the names in Riak that differ from the usual ones: here they are always the usual ones. */
export function translateRiakNames(
  riak: ForeignTable | undefined,
  usual: Readonly<Record<string, string>>,
): void {
  for (const [key, name] of Object.entries(usual)) {
    if (riak?.text(key) !== name) riak?.lost(key, `not translated: it is always "${name}" here`);
  }
}
