import type { Clock } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import type { ArchiveStore } from "../archive_store.ts";
import type { DataStores } from "../data_stores.ts";
import type { NamedPool } from "../server_kind.ts";
import type { ElasticPoolOptions } from "../server_pools.ts";
import type { PoolFigures } from "../sql/connection_pool.ts";
import { ElasticArchiveStore } from "./elastic_archive_store.ts";
import { indexUuid, PEOPLE_INDEX, ROOMS_INDEX } from "./elastic_schema.ts";
import type { ElasticSession } from "./elastic_servers.ts";
import { ElasticServers } from "./elastic_servers.ts";

/** The stores in Elasticsearch or OpenSearch. */
export class ElasticStores implements DataStores, AsyncDisposable {
  readonly #servers: ElasticServers;
  readonly #people: ArchiveStore;
  readonly #rooms: ArchiveStore;

  constructor(pool: NamedPool<ElasticPoolOptions>, clock?: Clock) {
    this.#servers = new ElasticServers(pool, clock);
    this.#people = new ElasticArchiveStore(this.#servers, PEOPLE_INDEX);
    this.#rooms = new ElasticArchiveStore(this.#servers, ROOMS_INDEX);
  }

  get place(): string {
    return this.#servers.place;
  }

  get figures(): PoolFigures {
    return this.#servers.figures;
  }

  checkFailure(): Error | undefined {
    return this.#servers.checkFailure();
  }

  async probe(): Promise<void> {
    await this.#servers.probe();
  }

  /** Returns the id that the server has given the index of people's archives. */
  async identity(): Promise<string | undefined> {
    const read = (session: Pick<ElasticSession, "ask">) => indexUuid(session.ask, PEOPLE_INDEX);
    return await this.#servers.run("read the settings of", read, { isRepeatable: true });
  }

  observe(pool: string, to: { readonly metrics: Metrics; readonly logger: Logger }): void {
    this.#servers.observe(pool, to);
  }

  archives(): ArchiveStore {
    return this.#people;
  }

  roomArchives(): ArchiveStore {
    return this.#rooms;
  }

  async close(): Promise<void> {
    await this.#servers.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
