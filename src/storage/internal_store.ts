import { openSqlite, SQLITE } from "./sql/engines/sqlite.ts";
import { checkSchema, prepareSchema } from "./sql/schema.ts";
import { SqlDatabase } from "./sql/sql_database.ts";
import { SqlStores } from "./sql/sql_stores.ts";

/** Options of the built-in store. */
export interface InternalStoreOptions {
  /** Path of the file. A missing file is created, readable by its owner alone. */
  readonly path: string;
  /**
   * Milliseconds to wait while another process writes. The event loop stands still meanwhile.
   * @default 2000
   */
  readonly busyTimeoutMs?: number;
}

/**
 * Requests that wait while another one uses the file. SQLite answers within the turn of the event
 * loop, so they wait for no other process, and a burst of them is over at the end of that turn.
 */
const MAX_WAITING = 1_000_000;

/** Opening a file is bounded by SQLite's own time limit, so the pool's never strikes. */
const LONG_MS = 600_000;

/**
 * The built-in store: one SQLite file. Several processes may have it open, such as the nodes of one
 * machine and `causeway users`. Each process sees the other's writes with its next read.
 */
export class InternalStore extends SqlStores {
  readonly path: string;

  private constructor(path: string, database: SqlDatabase) {
    super(database);
    this.path = path;
  }

  /**
   * Opens the file, and brings it to the present schema.
   *
   * @throws CausewayError with a code `storage/…` when the file cannot be opened or is not a
   * Causeway store
   */
  static async open(options: InternalStoreOptions): Promise<InternalStore> {
    return new InternalStore(options.path, await openInternalDatabase(options));
  }
}

/**
 * Opens the file as a database, and brings it to the present schema.
 *
 * @throws as `InternalStore.open`
 */
export async function openInternalDatabase(
  { path, busyTimeoutMs = 2000 }: InternalStoreOptions,
): Promise<SqlDatabase> {
  const place = `the built-in store ${path}`;
  const database: SqlDatabase = new SqlDatabase({
    dialect: SQLITE,
    place,
    connect: async () => {
      const connection = openSqlite({ path, busyTimeoutMs }, place);
      try {
        await prepareSchema(SQLITE, connection, place);
        database.schemaVersion = await checkSchema(SQLITE, connection, place);
        return connection;
      } catch (thrown) {
        connection.destroy();
        throw thrown;
      }
    },
    bounds: {
      workers: 1,
      maxWaiting: MAX_WAITING,
      connectTimeoutMs: LONG_MS,
      statementTimeoutMs: Infinity,
    },
  });
  await database.open();
  return database;
}
