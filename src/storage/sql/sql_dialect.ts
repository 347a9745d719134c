import type { QueryCompiler, RawBuilder } from "kysely";
import type { ServerProductId } from "../catalogue/catalogue.ts";
import type { StorageFailure } from "../storage_error.ts";
import type { ArchiveStep } from "./archive_step.ts";
import type { SqlConnection } from "./sql_connection.ts";
import type { TextSearch } from "./text_search.ts";

/** A schema file as shipped: one version of the tables, or the table of versions (version 0). */
export interface SchemaFile {
  readonly version: number;
  /** Its text: statements that end with `;` at the end of a line, and comments. */
  readonly text: string;
}

/** Returns the schema of an engine from the texts of its files: each text's place is its version. */
export function schemaFiles(texts: readonly string[]): readonly SchemaFile[] {
  return texts.map((text, version) => ({ version, text }));
}

/** Version of the server that a connection leads to. */
export interface ServerVersion {
  /** MariaDB and MySQL share a dialect; the server says which it is. */
  readonly product: ServerProductId;
  /** Such as `8.0.31`. */
  readonly version: string;
}

/** A query that can be limited to its first rows. */
interface Limited<Q> {
  limit(count: unknown): Q;
  top(count: number): Q;
}

/** Everything in which one SQL engine differs from the others. */
export interface SqlDialect {
  readonly name: "sqlite" | "pgsql" | "mysql" | "mssql";
  /** Files of the schema, by version; the first is that of the table of versions. */
  readonly schema: readonly SchemaFile[];
  /** True when changes of tables take part in transactions. */
  readonly hasTransactionalSchema: boolean;
  /** Statement that begins a transaction that will change rows. */
  readonly begin: string;
  /** Statement that ends it and keeps its changes. */
  readonly commit: string;
  /** Statement that ends it and drops its changes. */
  readonly rollback: string;
  /** Makes the part of Kysely that writes statements for this engine. */
  compiler(): QueryCompiler;
  /** Limits a query to its first `count` rows. */
  limit<Q>(query: Limited<Q>, count: number): Q;
  /**
   * Returns a hint for the front of a query that reads rows of a table in the order of its primary key.
   * @default the engine sees by itself that it need not sort them
   */
  byKey?(table: string): RawBuilder<unknown>;
  /** Wall clock of the server in milliseconds, or in whole seconds where it counts no parts. */
  readonly clockMs: RawBuilder<number>;
  /**
   * Text that no other database of these tables has, whatever address leads there. It may change when
   * the server starts. @default nothing tells two databases apart
   */
  readonly identity?: RawBuilder<unknown>;
  /**
   * Way to lock rows that a transaction reads until its end: the transaction has locked everything
   * already, `FOR UPDATE`, or a change of the rows that changes nothing.
   */
  readonly rowLocks: "transaction" | "for-update" | "update";
  /** Function that returns the number of bytes in a column of bytes. */
  readonly byteLength: string;
  /** Finds archived messages by words. @default they are not searched */
  readonly textSearch?: TextSearch;
  /** Adds messages to archives by one statement. @default a transaction of several does */
  readonly archiveStep?: ArchiveStep;
  /** True when the database has the index behind `textSearch`. @default it always has */
  hasTextIndex?(connection: SqlConnection): Promise<boolean>;
  /** Returns the value to store in a column of text. */
  text(value: string): string | Uint8Array;
  /**
   * Names a failure by what the driver threw. `"constraint"`: a row with that key exists already.
   * Undefined: a failure without a name.
   */
  failureOf(thrown: unknown): StorageFailure | "constraint" | undefined;
  /**
   * True when a statement of the schema failed because what it adds is there already: a crash came
   * between the statement and the note that it was done. @default never, as with transactions
   */
  wasDone?(thrown: unknown): boolean;
  /** Asks the server for its version. */
  serverVersion(connection: SqlConnection): Promise<ServerVersion>;
  /** Lists the tables of the database, in lower case. */
  tables(connection: SqlConnection): Promise<ReadonlySet<string>>;
  /** Lists the indexes of the database, in lower case. */
  indexes(connection: SqlConnection): Promise<ReadonlySet<string>>;
  /**
   * Keeps other processes from changing the schema until the transaction or the session ends.
   * Called within the transaction where the schema is transactional.
   */
  lockSchema(connection: SqlConnection): Promise<void>;
  /**
   * Returns the statements that make transactions read what was committed last instead of waiting
   * for each other. Absent: the engine always does.
   */
  isolationFix?(connection: SqlConnection): Promise<readonly string[]>;
  /** Lists what is wrong with the settings of the server, one finding each. */
  settingProblems(connection: SqlConnection): Promise<readonly string[]>;
}

/** Returns the text of a column that `SqlDialect.text` wrote. */
export function textOf(value: string | Uint8Array): string {
  return typeof value === "string" ? value : new TextDecoder().decode(value);
}

/**
 * Returns the bytes of a column, for the caller to keep. They are copied where the driver's own share
 * a larger buffer.
 */
export function bytesOf(value: Uint8Array): Uint8Array {
  const isWhole = value.constructor === Uint8Array && value.length === value.buffer.byteLength;
  return isWhole ? value : new Uint8Array(value);
}
