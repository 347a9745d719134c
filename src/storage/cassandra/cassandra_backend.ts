import { Buffer } from "node:buffer";
import type { Client } from "cassandra-driver";
import { describeError } from "../../base/mod.ts";
import type { Backend, BackendReport, PrepareOptions } from "../backend.ts";
import type { NamedPool } from "../server_kind.ts";
import type { CassandraPoolOptions } from "../server_pools.ts";
import type { ServerVersion } from "../sql/sql_dialect.ts";
import { cassandraPlace, checkServer, connectCassandra } from "./cassandra_cluster.ts";
import { cassandraError } from "./cassandra_failure.ts";
import {
  CASSANDRA_SCHEMA_VERSION,
  checkKeyspace,
  planPreparation,
  prepareKeyspace,
  readDatacenters,
  readReplication,
  tablesOfSchema,
} from "./cassandra_schema.ts";
import type { Replication } from "./cassandra_schema.ts";
import { DATA_TYPES } from "./cql_protocol.ts";

/** Milliseconds that one statement of a preparation may take. */
const PREPARE_STATEMENT_MS = 120_000;

/** A keyspace for the commands that prepare and check it. */
export class CassandraBackend implements Backend {
  readonly name: string;
  readonly place: string;
  readonly #options: CassandraPoolOptions;

  constructor({ name, options }: NamedPool<CassandraPoolOptions>) {
    this.name = name;
    this.place = cassandraPlace(name, options);
    this.#options = options;
  }

  async plan(): Promise<readonly string[]> {
    return await this.#with(
      "plan",
      (client) => planPreparation(client, this.#options.keyspace, this.place),
    );
  }

