import { createHash } from "node:crypto";
import type { Client } from "cassandra-driver";
import { CausewayError } from "../../base/mod.ts";
import type { PrepareOptions } from "../backend.ts";
import { statementsOf } from "../sql/schema.ts";
import type { SchemaFile } from "../sql/sql_dialect.ts";
import { storageError } from "../storage_error.ts";
import schema0 from "./schema/0.cql" with { type: "text" };
import schema1 from "./schema/1.cql" with { type: "text" };

const VERSIONS: SchemaFile = { version: 0, text: schema0 };
const FILES: readonly SchemaFile[] = [{ version: 1, text: schema1 }];

/** Schema files in their order; the first makes the table of versions. */
export const CASSANDRA_SCHEMA: readonly SchemaFile[] = [VERSIONS, ...FILES];

/** Version of the schema that this program uses. */
export const CASSANDRA_SCHEMA_VERSION = FILES.at(-1)!.version;

const VERSIONS_TABLE = "causeway_schema";
/** Replicas of a datacenter that has so many servers. */
const USUAL_REPLICAS = 3;

/** Keyspace as it was found. */
export interface KeyspaceState {
  readonly exists: boolean;
  readonly tables: ReadonlySet<string>;
  readonly applied: readonly { version: number; checksum: string; done: number }[];
  /** Servers of each datacenter. */
  readonly datacenters: ReadonlyMap<string, number>;
}

/** Replicas of a keyspace, as it was found. */
export interface Replication {
  /** Without its package: `NetworkTopologyStrategy`. */
  readonly strategy: string;
  /** Replicas by datacenter, or by whatever the strategy names. */
  readonly replicas: ReadonlyMap<string, number>;
}

/** Reads a keyspace's schema. Changes nothing. */
export async function readKeyspace(client: Client, keyspace: string): Promise<KeyspaceState> {
  const { rows: found } = await client.execute(
    "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?",
    [keyspace],
    { prepare: true },
  );
  const tables = new Set(found.map((row) => String(row["table_name"])));
  const applied = tables.has(VERSIONS_TABLE) ? await readVersions(client, keyspace) : [];
  const exists = tables.size > 0 || await readReplication(client, keyspace) !== undefined;
  return { exists, tables, applied, datacenters: await readDatacenters(client) };
}

async function readVersions(client: Client, keyspace: string): Promise<KeyspaceState["applied"]> {
  const { rows } = await client.execute(
    `SELECT version, checksum, done FROM ${keyspace}.${VERSIONS_TABLE}`,
  );
  return rows.map((row) => ({
    version: Number(row["version"]),
    checksum: String(row["checksum"]),
    done: Number(row["done"]),
  })).toSorted((one, other) => one.version - other.version);
}

/** Returns how many replicas a keyspace has; undefined when there is no such keyspace. */
export async function readReplication(
  client: Client,
  keyspace: string,
): Promise<Replication | undefined> {
  const [row] = (await client.execute(
    "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = ?",
    [keyspace],
    { prepare: true },
  )).rows;
  if (row === undefined) return undefined;
  const { class: name = "", ...replicas } = row["replication"] as Readonly<Record<string, string>>;
  return {
    strategy: name.slice(name.lastIndexOf(".") + 1),
    replicas: new Map(Object.entries(replicas).map(([place, count]) => [place, Number(count)])),
  };
}

