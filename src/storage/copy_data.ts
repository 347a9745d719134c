import { createHash } from "node:crypto";
import type { Clock } from "../base/mod.ts";
import { CausewayError, SystemClock } from "../base/mod.ts";
import { archiveKeyOf } from "./archive_store.ts";
import type { ArchiveStore } from "./archive_store.ts";
import type { BackendId } from "./catalogue/catalogue.ts";
import { CATALOGUE, kindProblem } from "./catalogue/catalogue.ts";
import { ACCOUNT_PARTS, copyAccounts } from "./copy_accounts.ts";
import type { CopiedAccount } from "./copy_accounts.ts";
import { copyArchives } from "./copy_archives.ts";
import type { CopiedArchive } from "./copy_archives.ts";
import type { DataStores } from "./data_stores.ts";
import { openInternalDatabase } from "./internal_store.ts";
import { serverKindOf } from "./server_kinds.ts";
import type { TableGroup } from "./sql/copied_tables.ts";
import { COPIED_KINDS } from "./sql/copied_tables.ts";
import { copyUnits } from "./sql/copy_units.ts";
import type { CopyUnitsOptions, UnitCounts } from "./sql/copy_units.ts";
import type { UnitSummary } from "./sql/unit_summary.ts";
import { summarizeUnits } from "./sql/unit_summary.ts";
import type { SqlDatabase } from "./sql/sql_database.ts";
import { sqlServerDatabase } from "./sql/sql_server.ts";
import { SqlStores } from "./sql/sql_stores.ts";
import type { StoresOptions } from "./stores.ts";
import { sqlServerOf, Stores } from "./stores.ts";
import type { UserStore } from "./user_store.ts";

/** Kind of data that can be copied. */
export type CopiedKind = keyof typeof COPIED_KINDS | "mam";

/** Kinds of data that `copyData` takes. Archives come last: they take longest. */
export const COPIED_KIND_NAMES: readonly CopiedKind[] = [
  ...Object.keys(COPIED_KINDS) as (keyof typeof COPIED_KINDS)[],
  "mam",
];

/** Milliseconds that one statement may take: it may count a large table. */
const COPY_STATEMENT_MS = 600_000;
/** Name of the secret behind the keys of accounts that do not exist. */
const ENUMERATION_SECRET = "enumeration";
const CHECKSUM_DIGITS = 32;
/** Accounts that are looked up at once. */
const ACCOUNTS_AT_ONCE = 500;

/** A copy of one kind of data between two backends of a configuration. */
export interface CopyOptions {
  readonly kind: CopiedKind;
  /** `internal`, or the kind of a pool and its tag: `rdbms.default`, `cassandra.archive`. */
  readonly from: string;
  readonly to: string;
  /** Data at the destination that differ from the source. See `CopyUnitsOptions`. @default "keep" */
  readonly differing?: CopyUnitsOptions["differing"];
  /** Way of comparing archives. See `ArchiveCopyOptions`. @default "checksum" */
  readonly verifies?: "checksum" | "count";
  /** @default the system's */
  readonly clock?: Clock;
  /**
   * Called after each batch with the table, what is done of it, and all that there is; awaited. Nobody
   * counts the messages of all archives before.
   */
  progress?(table: string, done: number, total: number | undefined): Promise<void> | void;
}

/** Result of a copy: one entry for each table that stands for units of its own. */
export interface CopyReport extends UnitCounts {
  /** Table whose rows were counted; `archives` stands for the messages in archives. */
  readonly table: string;
  /** Everything that each side has after the copy. */
  readonly source: UnitSummary;
  readonly destination: UnitSummary;
}

/**
 * Returns the kinds of data that can be copied between two backends.
 *
 * @throws CausewayError `storage/no-backend` for a name of no backend
 */
export function copiableKinds(from: string, to: string): readonly CopiedKind[] {
  return COPIED_KIND_NAMES.filter((kind) => copyProblem(kind, from, to) === undefined);
}

/** Returns why a kind cannot be copied between two backends; undefined when it can. */
function copyProblem(kind: CopiedKind, from: string, to: string): string | undefined {
  for (const name of [from, to]) {
    const problem = kindProblem(backendIdOf(name), kind);
    if (problem !== undefined) return problem;
  }
  const isCopied = kind === "mam" || kind in ACCOUNT_PARTS ||
    [from, to].every((name) => isSql(backendIdOf(name)));
  // Each backend without SQL holds accounts and their data, or archives.
  return isCopied ? undefined : `${kind} is copied between SQL databases and the built-in store`;
}

function isSql(backend: BackendId): boolean {
  return backend === "internal" || backend === "rdbms";
}

