import { LRUCache } from "lru-cache";
import type { ArchivedMessage, ArchiveOutcome } from "../archive_store.ts";
import { bareJidOfArchive, isArchiveWanted } from "../archive_store.ts";
import { keyOf } from "../sql/keys.ts";
import { storageError } from "../storage_error.ts";
import { archiveKeys, findOrMakeArchive } from "./archive_directory.ts";

import {
  BUCKET_BYTES,
  BUCKET_POSITIONS,
  bucketOf,
  dayOf,
  findEnd,
  firstPositionOf,
  idPartition,
  peerBlockOf,
  peerKeys,
  readBucket,
  readClaims,
  textOfId,
  verifyClaims,
} from "./archive_log.ts";
import type { Bucket } from "./archive_log.ts";
import type { CassandraSession, CqlStatement } from "./cassandra_session.ts";
import { forEach } from "./cassandra_session.ts";

/** Messages of one lightweight transaction, and bytes after which it takes no more. */
const [MAX_ROWS, FULL_BYTES] = [256, 1_048_576];
/** Attempts to add to an archive that others write to at the same time. */
const MAX_ATTEMPTS = 20;
/** Archives whose ends are remembered. */
const MAX_ENDS = 20_000;
/** Days of buckets that are known to be noted, for so long. */
const MAX_NOTED_DAYS = 50_000;
export const NOTED_FOR_MS = 30 * 60_000;
/** Partitions of one day in `archive_days`. */
export const DAY_SHARDS = 16;

/** A message that an archive is to get, and the row that it becomes. */
interface Pending {
  readonly message: ArchivedMessage;
  readonly id: string;
  readonly peer: Uint8Array;
  readonly resource: Uint8Array;
  readonly sentAtMs: number;
}

/** Messages with the positions that they are to get, and their bucket behind them. */
interface Chunk {
  readonly rows: readonly (Pending & { readonly position: number })[];
  readonly before: Bucket;
  readonly after: Bucket;
}

/** Returns the partition of a day that a log's buckets are in. */
export function dayShardOf(log: string): number {
  return Number.parseInt(log.slice(-2), 16) % DAY_SHARDS;
}

/**
 * Adds messages to archives.
 *
 * A message is stored in two steps. Its claims come first: rows of `archive_ids` and `archive_peers`
 * that name the position which it is to have. Then one lightweight transaction moves the end of the
 * log from the position that this node knows, and writes the messages with it. It is refused when
 * another node has moved the end meanwhile. The claims to positions that others have got mean nothing.
 *
 * A message that is in the log already has a claim that can be read, as the claim was there first. So
 * the end of the log is read before the claims: a message without one is not below that end, and a
 * transaction that begins at that end stores it once.
 */
