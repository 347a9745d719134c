import { checkServerIdentity } from "node:tls";
import type { PeerCertificate } from "node:tls";
import type { Client, DseClientOptions } from "cassandra-driver";
import { CausewayError, SystemClock } from "../../base/mod.ts";
import type { Clock } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import { versionProblem } from "../catalogue/catalogue.ts";
import type { PoolBounds, PoolFigures } from "../sql/connection_pool.ts";
import { ConnectionPool, resolvePoolBounds } from "../sql/connection_pool.ts";
import { DatabaseObserver } from "../sql/database_observer.ts";
import type { CassandraPoolOptions } from "../server_pools.ts";
import { readTls } from "../sql/sql_server.ts";
import { loadCassandraDriver } from "./cassandra_driver.ts";
import type { CassandraDriver } from "./cassandra_driver.ts";
import { cassandraError, isDisconnection } from "./cassandra_failure.ts";
import { checkKeyspace } from "./cassandra_schema.ts";
import { CassandraSession } from "./cassandra_session.ts";

/** Options of a cluster. */
export interface CassandraClusterOptions {
  /** Name of the pool, such as `cassandra.default`. */
  readonly pool: string;
  readonly options: CassandraPoolOptions;
  readonly clock?: Clock;
}

/** Leave to carry out one operation, over the connections that all operations share. */
interface Turn {
  readonly client: Client;
  readonly isOpen: boolean;
  close(): Promise<void>;
  destroy(): void;
}

/**
 * One keyspace of a Cassandra cluster. A bounded number of operations uses it at once, and a bounded
 * number waits. The driver connects to the servers of the datacenter.
 */
export class CassandraCluster {
  readonly pool: string;
  /** Name for messages, without secrets. */
  readonly place: string;
  readonly #options: CassandraPoolOptions;
  readonly #bounds: Required<PoolBounds>;
  readonly #clock: Clock;
  readonly #turns: ConnectionPool<Turn>;
  #observer: DatabaseObserver | undefined;
  #client: Promise<Client> | undefined;
  /** The client of `#client`, once it is connected. */
  #connected: Client | undefined;
  readonly #ending = new Set<Promise<void>>();