/** Returns the backend of a name such as `rdbms.default`. */
function backendIdOf(name: string): BackendId {
  if (name === "internal") return name;
  const [poolKind] = name.split(".", 1);
  const row = CATALOGUE.find((each) => each.poolKind === poolKind);
  if (row !== undefined && name.includes(".")) return row.id;
  throw new CausewayError(
    "storage/no-backend",
    `Cannot use the backend ${name}: it is \`internal\`, or a pool such as rdbms.default`,
  );
}

/**
 * Copies one kind of data from one backend to another. Nothing is removed where it comes from. To
 * repeat a copy is safe, and continues one that was interrupted. Afterwards both sides are read once
 * more, so that a report says what is there.
 *
 * Archives, and data of which one side speaks no SQL, are those of accounts that there are: those of
 * the configuration's hosts, and those in the source.
 *
 * @throws CausewayError `storage/no-backend` for a name that the configuration does not have, or a
 * backend that may not hold the kind; otherwise `storage/…` for what failed
 */
export async function copyData(
  stores: StoresOptions,
  options: CopyOptions,
): Promise<readonly CopyReport[]> {
  const { kind, from, to } = options;
  if (from === to) {
    throw new CausewayError("storage/no-backend", `Cannot copy from ${from} to itself`);
  }
  const problem = copyProblem(kind, from, to);
  if (problem !== undefined) {
    const reason = `Cannot copy ${kind} from ${from} to ${to}: ${problem}`;
    throw new CausewayError("storage/no-backend", reason);
  }
  await using source = await openBackend(stores, from, { isMade: false });
  await using destination = await openBackend(stores, to, { isMade: true });
  if (kind === "mam") return [await copyAllArchives(stores, [source, destination], options)];
  if (source.database !== undefined && destination.database !== undefined) {
    return await copyTables([source.database, destination.database], { ...options, kind });
  }
  const part = kind as keyof typeof ACCOUNT_PARTS; // other kinds were refused
  const reports = [await copyPart(stores, [source, destination], { ...options, kind: part })];
  return kind === "users" ? [...reports, await copySecret(source, destination)] : reports;
}

/** Copies one kind of data where a database speaks no SQL, account by account. */
async function copyPart(
  options: StoresOptions,
  [source, destination]: readonly [OpenBackend, OpenBackend],
  { kind, differing = "keep", progress }: CopyOptions & {
    readonly kind: keyof typeof ACCOUNT_PARTS;
  },
): Promise<CopyReport> {
  await using configured = await Stores.open(options);
  const hosts = [...options.users.keys()];
  const storesOf = (host: string): readonly UserStore[] =>
    [
      // Whose accounts they are does not matter for the accounts themselves.
      kind === "users" ? undefined : configured.users(host),
      source.stores.users?.(host),
      differing === "mirror" ? destination.stores.users?.(host) : undefined,
    ].filter((each) => each !== undefined);
  const { table, ...result } = await copyAccounts({
    kind,
    from: source.stores,
    to: destination.stores,
    accounts: accountsOf(hosts, storesOf),
    differing,
    progress: (done) => progress?.(ACCOUNT_PARTS[kind].table, done, undefined),
  });
  return { table, ...result };
}

/** Copies the secret by which strangers learn nothing of names without an account. */
async function copySecret(source: OpenBackend, destination: OpenBackend): Promise<CopyReport> {
  const mine = await source.stores.secret!(ENUMERATION_SECRET);
  const theirs = await destination.stores.secret!(ENUMERATION_SECRET, mine);
  const isSame = mine.toHex() === theirs.toHex();
  const summaryOf = (secret: Uint8Array) => ({
    units: 1,
    checksum: createHash("sha256").update(secret).digest("hex").slice(0, CHECKSUM_DIGITS),
  });
  return {
    table: "secrets",
    added: 0,
    same: isSame ? 1 : 0,
    replaced: 0,
    removed: 0,
    kept: isSame ? 0 : 1,
    keptNames: isSame ? [] : [ENUMERATION_SECRET],
    source: summaryOf(mine),
    destination: summaryOf(theirs),
  };
}

async function copyTables(
  [source, destination]: readonly [SqlDatabase, SqlDatabase],
  { kind, differing = "keep", progress }: CopyOptions & {
    readonly kind: keyof typeof COPIED_KINDS;
  },
): Promise<readonly CopyReport[]> {
  const reports: CopyReport[] = [];
  const groups: readonly TableGroup[] = COPIED_KINDS[kind];
  for (const group of groups) {
    const [table] = group.tables;
    const counts = await copyUnits(source, destination, group, {
      differing,
      progress: (done, total) => progress?.(table, done, total),
    });
    const [here, there] = await Promise.all(
      [source, destination].map((database) => summarizeUnits(database, group)),
    );
    reports.push({ table, ...counts, source: here!, destination: there! });
  }
  return reports;
}

