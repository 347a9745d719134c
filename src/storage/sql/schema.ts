import { createHash } from "node:crypto";
import { CausewayError } from "../../base/mod.ts";
import type { PrepareOptions } from "../backend.ts";
import { storageError } from "../storage_error.ts";
import type { SqlConnection } from "./sql_connection.ts";
import type { SchemaFile, SqlDialect } from "./sql_dialect.ts";

/** Table that says which versions of the schema a database has. */
export const VERSIONS_TABLE = "causeway_schema";
/** Table that said so in built-in stores before `VERSIONS_TABLE`: the count of statements done. */
const EARLIER_VERSIONS_TABLE = "schema_version";
/** Table with the lowest version that a program must know to use the database. */
const FLOOR_TABLE = "causeway_schema_floor";

/** One version of the schema as a database has it. */
interface AppliedVersion {
  readonly version: number;
  readonly checksum: string;
  /** Statements of its file that were carried out. */
  readonly done: number;
}

/** Schema of a database as it was found. */
export interface SchemaState {
  /** In ascending order. */
  readonly applied: readonly AppliedVersion[];
  readonly tables: ReadonlySet<string>;
  /** Statements done of the first version, in a built-in store without `VERSIONS_TABLE`. */
  readonly earlierDone: number | undefined;
  /** Lowest version that a program must know to use the database; undefined when all are needed. */
  readonly lowest: number | undefined;
}

/** Reads the schema of the database behind `connection`. Changes nothing. */
export async function readSchema(
  dialect: SqlDialect,
  connection: SqlConnection,
): Promise<SchemaState> {
  const tables = await dialect.tables(connection);
  const earlierDone = tables.has(EARLIER_VERSIONS_TABLE) && dialect.name === "sqlite"
    ? Number(
      (await connection.execute(`SELECT version FROM ${EARLIER_VERSIONS_TABLE}`))
        .rows[0]?.["version"] ?? 0,
    )
    : undefined;
  if (!tables.has(VERSIONS_TABLE)) return { applied: [], tables, earlierDone, lowest: undefined };
  const sql = `SELECT version, checksum, done FROM ${VERSIONS_TABLE} ORDER BY version`;
  const { rows } = await connection.execute(sql);
  const applied = rows.map((row) => ({
    version: Number(row["version"]),
    checksum: String(row["checksum"]),
    done: Number(row["done"]),
  }));
  const floor = tables.has(FLOOR_TABLE)
    ? (await connection.execute(`SELECT lowest FROM ${FLOOR_TABLE}`)).rows[0]?.["lowest"]
    : undefined;
  return { applied, tables, earlierDone, lowest: floor === undefined ? undefined : Number(floor) };
}

/**
 * Returns the statements that bring a database from `state` to the present schema, in their order;
 * none when it has that schema, or a newer one that this program can use.
 *
 * @throws CausewayError `storage/schema-too-new` for the schema of a newer program that this one
 * cannot use,
 * `storage/schema-foreign` for tables that are not ours or were changed by others
 */
export function planSchema(
  dialect: SqlDialect,
  state: SchemaState,
  place: string,
): readonly string[] {
  const { versionsFile, files } = filesOf(dialect);
  checkKnown(dialect, state, place);
  const plan: string[] = [];
  let { applied } = state;
  if (!state.tables.has(VERSIONS_TABLE)) {
    plan.push(...statementsOf(versionsFile));
    if (state.earlierDone !== undefined) {
      const adopted = { version: 1, checksum: checksumOf(files[0]!), done: state.earlierDone };
      plan.push(insertion(adopted), `DROP TABLE ${EARLIER_VERSIONS_TABLE}`);
      applied = [adopted];
    }
  }
  for (const file of files) {
    const statements = statementsOf(file);
    const checksum = checksumOf(file);
    const found = applied.find(({ version }) => version === file.version);
    const done = found?.done ?? 0;
    if (done >= statements.length) continue;
    const { version } = file;
    if (found === undefined) plan.push(insertion({ version, checksum, done: 0 }));
    for (const [index, statement] of statements.slice(done).entries()) {
      plan.push(statement);
      // Where changes of tables are not part of transactions, each is noted as soon as it is done.
      const isLast = done + index + 1 === statements.length;
      if (isLast || !dialect.hasTransactionalSchema) plan.push(progress(version, done + index + 1));
    }
  }
  return plan;
}

/**
 * Brings the database to the present schema and returns the statements that were run. Safe to
 * repeat, to interrupt and to run twice at the same time. Where the engine can, all statements are
 * one transaction; elsewhere the next call continues behind the last statement that was done.
 *
 * @throws CausewayError as `planSchema`; otherwise what the driver throws
 */
export async function prepareSchema(
  dialect: SqlDialect,
  connection: SqlConnection,
  place: string,
  progress?: PrepareOptions["progress"],
): Promise<readonly string[]> {
  if (!dialect.hasTransactionalSchema) {
    await dialect.lockSchema(connection);
    return await carryOut(dialect, connection, place, progress);
  }
  await connection.execute(dialect.begin);
  try {
    await dialect.lockSchema(connection);
    const plan = await carryOut(dialect, connection, place, progress);
    await connection.execute(dialect.commit);
    return plan;
  } catch (thrown) {
    await connection.execute(dialect.rollback).catch(() => connection.destroy());
    throw thrown;
  }
}

