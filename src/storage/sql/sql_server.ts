import {
  belongsTo,
  CausewayError,
  certificatesIn,
  describeFileError,
  privateKeyIn,
} from "../../base/mod.ts";
import type { ServerProductId } from "../catalogue/catalogue.ts";
import { versionProblem } from "../catalogue/catalogue.ts";
import type { PoolBounds } from "./connection_pool.ts";
import { resolvePoolBounds } from "./connection_pool.ts";
import { checkSchema } from "./schema.ts";
import type { SqlConnection } from "./sql_connection.ts";
import { SqlDatabase } from "./sql_database.ts";
import type { SqlDialect } from "./sql_dialect.ts";

/** PEM files for TLS to a server, read for each connection. */
export interface SqlTls {
  /** Authorities that may issue the server's certificate. Absent: those that the runtime trusts. */
  readonly cafile?: string | undefined;
  /** Client certificate with its chain. */
  readonly certfile?: string | undefined;
  /** Key of the client certificate. */
  readonly keyfile?: string | undefined;
}

/** A password that is not shown when its object is printed. */
export interface SqlPassword {
  reveal(): string;
}

/** Contents of the files of `SqlTls`, under the names that the drivers give them. */
export interface TlsMaterial {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/**
 * Reads and checks the files of `tls`.
 *
 * @throws CausewayError `storage/tls-file`, which names a file that cannot be used; files may be
 * replaced while a node runs, so a later attempt makes sense
 */
export async function readTls({ cafile, certfile, keyfile }: SqlTls): Promise<TlsMaterial> {
  const ca = cafile === undefined ? undefined : await readPem(cafile, certificatesIn);
  if (certfile === undefined) return ca === undefined ? {} : { ca: ca.join("\n") };
  const cert = (await readPem(certfile, certificatesIn)).join("\n");
  const key = await readPem(keyfile ?? certfile, privateKeyIn);
  if (!belongsTo(key, cert)) {
    throw unusable(keyfile ?? certfile, `it does not belong to the certificate ${certfile}`);
  }
  return { ...(ca === undefined ? {} : { ca: ca.join("\n") }), cert, key };
}

async function readPem<T>(file: string, parse: (text: string) => T): Promise<T> {
  try {
    return parse(await Deno.readTextFile(file));
  } catch (thrown) {
    throw unusable(file, describeFileError(thrown), thrown);
  }
}

function unusable(file: string, why: string, cause?: unknown): CausewayError {
  return new CausewayError("storage/tls-file", `Cannot use TLS file ${file}: ${why}`, {
    cause,
    retryable: true,
  });
}

/** Server, database and login. */
export interface SqlAddress {
  /** Name or address; an absolute path names a Unix socket, or the directory of PostgreSQL's. */
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly username: string;
  /** Empty: no password. */
  readonly password: SqlPassword;
  /** Absent: no TLS. Otherwise the server's certificate must name `host`. */
  readonly tls?: SqlTls | undefined;
  /** Version of the protocol of SQL Server, such as `7.4`. @default the newest */
  readonly tdsVersion?: string | undefined;
  /** Product of the server, where the configuration names it and its engine serves several. */
  readonly product?: ServerProductId | undefined;
}

/** One SQL engine that is reached over the network. */
export interface SqlEngine {
  readonly dialect: SqlDialect;
  /** For messages: `PostgreSQL`. */
  readonly name: string;
  /** Names of its products, for messages about a server of which the product is known. */
  readonly productNames?: Readonly<Partial<Record<ServerProductId, string>>>;
  /**
   * Opens a connection, logs in, and makes the settings of the session: the server ends statements
   * and transactions by itself after `statementTimeoutMs`, whose client may be gone.
   */
  connect(address: SqlAddress, limits: SessionLimits): Promise<SqlConnection>;
}

/** Time limits of a session. */
export type SessionLimits = Pick<Required<PoolBounds>, "connectTimeoutMs" | "statementTimeoutMs">;

/** Options of a database at a server. */
export interface SqlServerOptions {
  readonly engine: SqlEngine;
  readonly address: SqlAddress;
  /** Name of its pool, such as `rdbms.default`. */
  readonly pool: string;
  readonly bounds?: PoolBounds;
}

/**
 * Returns the name of a database in messages: without its password.
 *
 * @param product what the server says that it is. Default: what the configuration says
 */
export function placeOf(
  { engine, address, pool }: SqlServerOptions,
  product: ServerProductId | undefined = address.product,
): string {
  const { host, port, database } = address;
  const server = host.startsWith("/") ? host : `${host}:${port}`;
  const name = product === undefined ? undefined : engine.productNames?.[product];
  return `the database ${pool} (${name ?? engine.name} ${database} at ${server})`;
}

/**
 * Opens a connection to a server whose version is served, whatever its schema.
 *
 * @throws CausewayError `storage/server-too-old`; otherwise what the driver throws
 */
export async function connectToServer(options: SqlServerOptions): Promise<SqlConnection> {
  const { engine, address, bounds } = options;
  const connection = await engine.connect(address, resolvePoolBounds(bounds));
  try {
    const { product, version } = await engine.dialect.serverVersion(connection);
    const problem = versionProblem(product, version);
    if (problem === undefined) return connection;
    throw new CausewayError(
      "storage/server-too-old",
      `Cannot use ${placeOf(options, product)}: ${problem}`,
    );
  } catch (thrown) {
    connection.destroy();
    throw thrown;
  }
}

/**
 * Makes the database of a pool. It connects at need, and each new connection is asked for its
 * server's version and its schema first: a database that was replaced behind our back is noticed.
 */
export function sqlServerDatabase(options: SqlServerOptions): SqlDatabase {
  const place = placeOf(options);
  const { dialect } = options.engine;
  const database: SqlDatabase = new SqlDatabase({
    dialect,
    place,
    connect: async () => {
      const connection = await connectToServer(options);
      try {
        database.schemaVersion = await checkSchema(dialect, connection, place);
        return connection;
      } catch (thrown) {
        connection.destroy();
        throw thrown;
      }
    },
    ...(options.bounds === undefined ? {} : { bounds: options.bounds }),
  });
  return database;
}