async function copyAllArchives(
  options: StoresOptions,
  [source, destination]: readonly [OpenBackend, OpenBackend],
  { differing = "keep", verifies = "checksum", clock = new SystemClock(), progress }: CopyOptions,
): Promise<CopyReport> {
  await using accounts = await Stores.open(options);
  const result = await copyArchives({
    from: archivesOf(source),
    to: archivesOf(destination),
    place: source.stores.place,
    archives: archivesOfAccounts(accounts, source.stores, [...options.users.keys()]),
    differing,
    verifies,
    clock,
    progress: (done) => progress?.("archives", done, undefined),
  });
  return { table: "archives", ...result };
}

function archivesOf({ stores }: OpenBackend): ArchiveStore {
  return stores.archives!(); // each backend that may hold `mam` has them
}

/** Yields the archives of all accounts of some hosts, each once. */
async function* archivesOfAccounts(
  accounts: Stores,
  source: DataStores,
  hosts: readonly string[],
): AsyncGenerator<CopiedArchive> {
  const storesOf = (host: string) =>
    [accounts.users(host), source.users?.(host)].filter((each) => each !== undefined);
  // An account that both have is the same one, or has an archive of its own in each.
  const places = accountsOf(hosts, storesOf, { tellsCreations: true });
  for await (const { localpart, host, creation, other } of places) {
    const keyOf = (each: string) => archiveKeyOf(`${localpart}@${host}`, each);
    yield { archive: keyOf(creation), other: other === undefined ? undefined : keyOf(other) };
  }
}

interface AccountPlace extends CopiedAccount {
  readonly creation: string;
  readonly other: string | undefined;
}

/**
 * Yields the accounts in several stores of each host, each once; or each creation of them once. One
 * that has another creation in another store has it as `other`.
 */
async function* accountsOf(
  hosts: readonly string[],
  storesOf: (host: string) => readonly UserStore[],
  { tellsCreations = false }: { readonly tellsCreations?: boolean } = {},
): AsyncGenerator<AccountPlace> {
  for (const host of hosts) {
    const stores = storesOf(host);
    for (const [i, store] of stores.entries()) {
      let after: string | undefined;
      for (;;) {
        const names = await store.list({
          limit: ACCOUNTS_AT_ONCE,
          ...(after === undefined ? {} : { after }),
        });
        const found = await store.existing(names);
        const all = await Promise.all(
          stores.map((each, n) => n === i ? found : each.existing(names)),
        );
        for (const [localpart, creation] of found) {
          const isKnown = all.slice(0, i).some((each) =>
            tellsCreations ? each.get(localpart) === creation : each.has(localpart)
          );
          const other = all.map((each) => each.get(localpart))
            .find((each) => each !== undefined && each !== creation);
          if (!isKnown) yield { localpart, host, creation, other };
        }
        after = names.at(-1);
        if (after === undefined || names.length < ACCOUNTS_AT_ONCE) break;
      }
    }
  }
}

/** A backend that is open. */
interface OpenBackend extends AsyncDisposable {
  readonly stores: DataStores;
  /** Undefined for one without SQL. */
  readonly database: SqlDatabase | undefined;
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
    return opened(await openInternalDatabase(stores.internal));
  }
  for (const [tag, pool] of stores.pools) {
    if (name !== `rdbms.${tag}`) continue;
    const server = sqlServerOf(tag, pool);
    const bounds = { ...server.bounds, statementTimeoutMs: COPY_STATEMENT_MS };
    const database = sqlServerDatabase({ ...server, bounds });
    await database.open();
    return opened(database);
  }
  const options = stores.serverPools?.get(name);
  if (options !== undefined) {
    const server = serverKindOf(options).open({ name, options });
    await server.probe();
    const close = () => server.close();
    return { stores: server, database: undefined, [Symbol.asyncDispose]: close };
  }
  const known = [
    "internal",
    ...[...stores.pools.keys()].map((tag) => `rdbms.${tag}`),
    ...stores.serverPools?.keys() ?? [],
  ];
  throw new CausewayError(
    "storage/no-backend",
    `Cannot use the backend ${name}: the configuration has ${known.join(", ")}`,
  );
}

function opened(database: SqlDatabase): OpenBackend {
  return {
    stores: new SqlStores(database),
    database,
    [Symbol.asyncDispose]: () => database.close(),
  };
}

function isThere(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
