import { Buffer } from "node:buffer";
import type { ArchivePreferences } from "../archive_store.ts";
import { bareJidOfArchive } from "../archive_store.ts";
import type { Key } from "./keys.ts";
import { keyOf } from "./keys.ts";
import type { SqlDialect } from "./sql_dialect.ts";
import type { Queries } from "./sql_database.ts";

/** Archives whose rows one statement locks. An archive has two places, and SQL Server takes 2100 values. */
const LOCKED_AT_ONCE = 500;
/** `oldest_sent_at` of an archive without messages. */
export const NO_MESSAGES = Number.MAX_SAFE_INTEGER;

/**
 * Rows of `archives` where one archive may be. The first place is that of its bare JID, which programs
 * of earlier versions know too. An archive is at its second place when another owner has the first.
 */
interface Places {
  readonly owner: Key;
  readonly host: Key;
  readonly first: Key;
  readonly second: Key;
}

/** The row of an archive, as it was read. */
interface ArchiveRow {
  readonly account_key: Uint8Array;
  readonly owner_key: Uint8Array | null;
  readonly last_position: number | string;
  readonly visible_at: number | string;
  readonly most_late: number | string;
  readonly oldest_sent_at: number | string;
  readonly preferences: Uint8Array | null;
}

/** The row of an archive, locked by the transaction that has read it. */
export interface ArchiveState {
  /** Key of its row and of its messages. */
  readonly key: Key;
  readonly owner: RowOwner;
  readonly preferences: ArchivePreferences | undefined;
  /** The preferences as the row has them. */
  readonly preferencesContent: Uint8Array | null;
  lastPosition: number;
  visibleAt: number;
  mostLate: number;
  oldestSentAt: number;
  hasNews: boolean;
}

/** Returns the keys of an archive's places, of its owner and of its host. */
export function placesOf(archive: string): Places {
  const bareJid = bareJidOfArchive(archive);
  return {
    owner: keyOf(archive),
    host: keyOf(bareJid.slice(bareJid.indexOf("@") + 1)),
    first: keyOf(bareJid),
    // A key without a creation would be that of the first place.
    second: keyOf(archive === bareJid ? `${bareJid} ` : archive),
  };
}

/** Chooses the row of an archive among those at its places. */
function chosen<T extends Pick<ArchiveRow, "owner_key">>(
  { first, second, owner }: Places,
  rowAt: (hex: string) => T | undefined,
): T | undefined {
  const own = rowAt(second.toString("hex"));
  if (own !== undefined) return own;
  const shared = rowAt(first.toString("hex"));
  if (shared === undefined) return undefined;
  return shared.owner_key === null || owner.equals(shared.owner_key) ? shared : undefined;
}

/** Returns the key under which the messages of an archive are, or would be. */
export async function findArchive(queries: Queries, archive: string): Promise<Key> {
  const places = placesOf(archive);
  const rows = await queries.selectFrom("archives").select(["account_key", "owner_key"])
    .where("account_key", "in", [places.first, places.second]).execute();
  const byKey = new Map(rows.map((row) => [bufferOf(row.account_key).toString("hex"), row]));
  const row = chosen(places, (hex) => byKey.get(hex));
  return row === undefined ? places.second : bufferOf(row.account_key);
}

/**
 * Returns a query for the row of `key`, as long as it is that of the archive. After `findArchive`, the
 * account may be deleted, and the next one of its name may get the row.
 */
export function stillOf(queries: Queries, archive: string, key: Key) {
  const { owner } = placesOf(archive);
  return queries.selectFrom("archives").where("archives.account_key", "=", key)
    .where((each) =>
      each.or([each("archives.owner_key", "is", null), each("archives.owner_key", "=", owner)])
    );
}

/** The owner in a row of `archives`: the hash of the archive's key, `UNOWNED` or `NO_ROW`. */
export type RowOwner = string;

/** The owner of a row that version 0.1.0 made. */
const UNOWNED: RowOwner = "unowned";
/** The owner where there is no row. */
export const NO_ROW: RowOwner = "no row";

function ownerOf({ owner_key: owner }: Pick<ArchiveRow, "owner_key">): RowOwner {
  return owner === null ? UNOWNED : bufferOf(owner).toString("hex");
}

/** Returns the keys of all archives of a bare JID, with the owners of their rows. */
export async function findArchivesOf(
  queries: Queries,
  bareJid: string,
): Promise<readonly { readonly key: Key; readonly owner: RowOwner }[]> {
  const first = keyOf(bareJid);
  const columns = ["account_key", "owner_key"] as const;
  const rows = [
    ...await queries.selectFrom("archives").select(columns).where("account_key", "=", first)
      .execute(),
    ...await queries.selectFrom("archives").select(columns).where("bare_key", "=", first)
      .where("account_key", "<>", first).execute(),
  ];
  const found = rows.map((row) => ({ key: bufferOf(row.account_key), owner: ownerOf(row) }));
  // Messages without a row are those of nobody.
  return found[0]?.key.equals(first) === true ? found : [{ key: first, owner: NO_ROW }, ...found];
}

