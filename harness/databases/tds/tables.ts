import { Buffer } from "node:buffer";
import { DatabaseSync } from "node:sqlite";
import type { SQLOutputValue } from "node:sqlite";
import type { IndexDefinition, TableDefinition } from "./definitions.ts";
import { keySizeStatements, kindOf, MAX_LENGTH, tableStatement } from "./definitions.ts";
import { TdsError } from "./tds_error.ts";
import type { ResultColumn } from "./tokens.ts";
import type { Catalogue } from "./translate.ts";
import type { ColumnType, Parameter, TdsValue, ValueKind } from "./values.ts";

/** Result of one statement. */
export interface Outcome {
  /** Absent: a statement without rows. */
  readonly columns?: readonly ResultColumn[];
  readonly rows?: readonly (readonly TdsValue[])[];
  /** Rows read or changed; absent for statements that count none. */
  readonly count?: number;
}

/** Facts about a session and its server that functions of T-SQL tell. */
export interface Surroundings {
  serverProperty(name: string): string | null;
  databaseId(name?: string): number | null;
  databaseName(): string;
}

/** Tables about the server, each with its columns. */
export const SYSTEM_TABLES = {
  tables: "name nvarchar(128), schema_id int",
  indexes: "name nvarchar(128), object_id int",
  databases: "name nvarchar(128), database_id int, is_read_committed_snapshot_on bit, " +
    "is_read_only bit",
  dm_exec_sessions: "session_id int, login_name nvarchar(128), database_id int",
  dm_exec_requests: "session_id int, database_id int, wait_type nvarchar(60)",
} as const;

export type SystemTable = keyof typeof SYSTEM_TABLES;
const [MAX_KEY_BYTES, MAX_INDEX_BYTES, MAX_OLD_INDEX_BYTES] = [900, 1700, 900];

/** The tables of one database as one session sees them: SQLite does the work. */
export class SessionTables implements Catalogue {
  readonly #database: DatabaseSync;
  readonly #hasLongIndexes: boolean;

