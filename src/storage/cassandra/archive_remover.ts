import type { Clock } from "../../base/mod.ts";
import { storageError } from "../storage_error.ts";
import type { ArchiveAge } from "../archive_store.ts";
import { DAY_SHARDS, dayShardOf, dropClaims, NOTED_FOR_MS, openNext } from "./archive_appender.ts";
import type { ClaimRow } from "./archive_appender.ts";
import { archiveKeys, findArchive } from "./archive_directory.ts";
import {
  dayOf,
  findEnd,
  firstPositionOf,
  idPartition,
  peerBlockOf,
  peerKeys,
  readBucket,
  readEntries,
} from "./archive_log.ts";
import type { Bucket } from "./archive_log.ts";
import { isContention } from "./cassandra_failure.ts";
import type { CassandraSession, CqlRow, CqlStatement } from "./cassandra_session.ts";
import { forEach } from "./cassandra_session.ts";
import type { Key } from "../sql/keys.ts";

/** Rows that one statement reads. */
const ROWS_AT_ONCE = 1_000;
/** Messages that one statement removes. */
const REMOVED_AT_ONCE = 200;
const MAX_ATTEMPTS = 20;
/** Seconds for which the mark of a removed bucket is kept, for writers that were late. */
const MARK_S = 10 * 86_400;
/**
 * A node notes a day again after `NOTED_FOR_MS`. Notes that were written before are removed, so that
 * one which comes while they are looked at is kept. Clocks may differ by some minutes.
 */
const OLD_NOTE_MS = 4 * NOTED_FOR_MS;

/** A row of `archive_days`: a bucket that has messages which were sent on a day. */
export interface BucketNote {
  readonly day: number;
  readonly shard: number;
  readonly log: string;
  readonly bucket: number;
}

/** Removes archives and old messages. */
export class ArchiveRemover {
  readonly #clock: Clock;
  readonly #forget: (log: string) => void;

  /** @param forget called with the name of a log whose end has changed */
  constructor(clock: Clock, forget: (log: string) => void) {
    this.#clock = clock;
    this.#forget = forget;
  }

  /**
   * Removes the archives of a bare JID but the one to keep, and what earlier calls have left.
   *
   * An archive loses its row first, so that what is added from now on goes to another log. Then its
   * log is closed: nobody adds to it who has read that row. Then the log is removed.
   */
  async removeAll(
    session: CassandraSession,
    owner: Key,
    keep?: () => Promise<string | undefined>,
  ): Promise<void> {
    for (;;) {
      const found = await session.select(
        "SELECT archive, log FROM archives WHERE owner = ?",
        [owner],
        "serial",
      );
      const key = await keep?.();
      const kept = key === undefined ? undefined : archiveKeys(key).archive;
      const rows = found.filter((row) => kept?.equals(row.bytes("archive")!) !== true);
      for (const row of rows) await this.#detach(session, owner, row);
      const logs = await session.select(
        "SELECT log FROM archive_removals WHERE owner = ?",
        [owner],
        "strong",
      );
      for (const row of logs) await this.#removeLog(session, owner, row.text("log"));
      if (rows.length === 0) return; // nobody has made another one meanwhile
    }
  }

  /** Removes old messages of one archive, in steps; returns their number. */
  async removeOldOf(
    session: CassandraSession,
    { archive, sentBeforeMs }: { readonly archive: string; readonly sentBeforeMs: number },
    limit: number,
  ): Promise<number> {
    const row = await findArchive(session, archiveKeys(archive), "strong");
    if (row === undefined) return 0;
    const { log } = row;
    const { bucket: last } = await findEnd(session, log, "strong");
    let removed = 0;
    for (let from = 0; removed < limit;) {
      const entries = await readEntries(session, log, {
        from,
        direction: "asc",
        limit: ROWS_AT_ONCE,
        level: "strong",
      });
      for (const { number, firstSent } of entries) {
        if (number >= last.number || firstSent >= sentBeforeMs) continue;
        removed += await this.removeOldIn(session, { log, number, sentBeforeMs }, limit - removed);
      }
      const end = entries.at(-1)?.number;
      if (end === undefined || entries.length < ROWS_AT_ONCE) break;
      from = end + 1;
    }
    return removed +
      await this.removeOldIn(session, { log, number: last.number, sentBeforeMs }, limit - removed);
  }

