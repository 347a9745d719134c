import type { ArchiveId } from "../archive_store.ts";
import type { Key } from "../sql/keys.ts";
import { keyOf } from "../sql/keys.ts";
import type { CassandraSession, CqlRow, CqlValue, ReadLevel } from "./cassandra_session.ts";
import { forEach } from "./cassandra_session.ts";

/** Positions of a bucket. */
export const BUCKET_POSITIONS = 2_048;
/** Bytes of stanzas after which a bucket takes no more. */
export const BUCKET_BYTES = 64 * 1_048_576;
/** Sequences that one partition of `archive_ids` is for. */
const ID_BLOCK = 1_024;
/** Positions that one partition of `archive_peers` is for. */
const PEER_BLOCK = 1_048_576;
const DAY_MS = 86_400_000;

/** Values of a partition's key, in the order of its columns. */
export type PartitionKey = readonly CqlValue[];

/** The static columns of a bucket, and which bucket it is. */
export interface Bucket {
  readonly log: string;
  readonly number: number;
  /** Undefined: nothing has been stored in it. */
  readonly lastPosition: number | undefined;
  readonly bytes: number;
  /** Times of sending, the earliest and the latest. Undefined as `lastPosition` is. */
  readonly firstSent: number | undefined;
  readonly lastSent: number | undefined;
  readonly isSealed: boolean;
  readonly isClosed: boolean;
}

/** A row of `archive_buckets`. */
export interface BucketEntry {
  readonly number: number;
  /** Undefined: the bucket is not sealed, and some of its messages were removed. */
  readonly lastPosition: number | undefined;
  readonly firstSent: number;
  readonly lastSent: number;
  readonly hasHoles: boolean;
}

export function firstPositionOf(bucket: number): number {
  return bucket * BUCKET_POSITIONS;
}

export function bucketOf(position: number): number {
  return Math.floor(position / BUCKET_POSITIONS);
}

/** Returns the partition of `archive_ids` that an id lies in. */
export function idPartition(log: string, { process, sequence }: ArchiveId): PartitionKey {
  return [log, process, Math.floor(sequence / ID_BLOCK)];
}

/** Returns the block of `archive_peers` that a position lies in. */
export function peerBlockOf(position: number): number {
  return Math.floor(position / PEER_BLOCK);
}

/** Returns the positions of a block, both included. */
export function positionsOfPeerBlock(block: number): { readonly lo: number; readonly hi: number } {
  return { lo: block * PEER_BLOCK, hi: (block + 1) * PEER_BLOCK - 1 };
}

/** Returns the day on which a message was sent, for `archive_days`. */
export function dayOf(sentAtMs: number): number {
  return Math.floor(sentAtMs / DAY_MS);
}

/** Returns the keys under which `archive_peers` has a message. */
export function peerKeys(peer: Uint8Array, resource: Uint8Array): readonly Key[] {
  const bare = peer as Key; // a key that was written is a key that is read
  return resource.length === 0 ? [bare] : [bare, fullPeerKey(bare, resource)];
}

/** Returns the key of a full JID, from that of its bare JID. */
export function fullPeerKey(peer: Uint8Array, resource: Uint8Array): Key {
  const hex = (bytes: Uint8Array) => bytes.toHex();
  return keyOf(`${hex(peer)}/${hex(resource)}`);
}

/** Returns a text for an id, to find it by. */
export function textOfId({ process, sequence }: ArchiveId): string {
  return `${process} ${sequence}`;
}

const STATICS = "last_position, bytes, first_sent, last_sent, is_sealed, is_closed";

/** Reads the static columns of a bucket. */
export async function readBucket(
  session: CassandraSession,
  log: string,
  number: number,
  level: ReadLevel,
): Promise<Bucket> {
  const [row] = await session.select(
    `SELECT DISTINCT log, bucket, ${STATICS} FROM archive_messages WHERE log = ? AND bucket = ?`,
    [log, number],
    level,
  );
  return {
    log,
    number,
    lastPosition: row?.number("last_position"),
    bytes: row?.number("bytes") ?? 0,
    firstSent: row?.number("first_sent"),
    lastSent: row?.number("last_sent"),
    isSealed: row?.isTrue("is_sealed") ?? false,
    isClosed: row?.isTrue("is_closed") ?? false,
  };
}

function entryOf(row: CqlRow): BucketEntry {
  return {
    number: row.integer("bucket"),
    lastPosition: row.number("last_position"),
    firstSent: row.number("first_sent") ?? 0,
    lastSent: row.number("last_sent") ?? 0,
    hasHoles: row.isTrue("has_holes"),
  };
}

/** Reads the next sealed buckets from `from` on, in a direction. */
export async function readEntries(
  session: CassandraSession,
  log: string,
  { from, direction, limit, level }: {
    readonly from: number;
    readonly direction: "asc" | "desc";
    readonly limit: number;
    readonly level: ReadLevel;
  },
): Promise<readonly BucketEntry[]> {
  const [comparison, order] = direction === "asc" ? [">=", "ASC"] : ["<=", "DESC"];
  const rows = await session.select(
    "SELECT bucket, last_position, first_sent, last_sent, has_holes FROM archive_buckets " +
      `WHERE log = ? AND bucket ${comparison} ? ORDER BY bucket ${order} LIMIT ?`,
    [log, from, limit],
    level,
  );
  return rows.map(entryOf);
}

