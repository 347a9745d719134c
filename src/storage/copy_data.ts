import { createHash } from "node:crypto";
import type { Clock } from "../base/mod.ts";
import { CausewayError, SystemClock } from "../base/mod.ts";
import { parseElement } from "../xmpp/mod.ts";
import { roomPeerIn } from "./archive_content.ts";
import type { ArchivePeer } from "./archive_store.ts";
import type { BackendId } from "./catalogue/catalogue.ts";
import { kindProblem } from "./catalogue/catalogue.ts";
import { backendIdOf, openBackend } from "./copied_backends.ts";
import type { OpenBackend } from "./copied_backends.ts";
import { accountsOf, archivesOfAccounts, archivesOfRooms, namesWithData } from "./copied_names.ts";
import { ACCOUNT_PARTS, copyAccounts } from "./copy_accounts.ts";
import type { CopiedAccount } from "./copy_accounts.ts";
import { copyArchives } from "./copy_archives.ts";
import type { ArchiveCopyOptions } from "./copy_archives.ts";
import type { TableGroup } from "./sql/copied_tables.ts";
import { COPIED_KINDS } from "./sql/copied_tables.ts";
import { copyUnits } from "./sql/copy_units.ts";
import type { CopyUnitsOptions, UnitCounts } from "./sql/copy_units.ts";
import type { UnitSummary } from "./sql/unit_summary.ts";
import { summarizeUnits } from "./sql/unit_summary.ts";
import type { SqlDatabase } from "./sql/sql_database.ts";
import { nextKeys } from "./sql/unit_rows.ts";
import type { StoresOptions } from "./stores.ts";
import { Stores } from "./stores.ts";
import type { UserStore } from "./user_store.ts";

/** Kind of data that can be copied. */
export type CopiedKind = keyof typeof COPIED_KINDS | "mam";

/** Kinds of data that `copyData` takes. Archives come last: they take longest. */
export const COPIED_KIND_NAMES: readonly CopiedKind[] = [
  ...Object.keys(COPIED_KINDS) as (keyof typeof COPIED_KINDS)[],
  "mam",
];

/**
 * Returns kinds in the order in which they are copied. What only the destination has is found by the
 * accounts there, so these go last then: the next owner of a name must not find its data.
 */
export function inCopyOrder(
  kinds: readonly CopiedKind[],
  differing: CopyUnitsOptions["differing"],
): readonly CopiedKind[] {
  const ordered = COPIED_KIND_NAMES.filter((kind) => kinds.includes(kind));
  if (differing !== "mirror") return ordered;
  return ordered.toSorted((one, other) => Number(one === "users") - Number(other === "users"));
}

/** Name of the secret behind the keys of accounts that do not exist. */
const ENUMERATION_SECRET = "enumeration";
const CHECKSUM_DIGITS = 32;
/** The archives of a database, as units that may be counted. */
const ARCHIVES: TableGroup = { key: "account_key", tables: ["archives"], names: [], batch: 1 };
const SAME_BACKEND = "both are the same backend";

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
  /** Called with the result of each table as soon as that is copied. */
  copied?(report: CopyReport): void;
}

/** Result of a copy: one entry for each table that stands for units of its own. */
export interface CopyReport extends UnitCounts {
  /**
   * Table whose rows were counted. `archives` stands for the messages in archives of people, and
   * `room_archives` for those in archives of rooms.
   */
  readonly table: string;
  /** Everything that each side has after the copy. */
  readonly source: UnitSummary;
  readonly destination: UnitSummary;
}

/**
 * Returns the kinds of data that can be copied between two backends: one at least.
 *
 * @throws CausewayError `storage/no-backend` for a name of no backend, and for backends between which
 * nothing can be copied
 */
export function copiableKinds(from: string, to: string): readonly CopiedKind[] {
  const kinds = COPIED_KIND_NAMES.filter((kind) => copyProblem(kind, from, to) === undefined);
  if (kinds.length > 0) return kinds;
  const problem = from === to ? SAME_BACKEND : "no kind of data can be copied between them";
  throw new CausewayError("storage/no-backend", `Cannot copy from ${from} to ${to}: ${problem}`);
}

