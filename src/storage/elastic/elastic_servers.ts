import type { Clock } from "../../base/mod.ts";
import { CausewayError, SystemClock } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import { versionProblem } from "../catalogue/catalogue.ts";
import type { NamedPool } from "../server_kind.ts";
import type { ElasticPoolOptions } from "../server_pools.ts";
import type { PoolBounds, PoolFigures } from "../sql/connection_pool.ts";
import { ConnectionPool, resolvePoolBounds } from "../sql/connection_pool.ts";
import { DatabaseObserver } from "../sql/database_observer.ts";
import { ElasticConnection } from "./elastic_connection.ts";
import type { ElasticDialect, ElasticVersion } from "./elastic_dialect.ts";
import { dialectOf } from "./elastic_dialect.ts";
import { ElasticAnswer, elasticError } from "./elastic_failure.ts";
import type { ElasticIndex, FoundIndex } from "./elastic_schema.ts";
import { findAllIndices } from "./elastic_schema.ts";

/** A connection to a server whose version is served. */
export class ElasticSession {
  readonly #connection: ElasticConnection;
  readonly server: ElasticVersion;
  readonly dialect: ElasticDialect;

  private constructor(connection: ElasticConnection, server: ElasticVersion) {
    this.#connection = connection;
    this.server = server;
    this.dialect = dialectOf(server);
  }

  /**
   * Connects to the first server that answers.
   *
   * @throws CausewayError `storage/server-too-old`; otherwise as `ElasticConnection`
   */
  static async open(
    { servers, tls, username, password }: ElasticPoolOptions,
    { bounds, place, clock }: {
      readonly bounds: Required<PoolBounds>;
      readonly place: string;
      readonly clock: Clock;
    },
  ): Promise<ElasticSession> {
    // One that does not answer must leave time for the others.
    const withinMs = Math.ceil(bounds.connectTimeoutMs / servers.length);
    let failure: unknown;
    for (const address of servers) {
      let connection: ElasticConnection | undefined;
      try {
        const options = { requestTimeoutMs: bounds.statementTimeoutMs, clock };
        connection = await ElasticConnection.open({ ...address, tls, username, password }, options);
        const server = await versionOf(connection, withinMs);
        const problem = versionProblem(server.product, server.version);
        if (problem === undefined) return new ElasticSession(connection, server);
        throw new CausewayError("storage/server-too-old", `Cannot use ${place}: ${problem}`);
      } catch (thrown) {
        connection?.destroy();
        failure = thrown;
      }
    }
    throw failure;
  }

  get isOpen(): boolean {
    return this.#connection.isOpen;
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  destroy(): void {
    this.#connection.destroy();
  }

  /** Sends a request. @throws as `ElasticConnection.request` */
  readonly ask: ElasticConnection["request"] = (request) => this.#connection.request(request);
}

/** Connection and what has been found at its other end. */
interface ArchiveSession extends Pick<ElasticSession, "ask" | "dialect"> {
  readonly indices: ReadonlyMap<ElasticIndex["name"], FoundIndex>;
  readonly isOpen: boolean;
  close(): Promise<void>;
  destroy(): void;
}

/** Servers with the same indices, through a bounded pool of connections. */
export class ElasticServers {
  /** Name for messages, without secrets. */
  readonly place: string;
  readonly clock: Clock;
  /** Milliseconds that an answer may take. */
  readonly requestTimeoutMs: number;
  readonly #sessions: ConnectionPool<ArchiveSession>;
  #observer: DatabaseObserver | undefined;

