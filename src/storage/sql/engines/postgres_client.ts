import { EventEmitter } from "node:events";
import type { Buffer } from "node:buffer";
// @ts-types="@types/pg"
import pg from "pg";
import type { ClientConfig, FieldDef, QueryConfig, QueryResult } from "pg";
import type { SqlRow } from "../sql_connection.ts";
import type { MessageRun } from "./postgres_messages.ts";
import { MessageRuns, readRows } from "./postgres_messages.ts";
import { ResultShape } from "./postgres_rows.ts";

/** A function that the driver calls at the end of a query. */
type Callback = (error: Error | null | undefined, result: QueryResult) => void;

/** The driver's connection, with methods that its types leave out. */
const DriverConnection = pg.Connection as unknown as new (config: ClientConfig) => pg.Connection & {
  /** Makes it read a socket. */
  attachListeners(socket: EventEmitter): void;
  describe(portal: unknown): void;
};

/** The driver's query, with what its types leave out. */
const DriverQuery = pg.Query as unknown as new (
  config: QueryConfig,
  callback: Callback,
) => pg.Query & {
  readonly name?: string;
  /** Error to be reported at the end instead of the result. */
  _canceledDueToError: unknown;
  /** Sends it as a statement with values. */
  prepare(connection: RowsConnection): void;
  handleRowDescription(description: { readonly fields: readonly FieldDef[] }): void;
  handleDataRow(run: MessageRun): void;
};

/** Outcome of a statement. */
export interface PostgresResult extends Pick<QueryResult, "command" | "rowCount"> {
  readonly rows: readonly SqlRow[];
}

/** A client of the driver that reads rows by `readRows`. Its statements are to be run by `run` alone. */
export class PostgresClient extends pg.Client {
  constructor(config: ClientConfig) {
    const withConnection = { ...config, connection: new RowsConnection(config) };
    super(withConnection);
  }

  /** Runs one statement. */
  run(config: QueryConfig): Promise<PostgresResult> {
    return new Promise((resolve, reject) => {
      // A promise of the driver, and all that belongs to the statement, would outlive each minor
      // garbage collection.
      const query = new RowsQuery(config, (error, result) => {
        if (error) reject(error);
        else resolve({ command: result.command, rowCount: result.rowCount, rows: query.read });
      });
      this.query(query);
    });
  }
}

/** A connection of the driver that hands on rows by runs of whole messages. */
class RowsConnection extends DriverConnection {
  /** Columns of the results of prepared statements, by the statements' names. */
  readonly shapes = new Map<string, ResultShape>();
  /** False: the server is not asked for the columns of the statement that is being sent. */
  asksForColumns = true;

  override attachListeners(socket: EventEmitter): void {
    const runs = new MessageRuns();
    // The driver reads the other messages from here instead of from the socket.
    const others = new EventEmitter();
    super.attachListeners(others);
    socket.on("data", (chunk: Buffer) => {
      for (const run of runs.push(chunk)) {
        if (run.isRows) this.emit("dataRow", run);
        else others.emit("data", run.bytes);
      }
    });
  }

  override describe(portal: unknown): void {
    if (this.asksForColumns) super.describe(portal);
  }
}

/**
 * A query of the driver that reads its rows itself, and asks for the columns of a prepared statement only
 * once: a session of the server refuses to execute one whose result would have others by now. (A pooler may
 * go on in another session, where that is not seen: a statement whose columns change their types needs
 * another name.) The driver decodes each value by a call of its own, raises two events for each row, and
 * sets each column by its name.
 */
class RowsQuery extends DriverQuery {
  readonly read: SqlRow[] = [];
  #shape = ResultShape.NONE;
  #connection: RowsConnection | undefined;

  override prepare(connection: RowsConnection): void {
    const shape = this.name === undefined ? undefined : connection.shapes.get(this.name);
    if (shape !== undefined) this.#shape = shape;
    this.#connection = connection;
    connection.asksForColumns = shape === undefined;
    super.prepare(connection);
  }

  override handleRowDescription({ fields }: { readonly fields: readonly FieldDef[] }): void {
    if (this.name === undefined) {
      this.#shape = ResultShape.of(fields);
    } else {
      this.#shape = ResultShape.ofPrepared(fields);
      this.#connection?.shapes.set(this.name, this.#shape);
    }
  }

  override handleDataRow({ bytes }: MessageRun): void {
    if (this._canceledDueToError) return;
    try {
      readRows(bytes, (texts) => void this.read.push(this.#shape.rowOf(texts)));
    } catch (thrown) {
      this._canceledDueToError = thrown;
    }
  }
}