/** Returns the number of servers in each datacenter of a cluster. */
export async function readDatacenters(client: Client): Promise<ReadonlyMap<string, number>> {
  const servers = ["local", "peers"].map((table) =>
    client.execute(`SELECT data_center FROM system.${table}`)
  );
  const names = (await Promise.all(servers)).flatMap(({ rows }) =>
    rows.map((row) => String(row["data_center"]))
  );
  const counts = new Map<string, number>();
  for (const name of names.toSorted()) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

/** Returns the statement that makes a keyspace in all datacenters that the cluster has. */
export function keyspaceCreation(
  keyspace: string,
  datacenters: ReadonlyMap<string, number>,
): string {
  const replicas = [...datacenters].map(([name, servers]) =>
    `, '${name.replaceAll("'", "''")}': ${Math.min(USUAL_REPLICAS, servers)}`
  );
  return `CREATE KEYSPACE IF NOT EXISTS ${keyspace} ` +
    `WITH replication = {'class': 'NetworkTopologyStrategy'${replicas.join("")}}`;
}

/**
 * Returns the statements that bring a keyspace to the present schema, in their order. Their tables are
 * those of the keyspace that the connection uses.
 *
 * @throws CausewayError `storage/schema-too-new` for the schema of a newer program,
 * `storage/schema-foreign` for tables that are not ours or were changed by others
 */
export function planKeyspace(state: KeyspaceState, place: string): readonly string[] {
  checkOurs(state, place);
  const plan = state.tables.has(VERSIONS_TABLE) ? [] : [...statementsOf(VERSIONS)];
  for (const file of FILES) {
    const statements = statementsOf(file);
    const done = state.applied.find(({ version }) => version === file.version)?.done ?? 0;
    for (const [i, statement] of statements.slice(done).entries()) {
      // Each is noted once it is done, so that a preparation that was ended goes on.
      plan.push(statement, progress(file, done + i + 1));
    }
  }
  return plan;
}

function progress(file: SchemaFile, done: number): string {
  return `INSERT INTO ${VERSIONS_TABLE} (version, checksum, done) VALUES ` +
    `(${file.version}, '${checksumOf(file)}', ${done})`;
}

/**
 * Checks that a keyspace has the present schema.
 *
 * @throws CausewayError as `planKeyspace`, `storage/schema-missing` for one without our tables,
 * `storage/schema-too-old` when `causeway backends prepare` has something to do
 */
export async function checkKeyspace(
  client: Client,
  keyspace: string,
  place: string,
): Promise<void> {
  const state = await readKeyspace(client, keyspace);
  if (planKeyspace(state, place).length === 0) return;
  if (state.applied.length === 0) throw storageError("schema-missing", { action: "use", place });
  throw new CausewayError(
    "storage/schema-too-old",
    `Cannot use ${place}: its schema is not complete up to version ${CASSANDRA_SCHEMA_VERSION}; ` +
      "run `causeway backends prepare`",
  );
}

function checkOurs({ applied, tables }: KeyspaceState, place: string): void {
  const newest = applied.at(-1)?.version ?? 0;
  if (newest > CASSANDRA_SCHEMA_VERSION) {
    throw new CausewayError(
      "storage/schema-too-new",
      `Cannot use ${place}: its schema has version ${newest}, and this program knows versions up ` +
        `to ${CASSANDRA_SCHEMA_VERSION}; use the newer program`,
    );
  }
  const changed = applied.find(({ version, checksum }) =>
    FILES.some((file) => file.version === version && checksumOf(file) !== checksum)
  );
  const foreign = tables.has(VERSIONS_TABLE)
    ? []
    : tablesOfSchema().filter((each) => tables.has(each));
  if (changed === undefined && foreign.length === 0) return;
  const reason = changed === undefined
    ? `it has tables of other programs: ${foreign.join(", ")}`
    : `version ${changed.version} of its schema is not that of this program`;
  throw new CausewayError("storage/schema-foreign", `Cannot use ${place}: ${reason}`);
}

/** Returns the names of the tables that the schema makes, without that of the versions. */
export function tablesOfSchema(): readonly string[] {
  return FILES.flatMap(({ text }) =>
    [...text.matchAll(/^CREATE TABLE IF NOT EXISTS (\w+)/gm)].map(([, name]) => name!)
  );
}

function checksumOf(file: SchemaFile): string {
  return createHash("sha256").update(statementsOf(file).join(";")).digest("hex");
}

/**
 * Brings a keyspace to the present schema and returns the statements that were run. Safe to repeat
 * and to interrupt: the next call goes on. The keyspace itself is made in each datacenter that the
 * cluster has.
 *
 * @param client without a keyspace: this one may not be there
 * @throws CausewayError as `planKeyspace`; otherwise what the driver throws
 */
export async function prepareKeyspace(
  client: Client,
  keyspace: string,
  place: string,
  progress?: PrepareOptions["progress"],
): Promise<readonly string[]> {
  const statements = await planPreparation(client, keyspace, place);
  for (const [done, statement] of statements.entries()) {
    progress?.({ done, total: statements.length, statement });
    // The driver waits until all servers agree on the schema, before a statement ends.
    await client.execute(statement);
  }
  return statements;
}

/** Returns the statements that `prepareKeyspace` would run. Changes nothing. */
export async function planPreparation(
  client: Client,
  keyspace: string,
  place: string,
): Promise<readonly string[]> {
  const state = await readKeyspace(client, keyspace);
  const plan = planKeyspace(state, place);
  return [
    ...(state.exists ? [] : [keyspaceCreation(keyspace, state.datacenters)]),
    ...(plan.length === 0 ? [] : [`USE ${keyspace}`, ...plan]),
  ];
}