async function carryOut(
  dialect: SqlDialect,
  connection: SqlConnection,
  place: string,
  progress: PrepareOptions["progress"],
): Promise<readonly string[]> {
  const plan = planSchema(dialect, await readSchema(dialect, connection), place);
  for (const [done, statement] of plan.entries()) {
    progress?.({ done, total: plan.length, statement });
    try {
      await connection.execute(statement);
    } catch (thrown) {
      if (dialect.wasDone?.(thrown) !== true) throw thrown;
    }
  }
  return plan;
}

/**
 * Checks that a database has the present schema: what each new connection is asked first.
 *
 * @returns the newest version that the database has, which may be of a newer program
 * @throws CausewayError as `planSchema`, `storage/schema-missing` for a database without our tables,
 * `storage/schema-too-old` when `causeway backends prepare` has something to do
 */
export async function checkSchema(
  dialect: SqlDialect,
  connection: SqlConnection,
  place: string,
): Promise<number> {
  const state = await readSchema(dialect, connection);
  const isComplete = planSchema(dialect, state, place).length === 0;
  const newest = newestVersionIn(state);
  if (newest === undefined) throw storageError("schema-missing", { action: "use", place });
  if (isComplete) return newest;
  throw new CausewayError(
    "storage/schema-too-old",
    `Cannot use ${place}: its schema is not complete up to version ${versionOf(dialect)}; run ` +
      "`causeway backends prepare`",
  );
}

/**
 * Returns the indexes of the present schema that a database has no more. A restore that failed half-way
 * leaves it without some.
 */
export async function lostIndexes(
  dialect: SqlDialect,
  connection: SqlConnection,
): Promise<readonly string[]> {
  const { files } = filesOf(dialect);
  const there = await dialect.indexes(connection);
  return ownIndexes(files).filter((index) => !there.has(index));
}

/** Returns the newest version that a database has; undefined for one without our tables. */
export function newestVersionIn({ applied }: SchemaState): number | undefined {
  return applied.at(-1)?.version;
}

/** Returns the version of the schema that this program uses. */
export function versionOf({ schema }: SqlDialect): number {
  return schema.at(-1)!.version;
}

/** Returns the statements of a schema file, without comments. */
export function statementsOf({ text }: SchemaFile): readonly string[] {
  return text.replaceAll(/^--.*$/gm, "").split(/;\s*$/m)
    .map((statement) => statement.trim()).filter((statement) => statement !== "");
}

function filesOf({ schema }: SqlDialect): {
  readonly versionsFile: SchemaFile;
  readonly files: readonly SchemaFile[];
} {
  const [versionsFile, ...files] = schema;
  return { versionsFile: versionsFile!, files };
}

function checkKnown(dialect: SqlDialect, state: SchemaState, place: string): void {
  const { files } = filesOf(dialect);
  const newest = state.applied.at(-1)?.version ?? 0;
  const known = versionOf(dialect);
  const isUsable = newest <= known || (state.lowest !== undefined && state.lowest <= known);
  if (!isUsable || (state.earlierDone ?? 0) > statementsOf(files[0]!).length) {
    throw new CausewayError(
      "storage/schema-too-new",
      `Cannot use ${place}: its schema has version ${newest || state.earlierDone}, and this ` +
        `program knows versions up to ${known}; use the newer program`,
    );
  }
  const isOurs = state.applied.length > 0 || state.earlierDone !== undefined;
  const foreign = isOurs
    ? state.applied.filter(({ version, checksum }) =>
      version <= known &&
      files.every((file) => file.version !== version || checksumOf(file) !== checksum)
    ).map(({ version }) => `version ${version} of its schema is not ours`)
    : ownTables(files).filter((table) => state.tables.has(table))
      .map((table) => `it has a table ${table} that is not ours`);
  if (foreign.length === 0) return;
  throw new CausewayError(
    "storage/schema-foreign",
    `Cannot use ${place}: ${foreign.join(", ")}; give Causeway an empty database`,
  );
}

/** Returns the names of the tables that these files create. */
function ownTables(files: readonly SchemaFile[]): readonly string[] {
  const found = files.flatMap(({ text }) => [
    ...text.matchAll(/^CREATE TABLE (?:IF NOT EXISTS )?(\w+)/gm),
  ]);
  return [...new Set(found.map(([, table]) => table!))];
}

/** Returns the names of the indexes that these files leave, but for those that not all servers have. */
function ownIndexes(files: readonly SchemaFile[]): readonly string[] {
  const names = new Set<string>();
  for (const statement of files.flatMap(statementsOf)) {
    const plain = statement.replaceAll(/\/\*!.*?\*\//gs, ""); // for some versions of MySQL alone
    for (const [, dropped, name] of plain.matchAll(/(DROP )?\bINDEX (\w+)/g)) {
      if (dropped === undefined) names.add(name!);
      else names.delete(name!);
    }
  }
  return [...names];
}

function checksumOf(file: SchemaFile): string {
  return createHash("sha256").update(statementsOf(file).join(";\n")).digest("hex");
}

// The values are numbers and hexadecimal digits of our own, written out so that a plan can be read.

function insertion({ version, checksum, done }: AppliedVersion): string {
  return `INSERT INTO ${VERSIONS_TABLE} (version, checksum, done) ` +
    `VALUES (${version}, '${checksum}', ${done})`;
}

function progress(version: number, done: number): string {
  return `UPDATE ${VERSIONS_TABLE} SET done = ${done} WHERE version = ${version}`;
}