/** Returns why a kind cannot be copied between two backends; undefined when it can. */
function copyProblem(kind: CopiedKind, from: string, to: string): string | undefined {
  if (from === to) return SAME_BACKEND;
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
  const reports: CopyReport[] = [];
  for await (const report of copiedTables(stores, options)) {
    reports.push(report);
    options.copied?.(report);
  }
  return reports;
}

/** Copies as `copyData`, and yields the result of each table. */
async function* copiedTables(
  stores: StoresOptions,
  options: CopyOptions,
): AsyncGenerator<CopyReport, void> {
  const { kind, from, to } = options;
  const problem = copyProblem(kind, from, to);
  if (problem !== undefined) {
    const reason = `Cannot copy ${kind} from ${from} to ${to}: ${problem}`;
    throw new CausewayError("storage/no-backend", reason);
  }
  await using source = await openBackend(stores, from, { isMade: false });
  await using destination = await openBackend(stores, to, { isMade: true });
  await refuseSameDatabase(source, destination, options);
  if (kind === "mam") return yield* copyAllArchives(stores, [source, destination], options);
  if (source.database !== undefined && destination.database !== undefined) {
    const accounts = () => accountsElsewhere(stores, kind);
    return yield* copyTables([source.database, destination.database], {
      ...options,
      kind,
      accounts,
    });
  }
  const part = kind as keyof typeof ACCOUNT_PARTS; // other kinds were refused
  yield await copyPart(stores, [source, destination], { ...options, kind: part });
  if (kind === "users") yield await copySecret(source, destination);
}

/**
 * Refuses to make a backend the same as one that has no accounts, or nothing of what is copied. For
 * the first step of a copy that mirrors: somebody may have taken one backend for the other.
 *
 * @throws CausewayError `storage/empty-source`; as `copyData`
 */
export async function refuseEmptySource(
  stores: StoresOptions,
  { from, to, kinds }: Pick<CopyOptions, "from" | "to"> & { readonly kinds: readonly CopiedKind[] },
): Promise<void> {
  if (kinds.some((kind) => copyProblem(kind, from, to) !== undefined)) return; // `copyData` says it
  // Other data may all be gone for good reasons while there are accounts.
  const users = kinds.filter((kind) => kind === "users");
  for (
    const [some, nothing] of [
      [users, "no accounts of the configuration's hosts"],
      [kinds, `nothing of ${kinds.join(", ")}`],
    ] as const
  ) {
    if (some.length === 0) continue;
    if (await hasAny(stores, from, { kinds: some, isMade: false })) continue;
    if (!await hasAny(stores, to, { kinds: some, isMade: true })) continue;
    throw new CausewayError(
      "storage/empty-source",
      `Cannot make ${to} the same as ${from}: ${from} has ${nothing}, and ${to} would lose all ` +
        "that it has; remove that first if it is meant",
    );
  }
}

/** True for a backend that has data of any of these kinds. */
async function hasAny(
  options: StoresOptions,
  name: string,
  { kinds, isMade }: { readonly kinds: readonly CopiedKind[]; readonly isMade: boolean },
): Promise<boolean> {
  await using opened = await openBackend(options, name, { isMade });
  const { database, stores } = opened;
  const hosts = [...options.users.keys()];
  for (const host of kinds.includes("users") ? hosts : []) {
    if ((await stores.users!(host).list({ limit: 1 })).length > 0) return true;
  }
  const others = kinds.filter((kind) => kind !== "users");
  if (database !== undefined) {
    const groups = others.flatMap((kind) => kind === "mam" ? [ARCHIVES] : COPIED_KINDS[kind]);
    for (const group of groups) {
      const keys = await database.run("read the keys of", async (queries) => {
        return await nextKeys(queries, database, { ...group, batch: 1 }, { after: null });
      });
      if (keys.length > 0) return true;
    }
    return false;
  }
  if (others.length === 0) return false;
  await using configured = await Stores.open(options);
  const storesOf = (host: string) =>
    [configured.users(host), stores.users?.(host)].filter((each) => each !== undefined);
  const parts = others.filter((kind) => kind in ACCOUNT_PARTS) as (keyof typeof ACCOUNT_PARTS)[];
  for (const part of parts) {
    for await (const account of namesWithData(part, accountsOf(hosts, storesOf))) {
      if (await ACCOUNT_PARTS[part].read(stores, account) !== undefined) return true;
    }
  }
  if (!kinds.includes("mam")) return false;
  for await (const { archive } of archivesOfAccounts(configured, [stores], hosts)) {
    if (await stores.archives!().ends(archive) !== undefined) return true;
  }
  const rooms = stores.roomArchives?.() ?? stores.archives!();
  for await (const { archive } of archivesOfRooms(configured, [stores])) {
    if (await rooms.ends(archive) !== undefined) return true;
  }
  return false;
}