  async prepare({ progress }: PrepareOptions = {}): Promise<readonly string[]> {
    const bounds = { ...this.#options.bounds, statementTimeoutMs: PREPARE_STATEMENT_MS };
    return await this.#with(
      "prepare",
      (client) => prepareKeyspace(client, this.#options.keyspace, this.place, progress),
      { ...this.#options, bounds },
    );
  }

  async check(): Promise<BackendReport> {
    const { keyspace } = this.#options;
    let server: ServerVersion | undefined;
    const problems: string[] = [];
    const facts: string[] = [];
    try {
      await this.#with("check", async (client) => {
        server = { product: "cassandra", version: await checkServer(client, this.place) };
        const replication = await readReplication(client, keyspace);
        if (replication !== undefined) {
          facts.push(`the keyspace has ${describeReplication(replication)}`);
          const servers = await readDatacenters(client);
          const bare = [...servers.keys()].filter((each) => !replication.replicas.has(each));
          if (bare.length > 0) facts.push(`the keyspace has no replicas in ${bare.join(", ")}`);
          problems.push(...this.#replicationProblems(replication, servers));
          problems.push(...await this.#syncProblems(client, replication));
        }
        problems.push(...await this.#agreementProblems(client));
        await checkKeyspace(client, keyspace, this.place);
        problems.push(...await this.#deniedRights(client));
      });
    } catch (thrown) {
      problems.push(describeError(thrown));
    }
    return { server, schemaVersion: CASSANDRA_SCHEMA_VERSION, problems, facts };
  }

  #replicationProblems(
    { strategy, replicas }: Replication,
    servers: ReadonlyMap<string, number>,
  ): readonly string[] {
    const problems: string[] = [];
    const name = `The keyspace ${this.#options.keyspace}`;
    if (strategy !== "NetworkTopologyStrategy") {
      problems.push(
        `${name} uses ${strategy}, which knows no datacenters: change it to NetworkTopologyStrategy`,
      );
      return problems;
    }
    const { serialConsistency, localDatacenter } = this.#options;
    if (serialConsistency === "local_serial" && replicas.size > 1) {
      problems.push(
        `${name} has replicas in ${replicas.size} datacenters, and serial_consistency is ` +
          '"local_serial": archives lose their order if nodes of two of these write to them. Use ' +
          '"serial" unless one datacenter alone writes',
      );
    }
    if (localDatacenter !== undefined && !replicas.has(localDatacenter)) {
      problems.push(`${name} has no replicas in the datacenter ${localDatacenter}`);
    }
    for (const [datacenter, count] of replicas) {
      const present = servers.get(datacenter) ?? 0;
      if (count > present) {
        problems.push(
          `${name} has ${count} replicas in ${datacenter}, which has ${present} servers: requests ` +
            "that need more of them fail",
        );
      }
      if (count !== 2) continue;
      problems.push(
        `${name} has two replicas in ${datacenter}: both are needed for each request. Use three`,
      );
    }
    return problems;
  }

  /** A lone replica that writes to its disk later loses what it has reported when it crashes. */
  async #syncProblems(client: Client, { replicas }: Replication): Promise<readonly string[]> {
    const total = [...replicas.values()].reduce((sum, count) => sum + count, 0);
    if (total > 1) return [];
    try {
      const [row] = (await client.execute(
        "SELECT value FROM system_views.settings WHERE name = 'commitlog_sync'",
      )).rows;
      if (row?.["value"] !== "periodic") return [];
    } catch {
      return []; // servers below 4.0 do not tell
    }
    return [
      `The keyspace ${this.#options.keyspace} has one replica, and commitlog_sync is "periodic": the ` +
      'machine loses up to ten seconds of messages when it crashes. Use three replicas, or "group"',
    ];
  }

  async #agreementProblems(client: Client): Promise<readonly string[]> {
    const servers = await Promise.all(
      ["local", "peers"].map((table) =>
        client.execute(`SELECT schema_version FROM system.${table}`)
      ),
    );
    const versions = new Set(
      servers.flatMap(({ rows }) => rows.map((row) => String(row["schema_version"]))),
    );
    if (versions.size <= 1) return [];
    return [
      `The servers disagree on the schema: they have ${versions.size} versions of it. Wait, or ` +
      "restart those that `nodetool describecluster` names",
    ];
  }

  /** Tries what the store does, on rows that are not there. */
  async #deniedRights(client: Client): Promise<readonly string[]> {
    const { keyspace } = this.#options;
    const problems: string[] = [];
    for (const table of tablesOfSchema()) {
      const keys = await client.metadata.getTable(keyspace, table);
      const columns = [...keys.partitionKeys, ...keys.clusteringKeys];
      const where = columns.map(({ name }) => `${name} = ?`).join(" AND ");
      const values = columns.map(({ type }) => unusedValue(type.code));
      for (
        const [right, statement] of [
          ["read", `SELECT * FROM ${keyspace}.${table} WHERE ${where}`],
          ["change", `DELETE FROM ${keyspace}.${table} WHERE ${where}`],
        ] as const
      ) {
        try {
          await client.execute(statement, values, { prepare: true });
        } catch (thrown) {
          const context = { action: `${right} the table ${table} of`, place: this.place };
          problems.push(cassandraError(thrown, context).message);
        }
      }
    }
    return problems;
  }

  /** @throws CausewayError with a code `storage/…` */
  async #with<T>(
    action: string,
    work: (client: Client) => Promise<T>,
    options: CassandraPoolOptions = this.#options,
  ): Promise<T> {
    let client: Client;
    try {
      client = await connectCassandra(options, "cluster");
    } catch (thrown) {
      throw cassandraError(thrown, { action: "connect to", place: this.place });
    }
    try {
      return await work(client);
    } catch (thrown) {
      throw cassandraError(thrown, { action, place: this.place });
    } finally {
      await client.shutdown();
    }
  }
}

function describeReplication({ strategy, replicas }: Replication): string {
  const counts = [...replicas].map(([place, count]) => `${count} in ${place}`).join(", ");
  return `replicas by ${strategy}: ${counts === "" ? "none" : counts}`;
}

/** Returns a key that no row has. */
function unusedValue(type: number): unknown {
  if (type === DATA_TYPES.int || type === DATA_TYPES.bigint) return -1;
  if (type === DATA_TYPES.blob) return Buffer.from("causeway check");
  return "00000000-0000-0000-0000-000000000000";
}
