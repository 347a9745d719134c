import type { ServerAddress, ServerBackendId, ServerPoolOptions } from "../storage/mod.ts";
import type { FileConfig } from "./file_schema.ts";
import { isLoopbackHost } from "./loopback.ts";
import type { PartialFile } from "./partial_file.ts";
import { Secret } from "./secret.ts";
import type { Surroundings } from "./surroundings.ts";
import type { KeyPath } from "./toml_lines.ts";

/** Kinds of pools under `outgoing_pools`, with the backend behind each. */
const SERVER_POOL_KINDS = {
  elastic: "elasticsearch",
  cassandra: "cassandra",
  riak: "riak",
} as const satisfies Record<string, ServerBackendId>;

type PoolKind = keyof typeof SERVER_POOL_KINDS;
type Pool = FileConfig["outgoing_pools"][PoolKind][string];
type PartialConnection = NonNullable<
  NonNullable<NonNullable<NonNullable<PartialFile["outgoing_pools"]>[PoolKind]>[string]>[
    "connection"
  ]
>;

/** Checks the pools of servers that speak neither SQL nor LDAP. */
export function checkServerPools(file: PartialFile, surroundings: Surroundings): void {
  for (const kind of poolKinds()) {
    for (const [tag, pool] of Object.entries(file.outgoing_pools?.[kind] ?? {})) {
      const path = ["outgoing_pools", kind, tag];
      if (pool?.connection === undefined) continue;
      checkConnection(pool.connection, [...path, "connection"], surroundings);
    }
  }
}

/** Resolves the pools of a file without mistakes, by kind and tag: `elastic.default`. */
export function resolveServerPools(
  file: FileConfig,
  surroundings: Surroundings,
): ReadonlyMap<string, ServerPoolOptions> {
  const { elastic, cassandra, riak } = file.outgoing_pools;
  const resolve = <P extends Pool, O>(
    kind: PoolKind,
    pools: Readonly<Record<string, P>>,
    rest: (connection: P["connection"], common: ReturnType<typeof resolveCommon>) => O,
  ) =>
    Object.entries(pools).map(([tag, pool]) => {
      const path = ["outgoing_pools", kind, tag, "connection"];
      const common = resolveCommon(pool, path, surroundings);
      return [`${kind}.${tag}`, rest(pool.connection, common)] as const;
    });
  return new Map<string, ServerPoolOptions>([
    ...resolve("elastic", elastic, ({ host, port, servers }, common) => ({
      ...withServers(common, servers ?? [{ host: host ?? "localhost", port: port ?? 9200 }]),
      backend: "elasticsearch" as const,
    })),
    ...resolve("riak", riak, ({ address, port, servers }, common) => ({
      ...withServers(common, servers ?? [{ host: address ?? "localhost", port: port ?? 8098 }]),
      backend: "riak" as const,
    })),
    ...resolve("cassandra", cassandra, (connection, common) => ({
      ...withServers(common, connection.servers),
      backend: "cassandra" as const,
      keyspace: connection.keyspace,
      localDatacenter: connection.local_datacenter,
      consistency: connection.consistency,
      serialConsistency: connection.serial_consistency,
    })),
  ]);
}

/** Returns the addresses of servers to which data go without encryption, by the names of pools. */
export function plainServers(
  pools: ReadonlyMap<string, ServerPoolOptions>,
): readonly (readonly [pool: string, host: string])[] {
  return [...pools].flatMap(([name, { servers, tls }]) => {
    const remote = servers.find(({ host }) => !isLoopbackHost(host));
    return tls === undefined && remote !== undefined ? [[name, remote.host] as const] : [];
  });
}

function poolKinds(): readonly PoolKind[] {
  return Object.keys(SERVER_POOL_KINDS) as PoolKind[]; // the keys of that very object
}

function checkConnection(
  connection: PartialConnection,
  path: KeyPath,
  surroundings: Surroundings,
): void {
  const note = (key: string, problem: string) => {
    surroundings.mistakes.push({ path: [...path, key], problem });
  };
  const { tls, password, username, servers } = connection;
  surroundings.secret(password, [...path, "password"]);
  if (password !== undefined && username === undefined) {
    note("password", "not allowed without username");
  }
  if (typeof tls === "object") {
    for (const key of ["cafile", "certfile", "keyfile"] as const) {
      surroundings.checkFile(tls[key], [...path, "tls", key]);
    }
    if (tls.keyfile !== undefined && tls.certfile === undefined) {
      const problem = "not allowed without certfile, to which it belongs";
      surroundings.mistakes.push({ path: [...path, "tls", "keyfile"], problem });
    }
  }
  if (servers === undefined) return;
  for (const key of ["host", "address", "port"] as const) {
    if (!(key in connection) || (connection as Record<string, unknown>)[key] === undefined) {
      continue;
    }
    note(key, "not allowed together with servers, which says it");
  }
}

/** Resolves what all kinds of pools have in common. */
function resolveCommon(
  { connection, ...pool }: Pool,
  path: KeyPath,
  surroundings: Surroundings,
) {
  const absolute = (file: string | undefined) =>
    file === undefined ? undefined : surroundings.absolute(file);
  const { tls } = connection;
  const files = typeof tls === "object" ? tls : {};
  return {
    /** Undefined: the default. */
    isEncrypted: tls === undefined ? undefined : tls !== false,
    files: {
      cafile: absolute(files.cafile),
      certfile: absolute(files.certfile),
      keyfile: absolute(files.keyfile ?? files.certfile),
    },
    rest: {
      username: connection.username,
      password: new Secret(
        surroundings.secret(connection.password, [...path, "password"]) ?? "",
      ),
      bounds: {
        workers: pool.workers,
        maxWaiting: pool.max_waiting,
        waitTimeoutMs: pool.call_timeout,
        connectTimeoutMs: connection.connect_timeout,
        statementTimeoutMs: connection.query_timeout,
      },
    },
  };
}

function withServers(
  { isEncrypted, files, rest }: ReturnType<typeof resolveCommon>,
  servers: readonly ServerAddress[],
) {
  const isRemote = !servers.every(({ host }) => isLoopbackHost(host));
  return { ...rest, servers, tls: isEncrypted ?? isRemote ? files : undefined };
}
