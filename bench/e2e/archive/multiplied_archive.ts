import { Buffer } from "node:buffer";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { createConnection } from "mysql2";
// @ts-types="@types/pg"
import pg from "pg";
import { keyOf } from "../../../src/storage/sql/keys.ts";
import { LARGE_ARCHIVE, PEERS, sentAtOf } from "./archive_messages.ts";
import type { ArchivePlace } from "./archive_protocol.ts";

/**
 * Messages that a large archive gets through the product, before the database itself copies them. A
 * multiple of the number of peers, so that every copy has messages of each.
 */
export const MULTIPLIED = 1_000 * PEERS;

/** Runs a statement. Each `$` and number in `sql` stands for a value. */
type Run = (sql: string, values: readonly (Buffer | number)[]) => Promise<void>;

interface Statements extends AsyncDisposable {
  readonly run: Run;
  /** Makes the database look at its tables, as it does by itself some time later. */
  readonly analyze: string;
}

const COPY = "INSERT INTO archive_messages (account_key, position, process, sequence, peer_key, " +
  "peer_resource, sent_at, visible_at, stanza) SELECT account_key, position + $1, process, " +
  "sequence + $2, peer_key, peer_resource, sent_at + $3, visible_at + $4, stanza " +
  "FROM archive_messages WHERE account_key = $5 AND position <= $6";

/**
 * Fills the large archive of an SQL database, which has the first messages, with copies of them: rows
 * as the product makes them, with all their indexes. Only the id within a stanza is that of the row
 * that was copied.
 *
 * @param entries messages that the archive has afterwards, a multiple of `MULTIPLIED`
 */
export async function multiplyArchive(
  place: ArchivePlace,
  entries: number,
  progress: (messages: number) => void,
): Promise<void> {
  await using statements = await connect(place);
  const { run, analyze } = statements;
  const key = keyOf(LARGE_ARCHIVE);
  for (let done = MULTIPLIED; done < entries; done += MULTIPLIED) {
    await run(COPY, [done, done, done, done, key, MULTIPLIED]);
    progress(done + MULTIPLIED);
  }
  await run("UPDATE archives SET last_position = $1, visible_at = $2 WHERE account_key = $3", [
    entries,
    sentAtOf(entries),
    key,
  ]);
  await run(analyze, []);
}

async function connect(place: ArchivePlace): Promise<Statements> {
  const { database, file, port, name, username, password } = place;
  const server = { host: "127.0.0.1", port, database: name, user: username, password };
  switch (database) {
    case "sqlite": {
      const sqlite = new DatabaseSync(file);
      sqlite.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
      return {
        run(sql, values) {
          sqlite.prepare(withMarks(sql)).run(...values);
          return Promise.resolve();
        },
        analyze: "SELECT 1", // it plans without statistics
        [Symbol.asyncDispose]() {
          sqlite.close();
          return Promise.resolve();
        },
      };
    }
    case "postgresql": {
      const client = new pg.Client(server);
      await client.connect();
      return {
        async run(sql, values) {
          // The server takes a sum's parameter for one of the column's type.
          await client.query(sql, [...values]);
        },
        analyze: "ANALYZE archive_messages",
        [Symbol.asyncDispose]: () => client.end(),
      };
    }
    case "mariadb":
    case "mysql": {
      const connection = createConnection(server);
      const execute = promisify<string, (Buffer | number)[], unknown>(
        (sql, values, done) => void connection.query(sql, values, done),
      );
      return {
        async run(sql, values) {
          await execute(withMarks(sql), [...values]);
        },
        analyze: "ANALYZE TABLE archive_messages",
        [Symbol.asyncDispose]: promisify((done: (error: unknown) => void) => connection.end(done)),
      };
    }
    default:
      throw new RangeError(`Cannot copy messages within ${database}: it has no SQL`);
  }
}

/** Places in the order of their numbers become question marks. */
function withMarks(sql: string): string {
  return sql.replaceAll(/\$\d/g, "?");
}
