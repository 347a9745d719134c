import type { CausewayConfiguration, Cluster } from "../../../harness/mod.ts";
import { withCluster } from "../../../harness/mod.ts";
import type { DatabasePlace } from "./accounts.ts";
import { inspectedCommand } from "./garbage.ts";
import { RoundTripProxy } from "./round_trip_proxy.ts";

/** Two datacenters with one PostgreSQL, as the bench sees them. */
export interface PeopleCluster {
  readonly cluster: Cluster;
  /** The database itself, past any proxy. */
  readonly place: DatabasePlace;
  /** Connections that a node has to it. */
  readonly workers: number;
  /** Round trips so far, where they are counted. */
  readonly roundTrips: () => RoundTrips;
}

/** Round trips of the nodes. */
export interface RoundTrips {
  /** To the database, of both. */
  readonly database: number;
  /** To the Redis of dc1, and to that of dc2. */
  readonly redis: number;
  readonly otherRedis: number;
}

const DATACENTERS = 2;
/** Connections of clients that a node takes at a port: a crowd of 10 000, and those who chat. */
const MAX_CONNECTIONS = 20_000;

interface RdbmsSection {
  workers: number;
  connection: DatabasePlace & { port: number };
}

/** Additions to the nodes that some measurements need. Both cost time. */
export interface PeopleClusterOptions {
  /** True: the nodes reach the database and Redis through counting proxies. */
  readonly isCounting?: boolean;
  /** True: `collectGarbage` works. */
  readonly isInspected?: boolean;
  /** `limits.session_rate_per_node`. @default 0, which is no limit */
  readonly sessionRate?: number;
}

/** Runs `body` on two datacenters of one node each. */
export async function withPeopleCluster<T>(
  { isCounting = false, isInspected = false, sessionRate = 0 }: PeopleClusterOptions,
  body: (people: PeopleCluster) => Promise<T>,
): Promise<T> {
  await using database = new RoundTripProxy();
  await using stack = new AsyncDisposableStack();
  const redises = Array.from({ length: DATACENTERS }, () => stack.use(new RoundTripProxy()));
  const databasePort = await database.start();
  const redisPorts = await Promise.all(redises.map((proxy) => proxy.start()));
  let place: DatabasePlace | undefined;
  let workers = 0;
  const configure = (configuration: CausewayConfiguration, datacenter: number) => {
    const pools = configuration["outgoing_pools"] as { rdbms: { default: RdbmsSection } };
    const { connection, workers: count } = pools.rdbms.default;
    place = { ...connection };
    workers = count;
    configuration["limits"] = {
      ...configuration["limits"] as Record<string, unknown> | undefined,
      max_connections: MAX_CONNECTIONS,
      session_rate_per_node: sessionRate,
    };
    if (!isCounting) return;
    const { host, port } = connection;
    database.leadTo({ host, port });
    connection.port = databasePort;
    const { redis } = configuration.modules.mod_global_distrib;
    redises[datacenter]!.leadTo({ host: redis.server, port: redis.port });
    redis.port = redisPorts[datacenter]!;
  };
  return await withCluster({
    datacenters: DATACENTERS,
    users: [],
    components: [],
    links: "direct",
    database: "postgresql",
    ...(isInspected && { command: inspectedCommand }),
    configure: (configuration, { datacenter }) => configure(configuration, datacenter),
  }, (cluster) =>
    body({
      cluster,
      place: place!, // each node has been configured
      workers,
      roundTrips: () => ({
        database: database.roundTrips,
        redis: redises[0]!.roundTrips,
        otherRedis: redises[1]!.roundTrips,
      }),
    }));
}