  constructor(path: string, surroundings: Surroundings, hasLongIndexes: boolean) {
    this.#database = new DatabaseSync(path);
    this.#hasLongIndexes = hasLongIndexes;
    const functions: Record<string, (...values: SQLOutputValue[]) => TdsValue> = {
      serverproperty: (name) => surroundings.serverProperty(String(name)),
      db_id: (name) => bigintOf(surroundings.databaseId(name === undefined ? name : String(name))),
      db_name: () => surroundings.databaseName(),
      schema_id: () => 1n,
      object_id: (name) => this.definition(String(name)) === undefined ? null : 1n,
      replicate: (text, count) => String(text).repeat(Number(count)),
      tds_hex: (text, length) => hexOf(String(text), Number(length)),
    };
    for (const [name, call] of Object.entries(functions)) {
      this.#database.function(name, { varargs: true, useBigIntArguments: true }, call);
    }
    this.#database.exec(
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA busy_timeout = 20000;" +
        "CREATE TABLE IF NOT EXISTS tds_definitions (name TEXT PRIMARY KEY, is_index INTEGER, " +
        "definition TEXT);" +
        Object.entries(SYSTEM_TABLES).map(([name, columns]) =>
          `CREATE TEMP TABLE sys_${name} (${columns});`
        ).join(""),
    );
  }

  close(): void {
    this.#database.close();
  }

  /** Runs a statement of SQLite's own, such as BEGIN. */
  run(sql: string): void {
    this.#database.exec(sql);
  }

  kindsOf(column: string): ReadonlySet<ValueKind> {
    const kinds = new Set<ValueKind>();
    for (const table of this.#definitions<TableDefinition>(false)) {
      for (const { name, type } of table.columns) if (name === column) kinds.add(kindOf(type));
    }
    return kinds;
  }

  definition(name: string): TableDefinition | undefined {
    return this.#definitions<TableDefinition>(false).find((each) => each.name === name);
  }

  /** Fills a table about the server. */
  fill(table: SystemTable, rows: readonly (readonly (string | number | null)[])[]): void {
    this.#database.exec(`DELETE FROM sys_${table}`);
    for (const row of rows) {
      const marks = row.map(() => "?").join(", ");
      this.#database.prepare(`INSERT INTO sys_${table} VALUES (${marks})`).run(...row);
    }
  }

  tableNames(): readonly string[] {
    return this.#definitions<TableDefinition>(false).map(({ name }) => name);
  }

  indexNames(): readonly string[] {
    return this.#definitions<IndexDefinition>(true).map(({ name }) => name);
  }

  /** Runs a translated statement. @throws TdsError */
  query(sql: string, parameters: readonly Parameter[]): Outcome {
    try {
      const statement = this.#database.prepare(sql);
      statement.setReadBigInts(true);
      statement.setAllowUnknownNamedParameters(true);
      const values = Object.fromEntries(
        parameters.map(({ name, value }) => [`p_${name.toLowerCase()}`, value]),
      );
      const described = statement.columns();
      if (described.length === 0) return { count: Number(statement.run(values).changes) };
      const found = statement.all(values);
      const columns = described.map(({ name, type }) => ({
        name,
        type: typeOf(type) ?? this.#expressionType(sql, name, found.map((row) => row[name]!)),
      }));
      const rows = found.map((row) => columns.map(({ name }) => row[name] as TdsValue));
      return { columns, rows, count: rows.length };
    } catch (thrown) {
      throw errorOf(thrown);
    }
  }

  addTable(table: TableDefinition): void {
    this.#guarded(() => {
      this.#database.exec(tableStatement(table));
      this.#remember(table.name, false, table);
      this.#boundKeys(table);
    });
  }

  /** Puts another definition in the place of a table's, and keeps its rows. */
  changeTable(table: TableDefinition): void {
    this.#guarded(() => {
      const old = this.definition(table.name)!; // the caller has read it
      const kept = old.columns.filter(({ name }) =>
        table.columns.some((each) => each.name === name)
      )
        .map(({ name }) => `"${name}"`).join(", ");
      this.#database.exec(
        `${tableStatement(table, "tds_new")}; INSERT INTO tds_new (${kept}) SELECT ${kept} FROM ` +
          `"${table.name}"; DROP TABLE "${table.name}"; ALTER TABLE tds_new RENAME TO "${table.name}"`,
      );
      this.#remember(table.name, false, table);
      this.#boundKeys(table);
      for (const index of this.#indexesOf(table.name)) this.#makeIndex(index);
    });
  }

  dropTable(name: string): void {
    if (this.definition(name) === undefined) {
      throw new TdsError(3701, `Cannot drop the table '${name}', because it does not exist.`, 11);
    }
    this.#guarded(() => {
      this.#database.exec(`DROP TABLE "${name}"`);
      for (const index of this.#indexesOf(name)) this.#forget(index.name);
      this.#forget(name);
    });
  }

  addIndex(index: IndexDefinition): void {
    if (this.definition(index.table) === undefined) {
      throw new TdsError(1088, `Cannot find the object "${index.table}".`);
    }
    this.#guarded(() => {
      this.#makeIndex(index);
      this.#remember(index.name, true, index);
    });
  }

  dropIndex(name: string): void {
    this.#guarded(() => this.#database.exec(`DROP INDEX "${name}"`));
    this.#forget(name);
  }

  #makeIndex({ name, table, columns, isUnique }: IndexDefinition): void {
    const keys = columns.map((each) => `"${each}"`).join(", ");
    const definition = this.definition(table)!; // the caller has found it
    const mostBytes = this.#hasLongIndexes ? MAX_INDEX_BYTES : MAX_OLD_INDEX_BYTES;
    this.#database.exec(
      `CREATE ${isUnique ? "UNIQUE " : ""}INDEX "${name}" ON "${table}" (${keys})`,
    );
    for (const sql of keySizeStatements(definition, { name, columns, mostBytes })) {
      this.#database.exec(sql);
    }
  }

  #boundKeys(table: TableDefinition): void {
    const bound = {
      name: `${table.name}_key`,
      columns: table.primaryKey,
      mostBytes: MAX_KEY_BYTES,
    };
    for (const sql of keySizeStatements(table, bound)) this.#database.exec(sql);
  }

  #indexesOf(table: string): readonly IndexDefinition[] {
    return this.#definitions<IndexDefinition>(true).filter((each) => each.table === table);
  }

  #definitions<T>(isIndex: boolean): readonly T[] {
    return this.#database.prepare("SELECT definition FROM tds_definitions WHERE is_index = ?")
      .all(isIndex ? 1 : 0).map(({ definition }) => JSON.parse(String(definition), revived) as T);
  }

  #remember(name: string, isIndex: boolean, definition: unknown): void {
    this.#database.prepare("INSERT OR REPLACE INTO tds_definitions VALUES (?, ?, ?)")
      .run(name, isIndex ? 1 : 0, JSON.stringify(definition, kept));
  }

  #forget(name: string): void {
    this.#database.prepare("DELETE FROM tds_definitions WHERE name = ?").run(name);
  }

  #guarded(work: () => void): void {
    try {
      work();
    } catch (thrown) {
      throw errorOf(thrown);
    }
  }

  /** Returns the type of what is no column: as large as the server's would be. */
  #expressionType(sql: string, name: string, values: readonly SQLOutputValue[]): ColumnType {
    const some = values.find((value) => value !== null);
    if (some instanceof Uint8Array) return { kind: "binary", maxBytes: Infinity };
    if (typeof some === "string") return { kind: "text", maxUnits: Infinity };
    if (typeof some === "number") return { kind: "float" };
    // The smallest or largest of a column, or the sum of one, has the type of the column.
    const aggregate = /(?:min|max|sum)\s*\(\s*(?:"\w+"\s*\.\s*)?"(\w+)"\s*\) AS "(\w+)"/gi;
    for (const [, column, alias] of sql.matchAll(aggregate)) {
      if (alias !== name) continue;
      const types = this.#definitions<TableDefinition>(false).flatMap(({ columns }) => columns)
        .filter((each) => each.name === column).map(({ type }) => type.name);
      if (types.includes("bigint")) return { kind: "bigint" };
    }
    // The server's clock is the one expression that a statement converts to BIGINT (`translate.ts`).
    if (/\bunixepoch\(\)/.test(sql)) return { kind: "bigint" };
    return { kind: "int" };
  }
}