  /**
   * Finds buckets with messages that may be old enough, in steps of those of one day. The caller calls
   * `done` once none of them is left.
   *
   * @param behind the search begins behind this note
   */
  async *findOld(
    session: CassandraSession,
    { sentBeforeMs, host }: ArchiveAge,
    behind: BucketNote | undefined,
  ): AsyncGenerator<{ readonly note: BucketNote; done(): Promise<void> }> {
    const nowMs = this.#clock.wallMs();
    const days = await session.select(
      "SELECT day FROM archive_known_days WHERE id = 0 AND day <= ?",
      [dayOf(sentBeforeMs - 1)],
      "strong",
    );
    for (const row of days) {
      const day = row.integer("day");
      if (behind !== undefined && day < behind.day) continue;
      const isOver = day < dayOf(sentBeforeMs);
      const isBegun = day === behind?.day;
      for (let shard = isBegun ? behind!.shard : 0; shard < DAY_SHARDS; shard++) {
        let after = isBegun && shard === behind!.shard ? behind : undefined;
        for (;;) {
          const notes = await readNotes(session, { day, shard, after });
          for (const note of notes) {
            if (host !== undefined && note.host !== host) continue;
            const done = async () => {
              if (!isOver) return;
              await session.write({
                query: "DELETE FROM archive_days USING TIMESTAMP ? " +
                  "WHERE day = ? AND shard = ? AND log = ? AND bucket = ?",
                params: [(nowMs - OLD_NOTE_MS) * 1_000, day, shard, note.log, note.bucket],
              });
            };
            yield { note, done };
          }
          if (notes.length < ROWS_AT_ONCE) break;
          after = notes.at(-1);
        }
      }
      if (isOver) await this.#forgetDay(session, day, nowMs);
    }
  }

  /** Removes old messages of one bucket, at most `limit`; returns their number. */
  async removeOldIn(
    session: CassandraSession,
    { log, number, sentBeforeMs }: {
      readonly log: string;
      readonly number: number;
      readonly sentBeforeMs: number;
    },
    limit: number,
  ): Promise<number> {
    let removed = 0;
    let isEmpty = true;
    for await (const rows of readContents(session, log, number)) {
      const old = rows.filter((row) => row.integer("sent_at") < sentBeforeMs)
        .slice(0, limit - removed);
      if (old.length < rows.length) isEmpty = false;
      for (let i = 0; i < old.length; i += REMOVED_AT_ONCE) {
        await removeRows(session, { log, number }, old.slice(i, i + REMOVED_AT_ONCE));
      }
      removed += old.length;
      if (removed === limit) return removed;
    }
    if (isEmpty) await this.#dropSealed(session, log, number);
    return removed;
  }