  constructor({ pool, options, clock = new SystemClock() }: CassandraClusterOptions) {
    this.pool = pool;
    this.place = cassandraPlace(pool, options);
    this.#options = options;
    this.#bounds = resolvePoolBounds(options.bounds);
    this.#clock = clock;
    this.#turns = new ConnectionPool<Turn>({
      place: this.place,
      connect: () => this.#connect(),
      bounds: this.#bounds,
      clock,
      changed: (failure) => this.#observer?.changed(failure),
    });
  }

  /**
   * Returns the failure of the last attempt to connect; undefined while the cluster can be reached. Where
   * that is in doubt, it may begin a new attempt, of which the next call tells.
   */
  checkFailure(): Error | undefined {
    return this.#turns.checkFailure();
  }

  /** Numbers of its operations: those that run count as connections. */
  get figures(): PoolFigures {
    return this.#turns.figures;
  }

  get clock(): Clock {
    return this.#clock;
  }

  /** Measures and logs from now on. */
  observe(to: { readonly metrics: Metrics; readonly logger: Logger }): void {
    this.#observer = new DatabaseObserver(this.pool, this.#turns, to);
  }

  /**
   * Connects and looks at the schema.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async probe(): Promise<void> {
    this.#turns.release(await this.#turns.acquire());
  }

  /**
   * Returns what tells the keyspace from others: the ids of all servers of the cluster, whichever of
   * them the pool names, and the name of the keyspace.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async identity(): Promise<string> {
    const turn = await this.#turns.acquire();
    try {
      const ids = turn.client.hosts.values().map(({ hostId }) => String(hostId));
      return [...ids.toSorted(), this.#options.keyspace].join(" ");
    } finally {
      this.#turns.release(turn);
    }
  }

  /**
   * Carries out one operation.
   *
   * @param action for messages: begins with a verb and ends with a preposition
   * @throws CausewayError with a code `storage/…`
   */
  async run<T>(action: string, work: (session: CassandraSession) => Promise<T>): Promise<T> {
    let turn: Turn | undefined;
    const beganMs = this.#clock.monotonicMs();
    try {
      turn = await this.#turns.acquire();
      const time = { clock: this.#clock, patienceMs: this.#bounds.statementTimeoutMs };
      return await work(new CassandraSession(turn.client, this.#options, time));
    } catch (thrown) {
      if (turn !== undefined && isDisconnection(thrown)) this.#forget(turn.client);
      const error = cassandraError(thrown, { action, place: this.place });
      this.#observer?.failed(error.code);
      throw error;
    } finally {
      if (turn !== undefined) {
        this.#observer?.took(this.#clock.monotonicMs() - beganMs);
        this.#turns.release(turn);
      }
    }
  }

  /** Ends the connections once the operations are done. New ones are refused from now on. */
  async close(): Promise<void> {
    await this.#turns.close();
    if (this.#client !== undefined) {
      await this.#client.then((client) => this.#forget(client), () => {}); // it has failed
    }
    await Promise.all(this.#ending);
  }

  async #connect(): Promise<Turn> {
    this.#client ??= this.#open();
    let client: Client;
    try {
      client = await this.#client;
    } catch (thrown) {
      this.#client = undefined;
      throw cassandraError(thrown, { action: "connect to", place: this.place });
    }
    const isConnected = () => this.#connected === client;
    return {
      client,
      get isOpen() {
        return isConnected();
      },
      close: () => Promise.resolve(),
      destroy: () => {},
    };
  }

  async #open(): Promise<Client> {
    const client = await connectCassandra(this.#options);
    try {
      await checkServer(client, this.place);
      await checkKeyspace(client, this.#options.keyspace, this.place);
    } catch (thrown) {
      await client.shutdown();
      throw thrown;
    }
    this.#connected = client;
    return client;
  }

  /** Ends a client that no server answers, or that is not needed any more. */
  #forget(client: Client): void {
    if (this.#connected !== client) return;
    this.#connected = undefined;
    this.#client = undefined;
    const ending = client.shutdown().catch(() => {}) // what is lost needs no closing
      .finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }
}

/** Returns the name of a keyspace in messages. */
export function cassandraPlace(pool: string, { servers, keyspace }: CassandraPoolOptions): string {
  const hosts = servers.map(({ host, port }) => `${host}:${port}`).join(", ");
  return `the database ${pool} (Cassandra ${keyspace} at ${hosts})`;
}

/**
 * Checks that this version of the server is served.
 *
 * @throws CausewayError `storage/server-too-old`; otherwise what the driver throws
 */
export async function checkServer(client: Client, place: string): Promise<string> {
  const [row] = (await client.execute("SELECT release_version FROM system.local")).rows;
  const version = String(row?.["release_version"]);
  const problem = versionProblem("cassandra", version);
  if (problem === undefined) return version;
  throw new CausewayError("storage/server-too-old", `Cannot use ${place}: ${problem}`);
}

/**
 * Connects to a cluster.
 *
 * @param use `keyspace`: statements are about it. `cluster`: it may not be there yet
 * @throws what the driver throws
 */
export async function connectCassandra(
  options: CassandraPoolOptions,
  use: "keyspace" | "cluster" = "keyspace",
): Promise<Client> {
  const driver = await loadCassandraDriver();
  const settings = await settingsOf(options, driver);
  const datacenter = options.localDatacenter ?? await findDatacenter(settings, driver);
  const client = new driver.Client({
    ...settings,
    localDataCenter: datacenter,
    ...(use === "keyspace" ? { keyspace: options.keyspace } : {}),
  });
  await connect(client);
  return client;
}

async function settingsOf(
  options: CassandraPoolOptions,
  { auth, policies, types }: CassandraDriver,
): Promise<DseClientOptions> {
  const { servers, username, password, tls } = options;
  const { connectTimeoutMs, statementTimeoutMs } = resolvePoolBounds(options.bounds);
  const names = servers.map(({ host }) => host);
  return {
    contactPoints: servers.map(({ host, port }) =>
      `${host.includes(":") ? `[${host}]` : host}:${port}`
    ),
    ...(username === undefined ? {} : {
      authProvider: new auth.PlainTextAuthProvider(username, password.reveal()),
    }),
    ...(tls === undefined ? {} : {
      sslOptions: {
        ...await readTls(tls),
        rejectUnauthorized: true,
        // The driver connects to addresses. A certificate may name the host that was configured.
        checkServerIdentity: (address: string, certificate: PeerCertificate) =>
          identityProblem([address, ...names], certificate),
      },
    }),
    protocolOptions: { port: servers[0]!.port }, // for servers that others tell of
    pooling: { coreConnectionsPerHost: { [types.distance.local]: 2, [types.distance.remote]: 1 } },
    socketOptions: { connectTimeout: connectTimeoutMs, readTimeout: statementTimeoutMs },
    policies: {
      reconnection: new policies.reconnection.ExponentialReconnectionPolicy(250, 5_000, false),
    },
    // Reports to other programs, that nobody reads.
    monitorReporting: { enabled: false },
    maxPrepared: 2_000,
  };
}

/** Returns why a certificate is not that of a server; undefined when it is. */
function identityProblem(
  names: readonly string[],
  certificate: PeerCertificate,
): Error | undefined {
  const problems = names.map((name) => checkServerIdentity(name, certificate));
  return problems.includes(undefined) ? undefined : problems[0];
}

/** Returns the datacenter of the first server that answers. */
async function findDatacenter(
  settings: DseClientOptions,
  { Client, policies }: CassandraDriver,
): Promise<string> {
  const client = new Client({
    ...settings,
    policies: { loadBalancing: new policies.loadBalancing.RoundRobinPolicy() },
  });
  await connect(client);
  try {
    const [row] = (await client.execute("SELECT data_center FROM system.local")).rows;
    return String(row?.["data_center"]);
  } finally {
    await client.shutdown();
  }
}

async function connect(client: Client): Promise<void> {
  try {
    await client.connect();
  } catch (thrown) {
    await client.shutdown();
    throw thrown;
  }
}
