import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openSqlite, SQLITE, SqliteConnection } from "../engines/sqlite.ts";
import { prepareSchema } from "../schema.ts";
import { SqlDatabase } from "../sql_database.ts";

/** Runs `work` with the path of a file in a directory of its own. */
export async function withPath(work: (path: string) => Promise<void> | void): Promise<void> {
  const directory = await Deno.makeTempDir({ prefix: "causeway-store-" });
  try {
    await work(join(directory, "store.sqlite"));
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

/** A store whose database the test holds too, to break it. */
export class BreakableStore implements AsyncDisposable {
  readonly raw: DatabaseSync;
  readonly database: SqlDatabase;

  private constructor(raw: DatabaseSync, database: SqlDatabase) {
    this.raw = raw;
    this.database = database;
  }

  /** Opens a file with the present schema. */
  static async open(path = ":memory:"): Promise<BreakableStore> {
    if (path !== ":memory:") openSqlite({ path, busyTimeoutMs: 0 }, path).destroy();
    const raw = new DatabaseSync(path);
    const connection = new SqliteConnection(raw);
    await prepareSchema(SQLITE, connection, path);
    const database = new SqlDatabase({
      dialect: SQLITE,
      place: `the built-in store ${path}`,
      connect: () => Promise.resolve(connection),
      bounds: { workers: 1, statementTimeoutMs: Infinity },
    });
    return new BreakableStore(raw, database);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.database.close();
    if (this.raw.isOpen) this.raw.close();
  }
}
