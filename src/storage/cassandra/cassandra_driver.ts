import type * as Driver from "cassandra-driver";

/** The parts of the driver that this folder uses. */
export type CassandraDriver = Pick<
  typeof Driver,
  "auth" | "Client" | "errors" | "policies" | "types"
>;

let loaded: CassandraDriver | undefined;

/** Loads the driver. That takes a tenth of a second, and few nodes use Cassandra. */
export async function loadCassandraDriver(): Promise<CassandraDriver> {
  return loaded ??= await import("cassandra-driver");
}

/** The driver; undefined until somebody has loaded it, so that nothing of it is around either. */
export function loadedCassandraDriver(): CassandraDriver | undefined {
  return loaded;
}