/** The highest number of a bucket. */
export const LAST_BUCKET = 0x7fff_ffff;

/** The end of a log at one moment. */
export interface LogEnd {
  /** Its last bucket, which may be empty or sealed. */
  readonly bucket: Bucket;
  /** True when messages of that bucket were removed. */
  readonly hasHoles: boolean;
  /** The last position of the log; undefined while it is empty. */
  readonly lastPosition: number | undefined;
}

/** Finds the end of a log. */
export async function findEnd(
  session: CassandraSession,
  log: string,
  level: ReadLevel,
): Promise<LogEnd> {
  const [last] = await readEntries(session, log, {
    from: LAST_BUCKET,
    direction: "desc",
    limit: 1,
    // The table knows no lightweight transactions.
    level: level === "serial" ? "strong" : level,
  });
  const number = last === undefined ? 0 : last.number + (last.lastPosition === undefined ? 0 : 1);
  let bucket = await readBucket(session, log, number, level);
  let lastPosition = bucket.lastPosition ?? last?.lastPosition;
  // Another datacenter may know of buckets whose entries have not arrived here.
  while (bucket.isSealed) {
    const next = await readBucket(session, log, bucket.number + 1, level);
    if (next.lastPosition === undefined && !next.isClosed) break;
    bucket = next;
    lastPosition = next.lastPosition ?? lastPosition;
  }
  const hasHoles = last?.number === bucket.number && last.hasHoles;
  return { bucket, hasHoles, lastPosition };
}

/** A message of a log without its content. */
export interface LogRow extends ArchiveId {
  readonly position: number;
  readonly sentAtMs: number;
}

export function logRowOf(row: CqlRow): LogRow {
  return {
    position: row.integer("position"),
    process: row.integer("process"),
    sequence: row.integer("sequence"),
    sentAtMs: row.integer("sent_at"),
  };
}

/** Claims of messages to positions, by `textOfId`. */
export type Claims = ReadonlyMap<string, readonly number[]>;

/** Reads the positions that messages have been given. A message need not lie there. */
export async function readClaims(
  session: CassandraSession,
  log: string,
  ids: readonly ArchiveId[],
  level: ReadLevel,
): Promise<Claims> {
  const claims = new Map<string, number[]>();
  const partitions = Map.groupBy(ids, (id) => idPartition(log, id).join(" "));
  await forEach(partitions.values(), async (some) => {
    const sequences = [...new Set(some.map(({ sequence }) => sequence))];
    const rows = await session.select(
      "SELECT sequence, position FROM archive_ids " +
        "WHERE log = ? AND process = ? AND block = ? AND sequence IN ?",
      [...idPartition(log, some[0]!), sequences],
      level,
    );
    for (const row of rows) {
      const id = textOfId({ process: some[0]!.process, sequence: row.integer("sequence") });
      const positions = claims.get(id);
      if (positions === undefined) claims.set(id, [row.integer("position")]);
      else positions.push(row.integer("position"));
    }
  });
  return claims;
}

/** Positions of one bucket that one statement reads. */
const POSITIONS_AT_ONCE = 64;

/** Reads the rows at some positions, in no order. */
export async function readPositions(
  session: CassandraSession,
  log: string,
  positions: readonly number[],
  { columns, level }: { readonly columns: string; readonly level: ReadLevel },
): Promise<readonly CqlRow[]> {
  const parts = [...Map.groupBy(new Set(positions), bucketOf)].flatMap(([bucket, ofBucket]) =>
    Array.from(
      { length: Math.ceil(ofBucket.length / POSITIONS_AT_ONCE) },
      (_, i) =>
        [bucket, ofBucket.slice(i * POSITIONS_AT_ONCE, (i + 1) * POSITIONS_AT_ONCE)] as const,
    )
  );
  const found = await forEach(parts, ([bucket, some]) =>
    session.select(
      `SELECT ${columns} FROM archive_messages WHERE log = ? AND bucket = ? AND position IN ?`,
      [log, bucket, some],
      level,
    ));
  return found.flat();
}

/** Returns the positions where messages lie, by `textOfId`, among those that claims name. */
export async function verifyClaims(
  session: CassandraSession,
  log: string,
  claims: Claims,
  level: ReadLevel,
): Promise<ReadonlyMap<string, number>> {
  const positions = [...claims.values()].flat();
  const columns = "position, process, sequence, sent_at";
  const rows = await readPositions(session, log, positions, { columns, level });
  const places = new Map<string, number>();
  for (const row of rows) {
    const { position, ...id } = logRowOf(row);
    const text = textOfId(id);
    if (claims.get(text)?.includes(position)) places.set(text, position);
  }
  return places;
}
