import { Buffer } from "node:buffer";
import { once } from "node:events";
import { connect } from "node:net";
import type { Socket } from "node:net";
import type { Connection, ConnectionConfiguration, Request } from "tedious";
import type { SqlConnection, SqlResult, SqlRow } from "../sql_connection.ts";
import type { SessionLimits, SqlAddress } from "../sql_server.ts";
import { readTls } from "../sql_server.ts";

type Driver = typeof import("tedious");

/** Longest value that is not declared as `varbinary(max)`. */
const MAX_SHORT_BYTES = 8000;
/** Milliseconds in which the driver reads what a server said before it hung up. */
const LAST_WORD_MS = 250;
/** Versions of the protocol, as ODBC entries and the driver name them. */
const TDS_VERSIONS: ReadonlyMap<string, string> = new Map([
  ["7.2", "7_2"],
  ["7.3", "7_3_B"],
  ["7.4", "7_4"],
]);

/** Versions of the protocol that a pool may ask for. Older ones have no `VARBINARY(MAX)`. */
export const TDS_VERSION_NAMES: readonly string[] = [...TDS_VERSIONS.keys()];

/** A failure of the login, with the number that the driver drops. */
class LoginError extends Error {
  override readonly name = "LoginError";
  readonly number: number;

  constructor(message: string, number: number, cause: unknown) {
    super(message, { cause });
    this.number = number;
  }
}

/** One session at a SQL Server. */
export class MssqlConnection implements SqlConnection {
  readonly #driver: Driver;
  readonly #connection: Connection;
  readonly #ended = Promise.withResolvers<void>();
  #isOpen = true;

  private constructor(driver: Driver, connection: Connection) {
    this.#driver = driver;
    this.#connection = connection;
    // Without a listener, a connection that is lost while idle would end the process.
    connection.on("error", () => this.#isOpen = false);
    connection.on("end", () => {
      this.#isOpen = false;
      this.#ended.resolve();
    });
  }

  static async open(address: SqlAddress, limits: SessionLimits): Promise<MssqlConnection> {
    const { tls } = address;
    const material = tls === undefined ? undefined : await readTls(tls);
    // Loaded at need: most commands and many nodes use no such server.
    const driver = (await import("tedious")).default as unknown as Driver;
    const phase: Phase = { isLoggingIn: true };
    const options = configurationOf(address, limits, material, phase);
    const connection = new MssqlConnection(driver, new driver.Connection(options));
    try {
      await connection.#connected();
      phase.isLoggingIn = false;
      await connection.#makeSettings(limits);
      return connection;
    } catch (thrown) {
      connection.destroy();
      throw thrown;
    }
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  execute(sql: string, values: readonly unknown[] = []): Promise<SqlResult> {
    const { promise, resolve, reject } = Promise.withResolvers<SqlResult>();
    const rows: SqlRow[] = [];
    let hasRows = false;
    const request: Request = new this.#driver.Request(sql, (error, rowCount) => {
      if (error) reject(error);
      else resolve({ rows, affectedRows: hasRows ? 0 : rowCount ?? 0 });
    });
    request.on("columnMetadata", () => hasRows = true);
    request.on("row", (columns: readonly Column[]) => {
      rows.push(
        Object.fromEntries(columns.map(({ metadata, value }) => [metadata.colName, value])),
      );
    });
    if (values.length === 0) this.#connection.execSqlBatch(request);
    else {
      for (const [index, value] of values.entries()) this.#addParameter(request, index + 1, value);
      this.#connection.execSql(request);
    }
    return promise;
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    this.#connection.close();
    await this.#ended.promise;
  }

  destroy(): void {
    this.#isOpen = false;
    this.#connection.close();
  }

