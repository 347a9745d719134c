import { DatabaseServer } from "../../../../harness/databases/mod.ts";
import type { SearchKind } from "../../../../harness/databases/mod.ts";
import { until } from "../../../../harness/until.ts";
import { SystemClock } from "../../../base/mod.ts";
import type { ElasticPoolOptions } from "../../server_pools.ts";
import type { PoolBounds } from "../../sql/connection_pool.ts";
import { resolvePoolBounds } from "../../sql/connection_pool.ts";
import type { ArchiveStoreFixture } from "../../testing/archive_store_conformance.ts";
import { prepareIndices } from "../elastic_schema.ts";
import { ElasticSession } from "../elastic_servers.ts";
import { ElasticStores } from "../elastic_stores.ts";

/** Bounds that a slow machine meets. */
const PATIENT: PoolBounds = {
  connectTimeoutMs: 20_000,
  statementTimeoutMs: 20_000,
  waitTimeoutMs: 20_000,
};

/** A server of tests that speaks Elasticsearch's protocol. */
export class TestSearchServer implements AsyncDisposable {
  readonly kind: SearchKind;
  readonly #server: DatabaseServer<SearchKind>;

  private constructor(kind: SearchKind, server: DatabaseServer<SearchKind>) {
    this.kind = kind;
    this.#server = server;
  }

  static async start(kind: SearchKind): Promise<TestSearchServer> {
    return new TestSearchServer(kind, await DatabaseServer.start(kind));
  }

  get directory(): string {
    return this.#server.directory;
  }

  get port(): number {
    return this.#server.port;
  }

  /** Ends it as a crash would. */
  async kill(): Promise<void> {
    await this.#server.kill();
  }

  /** Starts it again on the same port, with its data. */
  async launch(): Promise<void> {
    await this.#server.launch();
    // It answers before it has found its data again.
    await until(
      () =>
        this.ask("GET", "/_cluster/health?wait_for_status=yellow&timeout=5s").then(() => true)
          .catch(() => false),
      { what: `${this.kind.name} has its data`, withinMs: 120_000, everyMs: 25 },
    );
  }

  /** Suspends it with its connections open. Returns a function that resumes it. */
  suspend(): () => void {
    return this.#server.suspend();
  }

  /** Returns the pool that tests use. */
  pool(bounds: PoolBounds = PATIENT): ElasticPoolOptions {
    return {
      backend: "elasticsearch",
      servers: [{ host: "127.0.0.1", port: this.port }],
      username: undefined,
      password: { reveal: () => "" },
      bounds,
    };
  }

  /** Opens the stores. */
  stores(bounds?: PoolBounds): ElasticStores {
    return new ElasticStores({ name: "elastic.default", options: this.pool(bounds) });
  }

  /** Removes all indices and makes those of the program. */
  async empty(): Promise<void> {
    await this.ask("DELETE", "/messages,muc_messages?ignore_unavailable=true");
    const bounds = resolvePoolBounds(PATIENT);
    const clock = new SystemClock();
    const place = "the server of the test";
    const session = await ElasticSession.open(this.pool(), { bounds, place, clock });
    try {
      await prepareIndices(session.ask, { dialect: session.dialect, place });
    } finally {
      session.destroy();
    }
  }

  /** Sends a request and returns the JSON of its answer. */
  async ask(method: string, path: string, body?: unknown): Promise<unknown> {
    const response = await fetch(`http://127.0.0.1:${this.port}${path}`, {
      method,
      headers: body === undefined ? {} : { "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  }

  /** Returns an empty backend for one test. */
  async fixture(): Promise<ArchiveStoreFixture> {
    await this.empty();
    const stores = this.stores();
    return {
      archives: () => stores.archives(),
      roomArchives: () => stores.roomArchives(),
      [Symbol.asyncDispose]: () => stores.close(),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }
}

/**
 * Registers a server that runs during the tests of a file. Returns a function that gives it, once
 * the tests have begun.
 */
export function searchServerDuringTests(kind: SearchKind): () => TestSearchServer {
  let server: TestSearchServer | undefined;
  Deno.test.beforeAll(async () => {
    server = await TestSearchServer.start(kind);
  });
  Deno.test.afterAll(async () => {
    await server?.[Symbol.asyncDispose](); // undefined: it did not start, which has been reported
  });
  return () => server!; // tests do not run before it has started
}