  constructor({ name, options }: NamedPool<ElasticPoolOptions>, clock: Clock = new SystemClock()) {
    this.place = placeOf({ name, options });
    this.clock = clock;
    const bounds = resolvePoolBounds(options.bounds);
    this.requestTimeoutMs = bounds.statementTimeoutMs;
    this.#sessions = new ConnectionPool<ArchiveSession>({
      place: this.place,
      connect: () => this.#connect(options, bounds),
      bounds,
      clock,
      changed: (failure) => this.#observer?.changed(failure),
    });
  }

  /**
   * Returns the failure of the last attempt to connect; undefined while they can be reached. Where
   * that is in doubt, it may begin a new attempt, of which the next call tells.
   */
  checkFailure(): Error | undefined {
    return this.#sessions.checkFailure();
  }

  /** Numbers of its pool of connections. */
  get figures(): PoolFigures {
    return this.#sessions.figures;
  }

  /** Measures and logs from now on, under the name of the pool. */
  observe(pool: string, to: { readonly metrics: Metrics; readonly logger: Logger }): void {
    this.#observer = new DatabaseObserver(pool, this.#sessions, to);
  }

  /** @throws CausewayError with a code `storage/…` */
  async probe(): Promise<void> {
    this.#sessions.release(await this.#sessions.acquire());
  }

  /**
   * Sends one request. One that only reads is sent again, once, when its connection turns out to be
   * lost.
   *
   * @param action for messages: begins with a verb and ends with a preposition
   * @throws CausewayError with a code `storage/…`
   */
  async run<T>(
    action: string,
    work: (session: ArchiveSession) => Promise<T>,
    { isRepeatable = false }: { readonly isRepeatable?: boolean } = {},
  ): Promise<T> {
    const context = { action, place: this.place };
    try {
      try {
        return await this.#once(work);
      } catch (thrown) {
        const error = elasticError(thrown, context);
        const mayBeStale = error.code === "storage/unreachable" &&
          this.checkFailure() === undefined &&
          !(thrown instanceof ElasticAnswer);
        if (!isRepeatable || !mayBeStale) throw error;
        return await this.#once(work);
      }
    } catch (thrown) {
      const error = elasticError(thrown, context);
      this.#observer?.failed(error.code);
      throw error;
    }
  }

  /** Closes the connections once they come back. Requests are refused from now on. */
  async close(): Promise<void> {
    await this.#sessions.close();
  }

  async #once<T>(work: (session: ArchiveSession) => Promise<T>): Promise<T> {
    const session = await this.#sessions.acquire();
    const beganMs = this.clock.monotonicMs();
    try {
      return await work(session);
    } finally {
      this.#observer?.took(this.clock.monotonicMs() - beganMs);
      this.#sessions.release(session);
    }
  }

  async #connect(
    options: ElasticPoolOptions,
    bounds: Required<PoolBounds>,
  ): Promise<ArchiveSession> {
    const { place, clock } = this;
    let session: ElasticSession | undefined;
    try {
      session = await ElasticSession.open(options, { bounds, place, clock });
      const { ask, dialect } = session;
      const indices = await findAllIndices(ask, { dialect, place });
      return new CheckedSession(session, indices);
    } catch (thrown) {
      session?.destroy();
      throw elasticError(thrown, { action: "connect to", place });
    }
  }
}

/** A session whose indices have been checked. */
class CheckedSession implements ArchiveSession {
  readonly #session: ElasticSession;
  readonly indices: ReadonlyMap<ElasticIndex["name"], FoundIndex>;

  constructor(
    session: ElasticSession,
    indices: ReadonlyMap<ElasticIndex["name"], FoundIndex>,
  ) {
    this.#session = session;
    this.indices = indices;
  }

  get ask(): ElasticSession["ask"] {
    return this.#session.ask;
  }

  get dialect(): ElasticDialect {
    return this.#session.dialect;
  }

  get isOpen(): boolean {
    return this.#session.isOpen;
  }

  close(): Promise<void> {
    return this.#session.close();
  }

  destroy(): void {
    this.#session.destroy();
  }
}

/** Returns the name of a pool's servers for messages. */
export function placeOf({ name, options }: NamedPool<ElasticPoolOptions>): string {
  const servers = options.servers.map(({ host, port }) => `${host}:${port}`).join(", ");
  return `the database ${name} (Elasticsearch or OpenSearch at ${servers})`;
}

interface Greeting {
  readonly version?: { readonly number?: unknown; readonly distribution?: unknown };
}

interface Nodes {
  readonly nodes?: Readonly<Record<string, { readonly version?: unknown }>>;
}

async function versionOf(
  connection: ElasticConnection,
  withinMs: number,
): Promise<ElasticVersion> {
  try {
    const answer = await connection.request({ method: "GET", path: "/" }, withinMs) as
      | Greeting
      | null;
    const { number = "", distribution } = answer?.version ?? {};
    const product = distribution === "opensearch" ? "opensearch" : "elasticsearch";
    return { product, version: String(number) };
  } catch (thrown) {
    // Elasticsearch 8 has its greeting in a module, which small distributions lack.
    if (!(thrown instanceof ElasticAnswer) || thrown.status !== 405) throw thrown;
    const path = "/_nodes/_local/none?filter_path=nodes.*.version";
    const answer = await connection.request({ method: "GET", path }, withinMs) as Nodes | null;
    const [node] = Object.values(answer?.nodes ?? {});
    return { product: "elasticsearch", version: String(node?.version ?? "") };
  }
}