  /** Removes an empty bucket that another sealed one follows. */
  async #dropSealed(session: CassandraSession, log: string, number: number): Promise<void> {
    // The last entry says where the log goes on.
    const [entry, next] = await readEntries(session, log, {
      from: number,
      direction: "asc",
      limit: 2,
      level: "strong",
    });
    if (entry?.number !== number || next?.lastPosition === undefined) return;
    await this.#dropBucket(session, await readBucket(session, log, number, "serial"));
    await session.write({
      query: "DELETE FROM archive_buckets WHERE log = ? AND bucket = ?",
      params: [log, number],
    });
  }

  /** Takes the row of an archive away. */
  async #detach(session: CassandraSession, owner: Key, row: CqlRow): Promise<void> {
    const log = row.text("log");
    await session.write({
      query: "INSERT INTO archive_removals (owner, log) VALUES (?, ?)",
      params: [owner, log],
    });
    for (let attempt = 1;; attempt++) {
      const outcome = await session.transact({
        query: "DELETE FROM archives WHERE owner = ? AND archive = ? IF log = ?",
        params: [owner, row.bytes("archive")!, log],
      });
      if (outcome.kind !== "unknown") return;
      // The next call goes on.
      if (!isContention(outcome.failure) || !session.isPatient) throw outcome.failure;
      await session.pause(attempt);
    }
  }

  async #removeLog(session: CassandraSession, owner: Key, log: string): Promise<void> {
    await this.#close(session, log);
    const { bucket } = await findEnd(session, log, "serial");
    for (let from = bucket.number; from >= 0;) {
      const entries = await readEntries(session, log, {
        from,
        direction: "desc",
        limit: ROWS_AT_ONCE,
        level: "strong",
      });
      const numbers = new Set(entries.map(({ number }) => number));
      if (from === bucket.number) numbers.add(from);
      for (const number of numbers) {
        await removeContents(session, log, number);
        await this.#dropBucket(session, await readBucket(session, log, number, "serial"));
      }
      from = entries.length < ROWS_AT_ONCE ? -1 : entries.at(-1)!.number - 1;
    }
    await session.write({ query: "DELETE FROM archive_buckets WHERE log = ?", params: [log] });
    await session.write({
      query: "DELETE FROM archive_removals WHERE owner = ? AND log = ?",
      params: [owner, log],
    });
    this.#forget(log);
  }

  /** Closes a log: nothing is added to it from now on. */
  async #close(session: CassandraSession, log: string): Promise<void> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const { bucket } = await findEnd(session, log, "serial");
      if (bucket.isClosed) return;
      if (bucket.isSealed) {
        const next = await openNext(session, bucket);
        if (next.isClosed) return;
        if (next.lastPosition !== undefined) continue;
        if (await this.#mark(session, next)) return;
      } else if (await this.#mark(session, bucket)) return;
      await session.pause(attempt);
    }
    throw storageError("conflict", { action: "remove an archive from", place: "the database" });
  }

  async #mark(session: CassandraSession, bucket: Bucket): Promise<boolean> {
    const outcome = await session.transact({
      query: "UPDATE archive_messages SET is_closed = true WHERE log = ? AND bucket = ? " +
        "IF last_position = ? AND is_closed = null",
      params: [bucket.log, bucket.number, bucket.lastPosition ?? null],
    });
    return outcome.kind === "applied";
  }

  /**
   * Removes the rows of a bucket. A mark stays for some days: a writer that has been late for so long
   * finds the bucket closed, and not empty.
   */
  async #dropBucket(session: CassandraSession, bucket: Bucket): Promise<void> {
    const { log, number } = bucket;
    let { lastPosition } = bucket;
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const outcome = await session.transact(
        {
          query: `UPDATE archive_messages USING TTL ${MARK_S} SET is_closed = true ` +
            "WHERE log = ? AND bucket = ? IF last_position = ?",
          params: [log, number, lastPosition ?? null],
        },
        {
          query: "DELETE last_position, bytes, first_sent, last_sent, is_sealed " +
            "FROM archive_messages WHERE log = ? AND bucket = ?",
          params: [log, number],
        },
        {
          query: "DELETE FROM archive_messages WHERE log = ? AND bucket = ? AND position >= ?",
          params: [log, number, firstPositionOf(number)],
        },
      );
      if (outcome.kind === "applied") return;
      await session.pause(attempt);
      ({ lastPosition } = await readBucket(session, log, number, "serial"));
    }
    throw storageError("conflict", { action: "remove an archive from", place: "the database" });
  }

  /** Forgets a day that has no notes any more. */
  async #forgetDay(session: CassandraSession, day: number, nowMs: number): Promise<void> {
    for (let shard = 0; shard < DAY_SHARDS; shard++) {
      const rows = await session.select(
        "SELECT log FROM archive_days WHERE day = ? AND shard = ? LIMIT 1",
        [day, shard],
        "strong",
      );
      if (rows.length > 0) return;
    }
    // A day is noted before its buckets are, so its note may be older than theirs.
    await session.write({
      query: "DELETE FROM archive_known_days USING TIMESTAMP ? WHERE id = 0 AND day = ?",
      params: [(nowMs - 2 * OLD_NOTE_MS) * 1_000, day],
    });
  }
}