export class ArchiveAppender {
  /** Ends of logs as this node has left them. */
  readonly #ends = new LRUCache<string, Bucket>({ max: MAX_ENDS });
  readonly #notedDays = new LRUCache<string, true>({
    max: MAX_NOTED_DAYS,
    ttl: NOTED_FOR_MS,
    ttlResolution: 0, // it sets no timers
  });

  /** Forgets the end of a log, because it was removed. */
  forget(log: string): void {
    this.#ends.delete(log);
  }

  /** Adds messages to one archive. No other call of this process adds to it meanwhile. */
  async append(
    session: CassandraSession,
    archive: string,
    messages: readonly ArchivedMessage[],
    nowMs: number,
  ): Promise<readonly ArchiveOutcome[]> {
    const keys = archiveKeys(archive);
    const all = messages.map((message) => pendingOf(message, nowMs));
    const outcomes = new Map<string, ArchiveOutcome>();
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const row = await findOrMakeArchive(session, keys, "strong");
      const isDone = await this.#appendTo(session, row.log, {
        pending: uniqueOf(all.filter(({ id }) => !outcomes.has(id))),
        wants: (message) => isArchiveWanted(row.preferences, message),
        outcomes,
      });
      if (isDone) return all.map(({ id }) => outcomes.get(id)!); // each has one
      this.forget(row.log); // the archive was removed: what is left goes to the next one
      await session.pause(attempt);
    }
    throw conflict();
  }

  /** Adds messages to a log. False when it is closed. */
  async #appendTo(
    session: CassandraSession,
    log: string,
    { pending, wants, outcomes }: {
      readonly pending: readonly Pending[];
      readonly wants: (message: ArchivedMessage) => boolean | "ask-roster";
      readonly outcomes: Map<string, ArchiveOutcome>;
    },
  ): Promise<boolean> {
    let bucket = this.#ends.get(log) ?? (await findEnd(session, log, "strong")).bucket;
    const search = await this.#findStored(session, bucket, pending, "strong");
    bucket = search.bucket;
    let left: readonly Pending[] = search.missing.filter(({ id, message }) => {
      const wanted = wants(message);
      if (wanted !== true) outcomes.set(id, wanted === false ? "unwanted" : "ask-roster");
      return wanted === true;
    });
    for (const { id } of search.stored) outcomes.set(id, "stored");
    for (let attempt = 1; left.length > 0;) {
      if (bucket.isClosed) return false;
      if (bucket.isSealed) {
        bucket = await openNext(session, bucket);
        if (bucket.lastPosition === undefined || bucket.isClosed) continue;
        // Others have begun it.
        const again = await this.#findStored(session, bucket, left, "strong");
        ({ bucket } = again);
        for (const { id } of again.stored) outcomes.set(id, "stored");
        left = again.missing;
        continue;
      }
      const chunk = nextChunk(bucket, left);
      await this.#claim(session, chunk);
      const outcome = await session.transact(...storing(chunk));
      if (outcome.kind === "applied") {
        bucket = chunk.after;
        this.#ends.set(log, bucket);
        for (const { id } of chunk.rows) outcomes.set(id, "stored");
        left = left.slice(chunk.rows.length);
        continue;
      }
      this.forget(log);
      if (outcome.kind === "unknown" && (attempt === MAX_ATTEMPTS || !session.isPatient)) {
        throw outcome.failure;
      }
      if (attempt === MAX_ATTEMPTS) throw conflict();
      await session.pause(attempt++);
      // Now it is seen what has been carried out, also of what was not answered.
      ({ bucket } = await findEnd(session, log, "serial"));
      const again = await this.#findStored(session, bucket, left, "serial");
      for (const { id } of again.stored) outcomes.set(id, "stored");
      left = again.missing;
      if (bucket.isClosed) await dropClaims(session, log, chunk.rows.map(withPosition));
    }
    return true;
  }

  /**
   * Finds out which messages a log has. Where there are claims, transactions that others left in the
   * middle are completed first: what they have stored must be seen.
   */
  async #findStored(
    session: CassandraSession,
    end: Bucket,
    pending: readonly Pending[],
    level: "strong" | "serial",
  ): Promise<{
    readonly bucket: Bucket;
    readonly stored: readonly Pending[];
    readonly missing: readonly Pending[];
  }> {
    const { log } = end;
    const ids = pending.map(({ message }) => message);
    let claims = await readClaims(session, log, ids, "strong");
    if (claims.size === 0) return { bucket: end, stored: [], missing: pending };
    let bucket = end;
    if (level !== "serial") {
      ({ bucket } = await findEnd(session, log, "serial"));
      claims = await readClaims(session, log, ids, "strong"); // the end comes first
    }
    const places = await verifyClaims(session, log, claims, "strong");
    const lost = pending.flatMap((each) =>
      (claims.get(each.id) ?? []).filter((position) =>
        position <= (bucket.lastPosition ?? firstPositionOf(bucket.number) - 1) &&
        places.get(each.id) !== position
      ).map((position) => ({ ...each, position }))
    );
    await dropClaims(session, log, lost.map(withPosition));
    return {
      bucket,
      stored: pending.filter(({ id }) => places.has(id)),
      missing: pending.filter(({ id }) => !places.has(id)),
    };
  }

  /** Writes the claims of messages to their positions. */
  async #claim(session: CassandraSession, { rows, before: { log, number } }: Chunk): Promise<void> {
    const ids = Map.groupBy(rows, ({ message }) => idPartition(log, message).join(" "));
    const peers = Map.groupBy(
      rows.flatMap((row) => peerKeys(row.peer, row.resource).map((key) => ({ row, key }))),
      ({ row, key }) => `${key.toString("hex")} ${peerBlockOf(row.position)}`,
    );
    const partitions: readonly CqlStatement[][] = [
      ...ids.values().map((some) => some.map((row) => idClaim(log, row))),
      ...peers.values().map((some) => some.map(({ row, key }) => peerClaim(log, row, key))),
    ];
    await forEach(partitions, (statements) => session.write(...statements));
    await this.#noteDays(session, { log, bucket: number, rows });
  }

  /** Notes on which days the messages of a bucket were sent, for those who remove old ones. */
  async #noteDays(
    session: CassandraSession,
    { log, bucket, rows }: {
      readonly log: string;
      readonly bucket: number;
      readonly rows: readonly Pending[];
    },
  ): Promise<void> {
    const bare = bareJidOfArchive(rows[0]!.message.archive);
    const host = bare.slice(bare.indexOf("@") + 1);
    for (const day of new Set(rows.map(({ sentAtMs }) => dayOf(sentAtMs)))) {
      const name = `${log} ${bucket} ${day}`;
      if (this.#notedDays.has(name)) continue;
      if (!this.#notedDays.has(`${day}`)) {
        await session.write({
          query: "INSERT INTO archive_known_days (id, day) VALUES (0, ?)",
          params: [day],
        });
        this.#notedDays.set(`${day}`, true);
      }
      await session.write({
        query: "INSERT INTO archive_days (day, shard, log, bucket, host) VALUES (?, ?, ?, ?, ?)",
        params: [day, dayShardOf(log), log, bucket, host],
      });
      this.#notedDays.set(name, true);
    }
  }
}

