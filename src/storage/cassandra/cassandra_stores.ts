import type { Logger, Metrics } from "../../observe/mod.ts";
import type { ArchiveStore } from "../archive_store.ts";
import type { DataStores } from "../data_stores.ts";
import type { NamedPool } from "../server_kind.ts";
import type { CassandraPoolOptions } from "../server_pools.ts";
import type { PoolFigures } from "../sql/connection_pool.ts";
import { CassandraArchiveStore } from "./cassandra_archive_store.ts";
import { CassandraCluster } from "./cassandra_cluster.ts";

/** The stores in one keyspace of a Cassandra cluster. */
export class CassandraStores implements DataStores {
  readonly #cluster: CassandraCluster;
  readonly #archives: CassandraArchiveStore;

  constructor({ name, options }: NamedPool<CassandraPoolOptions>) {
    this.#cluster = new CassandraCluster({ pool: name, options });
    this.#archives = new CassandraArchiveStore(this.#cluster);
  }

  get place(): string {
    return this.#cluster.place;
  }

  get figures(): PoolFigures {
    return this.#cluster.figures;
  }

  checkFailure(): Error | undefined {
    return this.#cluster.checkFailure();
  }

  async probe(): Promise<void> {
    await this.#cluster.probe();
  }

  /** Returns the ids of the cluster's servers, and the name of the keyspace. */
  async identity(): Promise<string | undefined> {
    return await this.#cluster.identity();
  }

  observe(_pool: string, to: { readonly metrics: Metrics; readonly logger: Logger }): void {
    this.#cluster.observe(to);
  }

  async close(): Promise<void> {
    await this.#cluster.close();
  }

  archives(): ArchiveStore {
    return this.#archives;
  }
}