/** Returns the type that a column was declared with; undefined for what is no column. */
function typeOf(declared: string | null | undefined): ColumnType | undefined {
  const [, name, length] = /^(\w+)(?:\((\w+)\))?$/.exec(declared?.toLowerCase() ?? "") ?? [];
  const most = Number(length) === MAX_LENGTH ? Infinity : Number(length);
  switch (name) {
    case "int":
    case "bigint":
    case "bit":
      return { kind: name };
    case "integer": // a column that counts by itself
      return { kind: "bigint" };
    case "binary":
    case "varbinary":
      return { kind: "binary", maxBytes: most };
    case "char":
    case "varchar":
    case "nvarchar":
      return { kind: "text", maxUnits: most };
    default:
      return undefined;
  }
}

/** Returns the error that the server would give for one of SQLite's. */
function errorOf(thrown: unknown): TdsError {
  if (thrown instanceof TdsError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  const [, ownNumber] = /tds:(\d+):/.exec(message) ?? [];
  if (ownNumber !== undefined) return new TdsError(Number(ownNumber), `Refused: ${message}`);
  for (const [pattern, number, severity] of SQLITE_ERRORS) {
    const [, name = ""] = pattern.exec(message) ?? [];
    if (pattern.test(message)) return new TdsError(number, `${message} ('${name}')`, severity);
  }
  return new TdsError(102, `Incorrect syntax, as SQLite says: ${message}`, 15);
}

const SQLITE_ERRORS: readonly (readonly [RegExp, number, number])[] = [
  [/UNIQUE constraint failed: (.*)/, 2627, 14],
  [/NOT NULL constraint failed: (.*)/, 515, 16],
  [/no such table: (.*)/, 208, 16],
  [/no such column: (.*)/, 207, 16],
  [/has no column named (.*)/, 207, 16],
  [/already exists/, 2714, 16],
  [/values supplied|values for \d+ columns/, 213, 16],
];

function hexOf(digits: string, length: number): Uint8Array {
  const bytes = new Uint8Array(Buffer.from(digits, "hex"));
  if (length < 0) return bytes;
  const whole = new Uint8Array(length);
  whole.set(bytes.subarray(0, length));
  return whole;
}

function bigintOf(value: number | null): bigint | null {
  return value === null ? null : BigInt(value);
}

// JSON has no Infinity, the length of types with MAX.

function kept(_: string, value: unknown): unknown {
  return value === Infinity ? "max" : value;
}

function revived(key: string, value: unknown): unknown {
  return key === "length" && value === "max" ? Infinity : value;
}
