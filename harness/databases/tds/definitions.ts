import { syntaxError, TdsError } from "./tds_error.ts";
import type { TokenReader } from "./transact_sql.ts";
import type { ValueKind } from "./values.ts";

/** Type of a column. `length`: bytes or characters; Infinity for MAX. */
export interface DataType {
  readonly name:
    | "int"
    | "bigint"
    | "bit"
    | "binary"
    | "varbinary"
    | "char"
    | "varchar"
    | "nvarchar";
  readonly length?: number;
}

export interface ColumnDefinition {
  readonly name: string;
  readonly type: DataType;
  readonly isNullable: boolean;
  readonly isIdentity: boolean;
  /** As SQLite has it. */
  readonly default?: string;
}

export interface TableDefinition {
  readonly name: string;
  readonly columns: readonly ColumnDefinition[];
  readonly primaryKey: readonly string[];
  readonly unique: readonly (readonly string[])[];
}

export interface IndexDefinition {
  readonly name: string;
  readonly table: string;
  readonly columns: readonly string[];
  readonly isUnique: boolean;
}

/** Length of MAX in the declarations that SQLite keeps. */
export const MAX_LENGTH = 2_147_483_647;

const KINDS: Readonly<Record<DataType["name"], ValueKind>> = {
  int: "integer",
  bigint: "integer",
  bit: "bit",
  binary: "binary",
  varbinary: "binary",
  char: "text",
  varchar: "text",
  nvarchar: "text",
};

export function kindOf(type: DataType): ValueKind {
  return KINDS[type.name];
}

/** Reads what follows `CREATE TABLE`. */
export function readTable(reader: TokenReader): TableDefinition {
  const name = reader.name();
  const columns: ColumnDefinition[] = [];
  const unique: (readonly string[])[] = [];
  let primaryKey: readonly string[] = [];
  reader.expect("(");
  do {
    if (reader.take("constraint")) reader.name();
    if (reader.take("primary", "key")) {
      primaryKey = readKey(reader);
      continue;
    }
    if (reader.take("unique")) {
      unique.push(readKey(reader));
      continue;
    }
    const { column, isKey, isUnique } = readColumn(reader);
    columns.push(column);
    if (isKey) primaryKey = [column.name];
    if (isUnique) unique.push([column.name]);
  } while (reader.take(","));
  reader.expect(")");
  reader.end();
  for (const each of primaryKey) {
    const column = columns.find((column) => column.name === each);
    if (column === undefined) throw noColumn(each);
    if (column.isNullable) {
      throw new TdsError(8111, `Cannot define PRIMARY KEY on nullable column in '${name}'.`);
    }
  }
  return { name, columns, primaryKey, unique };
}

/** Reads a column of a table: its name, its type, and what else is said of it. */
export function readColumn(reader: TokenReader) {
  const name = reader.name();
  const type = readType(reader);
  let [isNullable, isIdentity, isKey, isUnique] = [true, false, false, false];
  let fallback: string | undefined;
  for (;;) {
    if (reader.take("not", "null")) isNullable = false;
    else if (reader.take("null")) isNullable = true;
    else if (reader.take("identity")) {
      isIdentity = true;
      isNullable = false;
      if (reader.take("(")) reader.expect("1", ",", "1", ")");
    } else if (reader.take("primary", "key")) isKey = true;
    else if (reader.take("unique")) isUnique = true;
    else if (reader.take("default")) {
      const hasParentheses = reader.take("(");
      const token = reader.next();
      if (token.kind !== "number" && token.kind !== "binary") throw syntaxError(token.text);
      fallback = token.kind === "number" ? token.text : `X'${token.text.slice(2)}'`;
      if (hasParentheses) reader.expect(")");
    } else break;
  }
  const column: ColumnDefinition = {
    name,
    type,
    isNullable,
    isIdentity,
    ...(fallback === undefined ? {} : { default: fallback }),
  };
  return { column, isKey, isUnique };
}

function readType(reader: TokenReader): DataType {
  const { text } = reader.next();
  if (!(text in KINDS)) {
    throw new TdsError(2715, `Cannot find data type ${text}.`);
  }
  const name = text as DataType["name"]; // it is one of the keys
  if (name === "int" || name === "bigint" || name === "bit") return { name };
  let length = 1;
  if (reader.take("(")) {
    length = reader.take("max") ? Infinity : Number(reader.next().text);
    reader.expect(")");
  }
  const most = name === "nvarchar" ? 4000 : 8000;
  const mayBeMax = name !== "binary" && name !== "char";
  if (!(length >= 1 && (length <= most || (length === Infinity && mayBeMax)))) {
    throw new TdsError(131, `The size given to the type '${name}' is not allowed.`, 15);
  }
  return { name, length };
}

