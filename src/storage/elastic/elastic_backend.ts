import { describeError, SystemClock } from "../../base/mod.ts";
import type { Backend, BackendReport, PrepareOptions } from "../backend.ts";
import type { NamedPool, ServerKind } from "../server_kind.ts";
import type { ElasticPoolOptions } from "../server_pools.ts";
import { resolvePoolBounds } from "../sql/connection_pool.ts";
import type { ServerVersion } from "../sql/sql_dialect.ts";
import type { ElasticRequest } from "./elastic_connection.ts";
import { dialectOf } from "./elastic_dialect.ts";
import { elasticError } from "./elastic_failure.ts";
import {
  creationOf,
  ELASTIC_INDICES,
  ELASTIC_SCHEMA_VERSION,
  findIndex,
  planIndices,
  prepareIndices,
} from "./elastic_schema.ts";
import { ElasticSession, placeOf } from "./elastic_servers.ts";
import { ElasticStores } from "./elastic_stores.ts";

/** Milliseconds that one request of a preparation may take. */
const PREPARE_REQUEST_MS = 60_000;

/** Health of the shards of an index, as servers show it. */
interface Health {
  readonly status?: string;
}

/** Elasticsearch or OpenSearch, for the commands that prepare and check it. */
class ElasticBackend implements Backend {
  readonly name: string;
  readonly place: string;
  readonly #options: ElasticPoolOptions;

  constructor(pool: NamedPool<ElasticPoolOptions>) {
    this.name = pool.name;
    this.place = placeOf(pool);
    this.#options = pool.options;
  }

  async plan(): Promise<readonly string[]> {
    const requests = await this.#with("plan", (session) =>
      planIndices(session.ask, {
        dialect: session.dialect,
        place: this.place,
      }));
    return requests.map(textOf);
  }

  async prepare({ progress }: PrepareOptions = {}): Promise<readonly string[]> {
    const requests = await this.#with("prepare", (session) =>
      prepareIndices(session.ask, {
        dialect: session.dialect,
        place: this.place,
        begin: (request, done, total) => progress?.({ done, total, statement: textOf(request) }),
      }));
    return requests.map(textOf);
  }

  async check(): Promise<BackendReport> {
    const problems: string[] = [];
    let server: ServerVersion | undefined;
    try {
      await this.#with("check", async (session) => {
        server = session.server;
        const on = { dialect: session.dialect, place: this.place };
        for (const index of ELASTIC_INDICES) {
          try {
            const found = await findIndex(session.ask, index, on);
            if (found === undefined) {
              problems.push(
                `the index ${index.name} is missing; run \`causeway backends prepare\``,
              );
            } else problems.push(...await blocksOf(session, index.name));
          } catch (thrown) {
            problems.push(
              elasticError(thrown, { action: "check", place: this.place }).message,
            );
          }
        }
      });
    } catch (thrown) {
      problems.push(describeError(thrown));
    }
    return { server, schemaVersion: ELASTIC_SCHEMA_VERSION, problems };
  }

  /** @throws CausewayError with a code `storage/…` */
  async #with<T>(action: string, work: (session: ElasticSession) => Promise<T>): Promise<T> {
    const bounds = resolvePoolBounds({
      ...this.#options.bounds,
      statementTimeoutMs: PREPARE_REQUEST_MS,
    });
    const { place } = this;
    let session: ElasticSession | undefined;
    try {
      session = await ElasticSession.open(this.#options, {
        bounds,
        place,
        clock: new SystemClock(),
      });
      return await work(session);
    } catch (thrown) {
      throw elasticError(thrown, { action: session === undefined ? "connect to" : action, place });
    } finally {
      session?.destroy();
    }
  }
}

/** Returns what keeps an index from being read or changed. */
async function blocksOf({ ask }: ElasticSession, name: string): Promise<readonly string[]> {
  const problems: string[] = [];
  const path = `/${name}/_settings?flat_settings=true`;
  const indices = await ask({ method: "GET", path }) as Readonly<
    Record<string, { readonly settings?: Readonly<Record<string, unknown>> }>
  >;
  for (const { settings = {} } of Object.values(indices)) {
    for (const [key, value] of Object.entries(settings)) {
      if (key.startsWith("index.blocks.") && String(value) === "true") {
        problems.push(`the index ${name} is blocked: ${key}`);
      }
    }
  }
  const health = await ask({ method: "GET", path: `/_cluster/health/${name}` }) as Health | null;
  if (health?.status === "red") {
    problems.push(`the index ${name} is red: some of its data cannot be reached`);
  }
  return problems;
}

function textOf({ method, path, body }: ElasticRequest): string {
  return `${method} ${path} ${body ?? ""}`.trimEnd();
}

/** Requests that make the indices, for servers without and with types, as `schema` prints them. */
const SCHEMA = [
  "# Elasticsearch 7 and newer, OpenSearch",
  ...creations("7.0.0"),
  "# Elasticsearch 6",
  ...creations("6.0.0"),
  "# Elasticsearch 5",
  ...creations("5.6.0"),
  "",
].join("\n");

function creations(version: string): readonly string[] {
  const dialect = dialectOf({ product: "elasticsearch", version });
  return ELASTIC_INDICES.map((index) => textOf(creationOf(index, dialect)));
}

/** Elasticsearch and OpenSearch. */
export const ELASTIC: ServerKind<ElasticPoolOptions> = {
  open: (pool) => new ElasticStores(pool),
  backend: (pool) => new ElasticBackend(pool),
  schema: [{ version: ELASTIC_SCHEMA_VERSION, text: SCHEMA }],
};
