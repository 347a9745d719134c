import type { ArchivePreferences } from "../archive_store.ts";
import { bareJidOfArchive } from "../archive_store.ts";
import type { Key } from "../sql/keys.ts";
import { keyOf } from "../sql/keys.ts";
import { storageError } from "../storage_error.ts";
import type { CassandraSession, ReadLevel, Transacted } from "./cassandra_session.ts";

/** Attempts to make an archive that others make or remove at the same time. */
const MAX_ATTEMPTS = 20;

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

/** Finds an archive, or makes it. */
export async function findOrMakeArchive(
  session: CassandraSession,
  keys: ArchiveKeys,
  level: ReadLevel,
): Promise<ArchiveRow> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const row = await findArchive(session, keys, level);
    if (row !== undefined) return row;
    const log = crypto.randomUUID();
    const outcome = await session.transact({
      query: "INSERT INTO archives (owner, archive, log) VALUES (?, ?, ?) IF NOT EXISTS",
      params: [keys.owner, keys.archive, log],
    });
    if (outcome.kind === "applied") return { log, preferences: undefined };
    if (outcome.kind === "unknown") {
      if (!session.isPatient) throw outcome.failure;
      await session.pause(attempt);
      level = "serial"; // completes what may have been left in the middle
    }
    // Refused: another node has been faster.
  }
  throw storageError("conflict", { action: "make an archive in", place: "the database" });
}

/** Changes the preferences of an archive, unless its row has changed since it was read. */
export async function writePreferences(
  session: CassandraSession,
  keys: ArchiveKeys,
  log: string,
  { byDefault, always, never }: ArchivePreferences,
): Promise<Transacted> {
  const text = JSON.stringify({ byDefault, always, never });
  return await session.transact({
    query: "UPDATE archives SET preferences = ? WHERE owner = ? AND archive = ? IF log = ?",
    params: [new TextEncoder().encode(text), keys.owner, keys.archive, log],
  });
}