/** Reads what follows `CREATE [UNIQUE] INDEX`. */
export function readIndex(reader: TokenReader, isUnique: boolean): IndexDefinition {
  const name = reader.name();
  reader.expect("on");
  const table = reader.name();
  const columns = readKey(reader);
  if (reader.take("include")) readKey(reader);
  reader.end();
  return { name, table, columns, isUnique };
}

function readKey(reader: TokenReader): readonly string[] {
  if (!reader.take("clustered")) reader.take("nonclustered");
  reader.expect("(");
  const columns: string[] = [];
  do {
    columns.push(reader.name());
    if (!reader.take("asc")) reader.take("desc");
  } while (reader.take(","));
  reader.expect(")");
  return columns;
}

export function noColumn(name: string): TdsError {
  return new TdsError(207, `Invalid column name '${name}'.`);
}

/** Returns the statement that makes a table in SQLite, whose checks refuse what the types refuse. */
export function tableStatement(table: TableDefinition, name = table.name): string {
  const identity = table.columns.find(({ isIdentity }) => isIdentity);
  const columns = table.columns.map((column) => {
    if (column === identity) return `"${column.name}" INTEGER PRIMARY KEY AUTOINCREMENT`;
    const nullability = column.isNullable ? "" : " NOT NULL";
    const fallback = column.default === undefined ? "" : ` DEFAULT ${column.default}`;
    return `"${column.name}" ${declared(column.type)}${nullability}${fallback}${checks(column)}`;
  });
  const quoted = (names: readonly string[]) => names.map((each) => `"${each}"`).join(", ");
  const constraints = table.unique.map((names) => `UNIQUE (${quoted(names)})`);
  if (identity === undefined && table.primaryKey.length > 0) {
    constraints.push(`PRIMARY KEY (${quoted(table.primaryKey)})`);
  }
  return `CREATE TABLE "${name}" (${[...columns, ...constraints].join(", ")})`;
}

function declared({ name, length }: DataType): string {
  if (length === undefined) return name;
  return `${name}(${length === Infinity ? MAX_LENGTH : length})`;
}

function checks({ name, type }: ColumnDefinition): string {
  const check = (number: number, condition: string) =>
    ` CONSTRAINT "tds:${number}:${name}" CHECK ("${name}" IS NULL OR ${condition})`;
  const size = (unit: string) =>
    type.length === Infinity
      ? ""
      : check(8152, `length(CAST("${name}" AS ${unit})) <= ${type.length}`);
  switch (kindOf(type)) {
    case "binary":
      // The server fills BINARY up with zeros; nobody of ours leaves that to it.
      return check(257, `typeof("${name}") = 'blob'`) +
        (type.name === "binary" ? check(8152, `length("${name}") = ${type.length}`) : size("BLOB"));
    case "text":
      return check(257, `typeof("${name}") = 'text'`) + size("TEXT");
    default: {
      const most = type.name === "bigint" ? "9223372036854775807" : "2147483647";
      return check(8114, `typeof("${name}") = 'integer'`) +
        check(8115, `"${name}" BETWEEN -${most} - 1 AND ${most}`);
    }
  }
}

/**
 * Returns the statements that keep the entries of an index within what the server takes: 900 bytes
 * for the key of a table, and 1700 for any other index (900 before version 13).
 */
export function keySizeStatements(
  table: TableDefinition,
  { name, columns, mostBytes }: {
    readonly name: string;
    readonly columns: readonly string[];
    readonly mostBytes: number;
  },
): readonly string[] {
  const own = columns.map((each) => {
    const column = table.columns.find((column) => column.name === each);
    if (column === undefined) throw noColumn(each);
    return column;
  });
  if (own.some(({ type }) => type.length === Infinity)) {
    throw new TdsError(1919, `Column in table '${table.name}' is of a type that cannot be a key.`);
  }
  const sum = own.reduce((bytes, { type }) => bytes + (type.length ?? 8), 0);
  if (sum <= mostBytes) return [];
  const size = own.map((column) => `ifnull(length(CAST(NEW."${column.name}" AS BLOB)), 0)`).join(
    " + ",
  );
  return ["INSERT", "UPDATE"].map((event) =>
    `CREATE TRIGGER "tds_${name}_${event}" BEFORE ${event} ON "${table.name}" ` +
    `WHEN ${size} > ${mostBytes} BEGIN SELECT RAISE(ABORT, 'tds:1946:${name}'); END`
  );
}