/** Gives a row of version 0.1.0 to an account without a creation, so that no other account gets it. */
export async function closeUnowned(queries: Queries, bareJid: string): Promise<void> {
  const places = placesOf(bareJid);
  await queries.updateTable("archives").set(ownerIn(places))
    .where("account_key", "=", places.first).where("owner_key", "is", null).execute();
}

/**
 * Locks the rows of archives until the end of the transaction and returns them by the archives' keys.
 * Makes missing ones. A row of an earlier version becomes that of the archive.
 */
export async function lockArchives(
  queries: Queries,
  dialect: SqlDialect,
  archives: readonly string[],
): Promise<ReadonlyMap<string, ArchiveState>> {
  const states = new Map<string, ArchiveState>();
  const wanted = archives.map((archive) => ({ archive, places: placesOf(archive) }))
    // Transactions that lock rows in one order do not wait for each other in a circle.
    .toSorted((one, other) => one.places.first.compare(other.places.first));
  for (let from = 0; from < wanted.length; from += LOCKED_AT_ONCE) {
    const some = wanted.slice(from, from + LOCKED_AT_ONCE);
    const keys = new Map(
      some.flatMap(({ places: { first, second } }) => [first, second])
        .map((key) => [key.toString("hex"), key]),
    );
    const rows = await lockRows(queries, dialect, [...keys.values()]);
    for (const { archive, places } of some) {
      const row = chosen(places, (hex) => rows.get(hex));
      if (row !== undefined) {
        states.set(archive, stateOf(row));
        if (row.owner_key !== null) continue;
        await queries.updateTable("archives").set(ownerIn(places))
          .where("account_key", "=", places.first).execute();
        rows.set(places.first.toString("hex"), { ...row, owner_key: places.owner });
        continue;
      }
      const isFree = !rows.has(places.first.toString("hex"));
      const made = { ...EMPTY, account_key: isFree ? places.first : places.second };
      // If two transactions make one row, the later one is tried again.
      await queries.insertInto("archives").values({ ...made, ...ownerIn(places) }).execute();
      rows.set(made.account_key.toString("hex"), { ...made, owner_key: places.owner });
      states.set(archive, stateOf({ ...made, owner_key: places.owner }));
    }
  }
  return states;
}

const EMPTY = {
  last_position: 0,
  visible_at: 0,
  most_late: 0,
  oldest_sent_at: NO_MESSAGES,
  preferences: null,
};

function ownerIn({ owner, first, host }: Places) {
  return { owner_key: owner, bare_key: first, host_key: host };
}

/** Locks the row of one archive by its own key. Undefined when it is gone. */
export async function lockArchive(
  queries: Queries,
  dialect: SqlDialect,
  key: Key,
): Promise<ArchiveState | undefined> {
  const rows = await lockRows(queries, dialect, [key]);
  const [row] = rows.values();
  return row && stateOf(row);
}

async function lockRows(
  queries: Queries,
  { rowLocks }: SqlDialect,
  keys: readonly Key[],
): Promise<Map<string, ArchiveRow>> {
  if (rowLocks === "update") {
    await queries.updateTable("archives").set((each) => ({
      last_position: each.ref("last_position"),
    })).where("account_key", "in", keys).execute();
  }
  const query = queries.selectFrom("archives").select([
    "account_key",
    "owner_key",
    "last_position",
    "visible_at",
    "most_late",
    "oldest_sent_at",
    "preferences",
  ]).where("account_key", "in", keys).orderBy("account_key");
  const rows = await (rowLocks === "for-update" ? query.forUpdate() : query).execute();
  return new Map(rows.map((row) => [bufferOf(row.account_key).toString("hex"), row]));
}

function stateOf(row: ArchiveRow): ArchiveState {
  return {
    key: bufferOf(row.account_key),
    owner: ownerOf(row),
    preferences: readPreferences(row.preferences),
    preferencesContent: row.preferences,
    lastPosition: Number(row.last_position),
    visibleAt: Number(row.visible_at),
    mostLate: Number(row.most_late),
    oldestSentAt: Number(row.oldest_sent_at),
    hasNews: false,
  };
}

/** Returns bytes as a key, without copying them. */
export function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Key {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength);
}

/** Reads the preferences of an archive's row. */
export function readPreferences(content: Uint8Array | null): ArchivePreferences | undefined {
  // `writePreferences` wrote them.
  return content === null ? undefined : JSON.parse(new TextDecoder().decode(content));
}

/** Sets the preferences of an archive within a transaction. */
export async function writePreferences(
  queries: Queries,
  dialect: SqlDialect,
  archive: string,
  { byDefault, always, never }: ArchivePreferences,
): Promise<void> {
  const preferences = new TextEncoder().encode(JSON.stringify({ byDefault, always, never }));
  const { key } = (await lockArchives(queries, dialect, [archive])).get(archive)!;
  await queries.updateTable("archives").set({ preferences }).where("account_key", "=", key)
    .execute();
}