/**
 * Notes that a bucket is sealed and returns the one behind it. What is in the sealed bucket is on
 * enough replicas first, so that nobody sees the next one without it.
 */
export async function openNext(session: CassandraSession, sealed: Bucket): Promise<Bucket> {
  const { log, number, lastPosition, firstSent, lastSent } = await readBucket(
    session,
    sealed.log,
    sealed.number,
    "serial",
  );
  const next = await readBucket(session, log, number + 1, "strong");
  if (next.lastPosition !== undefined || next.isClosed) return next; // it has been noted
  // Undefined: the log has been removed, and the next bucket is closed or will be.
  if (lastPosition !== undefined && firstSent !== undefined && lastSent !== undefined) {
    await session.write({
      query: "INSERT INTO archive_buckets (log, bucket, last_position, first_sent, last_sent) " +
        "VALUES (?, ?, ?, ?, ?)",
      params: [log, number, lastPosition, firstSent, lastSent],
    });
  }
  return next;
}

function pendingOf(message: ArchivedMessage, nowMs: number): Pending {
  return {
    message,
    id: textOfId(message),
    peer: keyOf(message.peer.bare),
    resource: new TextEncoder().encode(message.peer.resourcepart),
    // Another clock may be ahead of this one. Nothing is visible before it was sent.
    sentAtMs: Math.min(Math.trunc(message.sentAtMs), Math.trunc(nowMs)),
  };
}

/** Leaves the first of messages that have one id. */
function uniqueOf(pending: readonly Pending[]): readonly Pending[] {
  const seen = new Set<string>();
  return pending.filter(({ id }) => !seen.has(id) && seen.add(id));
}

function withPosition(
  { message: { process, sequence }, peer, resource, position }: Pending & {
    readonly position: number;
  },
): ClaimRow {
  return { process, sequence, peer, resource, position };
}

function conflict() {
  return storageError("conflict", { action: "archive messages in", place: "an archive" });
}