  /** Declares types by the kind of value alone, so that the server keeps one plan for a statement. */
  #addParameter(request: Request, number: number, value: unknown): void {
    const { TYPES } = this.#driver;
    const name = String(number);
    if (value instanceof Uint8Array) {
      const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
      const length = bytes.length <= MAX_SHORT_BYTES ? MAX_SHORT_BYTES : Infinity;
      request.addParameter(name, TYPES.VarBinary, bytes, { length });
    } else if (typeof value === "number" && !Number.isInteger(value)) {
      request.addParameter(name, TYPES.Float, value);
    } else if (typeof value === "number" || typeof value === "bigint") {
      request.addParameter(name, TYPES.BigInt, value);
    } else if (value === null || value === undefined) {
      // Becomes any of the types that our columns have.
      request.addParameter(name, TYPES.VarBinary, null, { length: MAX_SHORT_BYTES });
    } else {
      const length = String(value).length <= MAX_SHORT_BYTES / 2 ? MAX_SHORT_BYTES / 2 : Infinity;
      request.addParameter(name, TYPES.NVarChar, String(value), { length });
    }
  }

  async #connected(): Promise<void> {
    let refusal: { readonly number: number; readonly message: string } | undefined;
    const note = (token: NonNullable<typeof refusal>) => refusal ??= token;
    this.#connection.on("errorMessage", note);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#connection.connect((error) => error ? reject(error) : resolve());
    try {
      await promise;
    } catch (thrown) {
      if (refusal === undefined) throw thrown;
      throw new LoginError(refusal.message, refusal.number, thrown);
    } finally {
      this.#connection.off("errorMessage", note);
    }
  }

  async #makeSettings({ statementTimeoutMs }: SessionLimits): Promise<void> {
    await this.execute(`SET LOCK_TIMEOUT ${Math.ceil(statementTimeoutMs * 0.75)}`);
  }
}

/** A value of a row, as the driver gives it. */
interface Column {
  readonly metadata: { readonly colName: string };
  readonly value: unknown;
}

function configurationOf(
  address: SqlAddress,
  { connectTimeoutMs, statementTimeoutMs }: SessionLimits,
  material: Awaited<ReturnType<typeof readTls>> | undefined,
  phase: Phase,
): ConnectionConfiguration {
  const { host, database, username, password, tls, tdsVersion } = address;
  return {
    server: host,
    authentication: {
      type: "default",
      options: { userName: username, password: password.reveal() },
    },
    options: {
      connector: () => connectSocket(address, connectTimeoutMs, phase),
      database,
      appName: "causeway",
      connectTimeout: connectTimeoutMs,
      // The client cancels before it would cut the connection, so that the session goes on.
      requestTimeout: Math.ceil(statementTimeoutMs * 0.9),
      cancelTimeout: statementTimeoutMs,
      tdsVersion: TDS_VERSIONS.get(tdsVersion ?? "7.4")!, // the configuration has checked it
      encrypt: tls !== undefined,
      trustServerCertificate: false,
      ...(material === undefined ? {} : { cryptoCredentialsDetails: { ...material } }),
      // The driver's own pauses would hide that a server is gone; the pool makes them.
      maxRetriesOnTransientErrors: 0,
      // What fails in the middle of a transaction ends it at the server too.
      abortTransactionOnError: true,
      // Plans are the same for every session, and comparisons as the standard has them.
      enableArithAbort: true,
      useUTC: true,
    },
  };
}

/** The session above a socket, as the socket has to know it. */
interface Phase {
  isLoggingIn: boolean;
}

/**
 * Opens a socket that tells of its end a little late during the login. A server says why it refuses a
 * login and hangs up, and the driver forgets what it was told once it sees the end.
 */
async function connectSocket(
  { host, port }: SqlAddress,
  timeoutMs: number,
  phase: Phase,
): Promise<Socket> {
  const socket = connect({ host, port });
  try {
    await once(socket, "connect", { signal: AbortSignal.timeout(timeoutMs) });
  } catch (thrown) {
    socket.destroy();
    throw thrown;
  }
  const emit = socket.emit.bind(socket);
  socket.emit = (event: string | symbol, ...values: unknown[]) => {
    if (event !== "end" || !phase.isLoggingIn) return emit(event, ...values);
    const timer = setTimeout(() => emit(event, ...values), LAST_WORD_MS);
    socket.once("close", () => clearTimeout(timer));
    return true;
  };
  return socket;
}