async function readNotes(
  session: CassandraSession,
  { day, shard, after }: {
    readonly day: number;
    readonly shard: number;
    readonly after: Pick<BucketNote, "log" | "bucket"> | undefined;
  },
): Promise<readonly (BucketNote & { readonly host: string })[]> {
  const [condition, place] = after === undefined
    ? ["", []]
    : [" AND (log, bucket) > (?, ?)", [after.log, after.bucket]];
  const rows = await session.select(
    `SELECT log, bucket, host FROM archive_days WHERE day = ? AND shard = ?${condition} LIMIT ?`,
    [day, shard, ...place, ROWS_AT_ONCE],
    "strong",
  );
  return rows.map((row) => ({
    day,
    shard,
    log: row.text("log"),
    bucket: row.integer("bucket"),
    host: row.text("host"),
  }));
}

/** Reads the messages of a bucket without their content, in steps. */
async function* readContents(
  session: CassandraSession,
  log: string,
  number: number,
): AsyncGenerator<readonly CqlRow[]> {
  let from = firstPositionOf(number);
  for (;;) {
    const rows = await session.select(
      "SELECT position, process, sequence, peer, peer_resource, sent_at, " +
        "WRITETIME(sent_at) AS written_at FROM archive_messages " +
        "WHERE log = ? AND bucket = ? AND position >= ? ORDER BY position LIMIT ?",
      [log, number, from, ROWS_AT_ONCE],
      "strong",
    );
    yield rows;
    if (rows.length < ROWS_AT_ONCE) return;
    from = rows.at(-1)!.integer("position") + 1;
  }
}

function claimOf(row: CqlRow): ClaimRow {
  return {
    process: row.integer("process"),
    sequence: row.integer("sequence"),
    position: row.integer("position"),
    peer: row.bytes("peer")!,
    resource: row.bytes("peer_resource") ?? new Uint8Array(),
  };
}

/** Removes some messages of a bucket. Those of a removal that was ended are found again. */
async function removeRows(
  session: CassandraSession,
  { log, number }: { readonly log: string; readonly number: number },
  rows: readonly CqlRow[],
): Promise<void> {
  await session.write({
    query: "UPDATE archive_buckets SET has_holes = true WHERE log = ? AND bucket = ?",
    params: [log, number],
  });
  await dropClaims(session, log, rows.map(claimOf));
  // The time of a row is that of the transaction which wrote it: clocks do not matter.
  await session.write(...rows.map((row) => ({
    query: "DELETE FROM archive_messages USING TIMESTAMP ? " +
      "WHERE log = ? AND bucket = ? AND position = ?",
    params: [row.integer("written_at"), log, number, row.integer("position")],
  })));
}

/** Removes what other tables have about the messages of a bucket of a removed log. */
async function removeContents(
  session: CassandraSession,
  log: string,
  number: number,
): Promise<void> {
  for await (const rows of readContents(session, log, number)) {
    const partitions = new Map<string, CqlStatement>();
    const days = new Set(rows.map((row) => dayOf(row.integer("sent_at"))));
    for (const claim of rows.map(claimOf)) {
      const ids = idPartition(log, claim);
      partitions.set(ids.join(" "), {
        query: "DELETE FROM archive_ids WHERE log = ? AND process = ? AND block = ?",
        params: ids,
      });
      for (const key of peerKeys(claim.peer, claim.resource)) {
        const block = peerBlockOf(claim.position);
        partitions.set(`${key.toString("hex")} ${block}`, {
          query: "DELETE FROM archive_peers WHERE log = ? AND peer = ? AND block = ?",
          params: [log, key, block],
        });
      }
    }
    await forEach(partitions.values(), (statement) => session.write(statement));
    await forEach(days, (day) =>
      session.write({
        query: "DELETE FROM archive_days WHERE day = ? AND shard = ? AND log = ? AND bucket = ?",
        params: [day, dayShardOf(log), log, number],
      }));
  }
}
