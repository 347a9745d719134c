import type { ArchivePreferences } from "../archive_store.ts";
import { bareJidOfArchive } from "../archive_store.ts";
import type { Key } from "../sql/keys.ts";
import { keyOf } from "../sql/keys.ts";
import type { CassandraSession, ReadLevel } from "./cassandra_session.ts";

/** A row of `archives`. */
export interface ArchiveRow {
  readonly log: string;
  readonly preferences: ArchivePreferences | undefined;
}

/** Keys of the row of an archive. */
export interface ArchiveKeys {
  readonly owner: Key;
  readonly archive: Key;
}

export function archiveKeys(archive: string): ArchiveKeys {
  return { owner: keyOf(bareJidOfArchive(archive)), archive: keyOf(archive) };
}

/** Finds an archive; undefined when it has neither messages nor preferences. */
export async function findArchive(
  session: CassandraSession,
  { owner, archive }: ArchiveKeys,
  level: ReadLevel,
): Promise<ArchiveRow | undefined> {
  const [row] = await session.select(
    "SELECT log, preferences FROM archives WHERE owner = ? AND archive = ?",
    [owner, archive],
    level,
  );
  if (row === undefined) return undefined;
  const preferences = row.bytes("preferences");
  return {
    log: row.text("log"),
    // `encodePreferences` wrote them.
    preferences: preferences && JSON.parse(new TextDecoder().decode(preferences)),
  };
}

/** Makes the row of an archive, unless another node has been faster. */
export async function makeArchive(session: CassandraSession, keys: ArchiveKeys): Promise<void> {
  const outcome = await session.transact({
    query: "INSERT INTO archives (owner, archive, log) VALUES (?, ?, ?) IF NOT EXISTS",
    params: [keys.owner, keys.archive, crypto.randomUUID()],
  });
  if (outcome.kind !== "unknown") return;
  if (await findArchive(session, keys, "serial") === undefined) throw outcome.failure;
}

/** Changes the preferences of an archive; false when its row has changed since it was read. */
export async function writePreferences(
  session: CassandraSession,
  keys: ArchiveKeys,
  log: string,
  { byDefault, always, never }: ArchivePreferences,
): Promise<boolean> {
  const text = JSON.stringify({ byDefault, always, never });
  const outcome = await session.transact({
    query: "UPDATE archives SET preferences = ? WHERE owner = ? AND archive = ? IF log = ?",
    params: [new TextEncoder().encode(text), keys.owner, keys.archive, log],
  });
  // What was not answered is told as it is: repeating the request does no harm.
  if (outcome.kind === "unknown") throw outcome.failure;
  return outcome.kind === "applied";
}