/** Refuses two pools of one database: all would be verified, and nothing be copied. */
async function refuseSameDatabase(
  source: OpenBackend,
  destination: OpenBackend,
  { kind, from, to }: CopyOptions,
): Promise<void> {
  if (backendIdOf(from) !== backendIdOf(to)) return;
  const [one, other] = await Promise.all(
    [source, destination].map(({ stores }) => stores.identity?.()),
  );
  if (one === undefined || one !== other) return;
  throw new CausewayError(
    "storage/no-backend",
    `Cannot copy ${kind} from ${from} to ${to}: both are the same database; correct the address of ` +
      "one of the two pools",
  );
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
      // The configured place of accounts does not matter when the accounts themselves are copied.
      kind === "users" ? undefined : configured.users(host),
      source.stores.users?.(host),
      differing === "mirror" ? destination.stores.users?.(host) : undefined,
    ].filter((each) => each !== undefined);
  const { table, ...result } = await copyAccounts({
    kind,
    from: source.stores,
    to: destination.stores,
    accounts: namesWithData(kind, accountsOf(hosts, storesOf)),
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

/** Yields the names under which accounts of the configuration have data of a kind. */
async function* accountsElsewhere(
  options: StoresOptions,
  kind: CopiedKind,
): AsyncGenerator<CopiedAccount> {
  await using configured = await Stores.open(options);
  const storesOf = (host: string) => [configured.users(host)];
  yield* namesWithData(kind, accountsOf([...options.users.keys()], storesOf));
}

async function* copyTables(
  [source, destination]: readonly [SqlDatabase, SqlDatabase],
  { kind, differing = "keep", progress, accounts }:
    & CopyOptions
    & Pick<CopyUnitsOptions, "accounts">
    & {
      readonly kind: keyof typeof COPIED_KINDS;
    },
): AsyncGenerator<CopyReport, void> {
  const groups: readonly TableGroup[] = COPIED_KINDS[kind];
  for (const group of groups) {
    const [table] = group.tables;
    const counts = await copyUnits(source, destination, group, {
      differing,
      ...(accounts === undefined ? {} : { accounts }),
      progress: (done, total) => progress?.(table, done, total),
    });
    const [here, there] = await Promise.all(
      [source, destination].map((database) => summarizeUnits(database, group)),
    );
    yield { table, ...counts, source: here!, destination: there! };
  }
}

async function* copyAllArchives(
  options: StoresOptions,
  [source, destination]: readonly [OpenBackend, OpenBackend],
  { differing = "keep", verifies = "checksum", clock = new SystemClock(), progress }: CopyOptions,
): AsyncGenerator<CopyReport, void> {
  await using configured = await Stores.open(options);
  const common = { place: source.stores.place, differing, verifies, clock };
  const copy = async (
    table: string,
    archives: Pick<ArchiveCopyOptions, "from" | "to" | "archives" | "peerOf">,
  ): Promise<CopyReport> => ({
    table,
    ...await copyArchives({
      ...common,
      ...archives,
      progress: (done) => progress?.(table, done, undefined),
    }),
  });
  const listed = [source, ...differing === "mirror" ? [destination] : []]
    .map(({ stores }) => stores);
  // Each backend that may hold `mam` has archives of people, and of rooms there or apart.
  yield await copy("archives", {
    from: source.stores.archives!(),
    to: destination.stores.archives!(),
    archives: archivesOfAccounts(configured, listed, [...options.users.keys()]),
  });
  yield await copy("room_archives", {
    from: source.stores.roomArchives?.() ?? source.stores.archives!(),
    to: destination.stores.roomArchives?.() ?? destination.stores.archives!(),
    archives: archivesOfRooms(configured, listed),
    peerOf: peerInRoom,
  });
}

function peerInRoom(stanza: Uint8Array, room: string): ArchivePeer | undefined {
  try {
    return roomPeerIn(parseElement(stanza), room);
  } catch {
    return undefined; // no stanza that this program stored
  }
}