/** Takes as many messages as fit into the bucket and one transaction. */
function nextChunk(before: Bucket, left: readonly Pending[]): Chunk {
  const first = (before.lastPosition ?? firstPositionOf(before.number) - 1) + 1;
  const room = firstPositionOf(before.number) + BUCKET_POSITIONS - first;
  const rows: (Pending & { readonly position: number })[] = [];
  let bytes = 0;
  for (const each of left) {
    if (rows.length === Math.min(room, MAX_ROWS) || bytes >= FULL_BYTES) break;
    rows.push({ ...each, position: first + rows.length });
    bytes += each.message.stanza.length;
  }
  const times = rows.map(({ sentAtMs }) => sentAtMs);
  const after: Bucket = {
    ...before,
    lastPosition: first + rows.length - 1,
    bytes: before.bytes + bytes,
    firstSent: Math.min(before.firstSent ?? Infinity, ...times),
    lastSent: Math.max(before.lastSent ?? -Infinity, ...times),
    isSealed: rows.length === room || before.bytes + bytes >= BUCKET_BYTES,
  };
  return { rows, before, after };
}

/** Returns the transaction that stores messages. */
function storing({ rows, before, after }: Chunk): readonly CqlStatement[] {
  const { log, number } = before;
  return [
    {
      query: "UPDATE archive_messages SET last_position = ?, bytes = ?, first_sent = ?, " +
        "last_sent = ?, is_sealed = ? WHERE log = ? AND bucket = ? " +
        "IF last_position = ? AND is_closed = null",
      params: [
        ...[after.lastPosition!, after.bytes, after.firstSent!, after.lastSent!, after.isSealed],
        ...[log, number, before.lastPosition ?? null],
      ],
    },
    ...rows.map(({ position, message, peer, resource, sentAtMs }) => ({
      query: "INSERT INTO archive_messages " +
        "(log, bucket, position, process, sequence, peer, peer_resource, sent_at, stanza) " +
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
      params: [
        ...[log, bucketOf(position), position, message.process, message.sequence],
        ...[peer, resource, sentAtMs, message.stanza],
      ],
    })),
  ];
}

function idClaim(
  log: string,
  { message, position }: Pending & { readonly position: number },
): CqlStatement {
  return {
    query:
      "INSERT INTO archive_ids (log, process, block, sequence, position) VALUES (?, ?, ?, ?, ?)",
    params: [...idPartition(log, message), message.sequence, position],
  };
}

function peerClaim(
  log: string,
  { message, position, sentAtMs }: Pending & { readonly position: number },
  key: Uint8Array,
): CqlStatement {
  return {
    query: "INSERT INTO archive_peers (log, peer, block, position, process, sequence, sent_at) " +
      "VALUES (?, ?, ?, ?, ?, ?, ?)",
    params: [
      ...[log, key, peerBlockOf(position), position],
      ...[message.process, message.sequence, sentAtMs],
    ],
  };
}

/** A claim, and what it is found by. */
export interface ClaimRow {
  readonly process: number;
  readonly sequence: number;
  readonly peer: Uint8Array;
  readonly resource: Uint8Array;
  readonly position: number;
}

/** Removes claims to positions that other messages have, or that are empty from now on. */
export async function dropClaims(
  session: CassandraSession,
  log: string,
  claims: readonly ClaimRow[],
): Promise<void> {
  const ids = Map.groupBy(claims, (claim) => idPartition(log, claim).join(" "));
  const peers = Map.groupBy(
    claims.flatMap((claim) => peerKeys(claim.peer, claim.resource).map((key) => ({ claim, key }))),
    ({ claim, key }) => `${key.toString("hex")} ${peerBlockOf(claim.position)}`,
  );
  const partitions: readonly CqlStatement[][] = [
    ...ids.values().map((some) =>
      some.map((claim) => ({
        query: "DELETE FROM archive_ids " +
          "WHERE log = ? AND process = ? AND block = ? AND sequence = ? AND position = ?",
        params: [...idPartition(log, claim), claim.sequence, claim.position],
      }))
    ),
    ...peers.values().map((some) =>
      some.map(({ claim, key }) => ({
        query: "DELETE FROM archive_peers WHERE log = ? AND peer = ? AND block = ? " +
          "AND position = ? AND process = ? AND sequence = ?",
        params: [
          ...[log, key, peerBlockOf(claim.position)],
          ...[claim.position, claim.process, claim.sequence],
        ],
      }))
    ),
  ];
  await forEach(partitions, (statements) => session.write(...statements));
}
