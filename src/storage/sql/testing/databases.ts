import { PATIENT } from "../../testing/patient_bounds.ts";
import type { PoolBounds } from "../connection_pool.ts";
import type { TestServer } from "./servers.ts";
import { prepareSchema } from "../schema.ts";
import type { SqlConnection } from "../sql_connection.ts";
import { connectToServer, placeOf } from "../sql_server.ts";
import type { SqlServerOptions } from "../sql_server.ts";

/** Options of an empty database at `server`. */
export async function emptyDatabase(
  server: TestServer,
  bounds: PoolBounds = PATIENT,
): Promise<SqlServerOptions> {
  const { engine } = server.kind;
  return { engine, address: await server.database(), pool: "rdbms.default", bounds };
}

/** Options of a database at `server` that has the present schema. */
export async function preparedDatabase(
  server: TestServer,
  bounds: PoolBounds = PATIENT,
): Promise<SqlServerOptions> {
  const options = await emptyDatabase(server, bounds);
  await withConnection(
    options,
    (connection) => prepareSchema(options.engine.dialect, connection, placeOf(options)),
  );
  return options;
}

/** Runs `work` with a connection of its own, whatever the schema. */
export async function withConnection<T>(
  options: SqlServerOptions,
  work: (connection: SqlConnection) => Promise<T>,
): Promise<T> {
  const connection = await connectToServer(options);
  try {
    return await work(connection);
  } finally {
    await connection.close();
  }
}
