import { CausewayError } from "../base/mod.ts";
import { openInternalDatabase } from "./internal_store.ts";
import type { CopiedKind, TableGroup } from "./sql/copied_tables.ts";
import { COPIED_KINDS } from "./sql/copied_tables.ts";
import { copyUnits } from "./sql/copy_units.ts";
import type { CopyUnitsOptions, UnitCounts } from "./sql/copy_units.ts";
import type { UnitSummary } from "./sql/unit_summary.ts";
import { summarizeUnits } from "./sql/unit_summary.ts";
import type { SqlDatabase } from "./sql/sql_database.ts";
import { sqlServerDatabase } from "./sql/sql_server.ts";
import type { StoresOptions } from "./stores.ts";
import { sqlServerOf } from "./stores.ts";

/** Kinds of data that `copyData` takes. */
export const COPIED_KIND_NAMES = Object.keys(COPIED_KINDS) as readonly CopiedKind[];

/** Milliseconds that one statement may take: it may count a large table. */
const COPY_STATEMENT_MS = 600_000;

/** A copy of one kind of data between two backends of a configuration. */
export interface CopyOptions {
  readonly kind: CopiedKind;
  /** `internal`, or `rdbms.` and the tag of a pool. */
  readonly from: string;
  readonly to: string;
  /** Data at the destination that differ from the source. See `CopyUnitsOptions`. @default "keep" */
  readonly differing?: CopyUnitsOptions["differing"];
  /** Called after each batch with the table, what is done of it, and all that there is; awaited. */
  progress?(table: string, done: number, total: number): Promise<void> | void;
}

/** Result of a copy: one entry for each table that stands for units of its own. */
export interface CopyReport extends UnitCounts {
  /** Table whose rows were counted. */
  readonly table: string;
  /** Everything that each side has after the copy. */
  readonly source: UnitSummary;
  readonly destination: UnitSummary;
}

/**
 * Copies one kind of data from one backend to another. Nothing is removed where it comes from. To
 * repeat a copy is safe, and continues one that was interrupted. Afterwards both sides are read once
 * more, so that a report says what is there.
 *
 * @throws CausewayError `storage/no-backend` for a name that the configuration does not have;
 * otherwise `storage/…` for what failed
 */
export async function copyData(
  stores: StoresOptions,
  { kind, from, to, differing = "keep", progress }: CopyOptions,
): Promise<readonly CopyReport[]> {
  if (from === to) {
    throw new CausewayError("storage/no-backend", `Cannot copy from ${from} to itself`);
  }
  await using source = await openBackend(stores, from, { isMade: false });
  await using destination = await openBackend(stores, to, { isMade: true });
  const reports: CopyReport[] = [];
  const groups: readonly TableGroup[] = COPIED_KINDS[kind];
  for (const group of groups) {
    const [table] = group.tables;
    const counts = await copyUnits(source.database, destination.database, group, {
      differing,
      progress: (done, total) => progress?.(table, done, total),
    });
    const [here, there] = await Promise.all(
      [source, destination].map(({ database }) => summarizeUnits(database, group)),
    );
    reports.push({ table, ...counts, source: here!, destination: there! });
  }
  return reports;
}

interface OpenBackend extends AsyncDisposable {
  readonly database: SqlDatabase;
}

async function openBackend(
  stores: StoresOptions,
  name: string,
  { isMade }: { readonly isMade: boolean },
): Promise<OpenBackend> {
  if (name === "internal") {
    const { path } = stores.internal;
    if (!isMade && !isThere(path)) {
      throw new CausewayError(
        "storage/cannot-open",
        `Cannot open the built-in store ${path}: there is no such file`,
      );
    }
    const database = await openInternalDatabase(stores.internal);
    return { database, [Symbol.asyncDispose]: () => database.close() };
  }
  for (const [tag, pool] of stores.pools) {
    if (name !== `rdbms.${tag}`) continue;
    const server = sqlServerOf(tag, pool);
    const bounds = { ...server.bounds, statementTimeoutMs: COPY_STATEMENT_MS };
    const database = sqlServerDatabase({ ...server, bounds });
    await database.open();
    return { database, [Symbol.asyncDispose]: () => database.close() };
  }
  const known = ["internal", ...[...stores.pools.keys()].map((tag) => `rdbms.${tag}`)];
  throw new CausewayError(
    "storage/no-backend",
    `Cannot use the backend ${name}: the configuration has ${known.join(", ")}`,
  );
}

function isThere(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
