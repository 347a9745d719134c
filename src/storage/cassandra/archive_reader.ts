import type {
  ArchiveEnd,
  ArchiveFilter,
  ArchiveId,
  ArchivePage,
  ArchivePageRequest,
  StoredMessage,
} from "../archive_store.ts";
import { keyOf } from "../sql/keys.ts";
import { archiveKeys, findArchive } from "./archive_directory.ts";
import {
  bucketOf,
  findEnd,
  firstPositionOf,
  fullPeerKey,
  logRowOf,
  peerBlockOf,
  positionsOfPeerBlock,
  readClaims,
  readEntries,
  readPositions,
  textOfId,
  verifyClaims,
} from "./archive_log.ts";
import type { LogEnd, LogRow } from "./archive_log.ts";
import type { CassandraSession, CqlRow } from "./cassandra_session.ts";

/** Rows that one statement reads of a bucket. */
const SCAN_ROWS = 512;
/** Rows of the tables of buckets and peers that one statement reads. */
const INDEX_ROWS = 1_000;
const WHOLE_ROW =
  "position, process, sequence, peer, peer_resource, sent_at, stanza, last_position, is_sealed";

type Direction = "asc" | "desc";

/** Positions, both ends included; empty when `lo` is above `hi`. */
interface Span {
  readonly lo: number;
  readonly hi: number;
}

/** A log at one moment, and the part of it that a query looks at. */
interface View {
  readonly session: CassandraSession;
  readonly log: string;
  readonly level: "near" | "strong";
  readonly end: LogEnd;
  readonly span: Span;
  readonly filter: ArchiveFilter;
  /** Positions of `filter.ids`. */
  readonly positions: ReadonlySet<number> | undefined;
}

/** A view of an archive without messages. */
const EMPTY = "empty";
/** The replicas that were read lack something which others have. */
const INCOMPLETE = "incomplete";

/**
 * Reads a page. It reads from near replicas first. Positions have no gaps, so it notices when these
 * lack messages, and reads from more of them. Indices may have gaps, and are read from enough replicas
 * at once.
 */
export async function readPage(
  session: CassandraSession,
  archive: string,
  filter: ArchiveFilter,
  page: ArchivePageRequest,
): Promise<ArchivePage | undefined> {
  const names = { after: page.after, before: page.before };
  for (const level of levelsFor(session, filter)) {
    const view = await openView(session, { archive, filter, level, ...names });
    if (view === EMPTY) return { messages: [], isComplete: true };
    const found = view && await readFrom(view, page);
    if (found !== INCOMPLETE && (found !== undefined || level === "strong")) return found;
  }
  return undefined;
}

/** Counts the messages that a filter wants, up to `limit`. */
export async function countMessages(
  session: CassandraSession,
  archive: string,
  filter: ArchiveFilter,
  limit: number,
): Promise<number | undefined> {
  for (const level of levelsFor(session, filter)) {
    const view = await openView(session, { archive, filter, level });
    if (view === EMPTY) return 0;
    if (view !== undefined) return await countIn(view, limit);
  }
  return undefined;
}

/** Returns the ends of an archive. */
export async function readEnds(
  session: CassandraSession,
  archive: string,
): Promise<{ readonly first: ArchiveEnd; readonly last: ArchiveEnd } | undefined> {
  const end = async (from: "start" | "end"): Promise<ArchiveEnd | undefined> => {
    const page = await readPage(session, archive, {}, { limit: 1, from });
    const [message] = page!.messages; // it names no message that could be missing
    return message && {
      process: message.process,
      sequence: message.sequence,
      sentAtMs: message.sentAtMs,
    };
  };
  const [first, last] = await Promise.all([end("start"), end("end")]);
  return first && last && { first, last };
}

function levelsFor(
  session: CassandraSession,
  { peer, startMs, endMs }: ArchiveFilter,
): readonly ("near" | "strong")[] {
  const usesIndex = peer !== undefined || startMs !== undefined || endMs !== undefined;
  return usesIndex || session.isNearStrong ? ["strong"] : ["near", "strong"];
}

/** Looks at an archive. Undefined: it lacks a message that the query names. */
async function openView(
  session: CassandraSession,
  { archive, filter, level, after, before }: {
    readonly archive: string;
    readonly filter: ArchiveFilter;
    readonly level: "near" | "strong";
    readonly after?: ArchiveId | undefined;
    readonly before?: ArchiveId | undefined;
  },
): Promise<View | undefined | typeof EMPTY> {
  const { afterId, beforeId, ids } = filter;
  const behind = [after, afterId].filter((id) => id !== undefined);
  const ahead = [before, beforeId].filter((id) => id !== undefined);
  const named = [...behind, ...ahead, ...ids ?? []];
  const row = await findArchive(session, archiveKeys(archive), level);
  if (row === undefined) return named.length > 0 ? undefined : EMPTY;
  const { log } = row;
  const [end, [first], claims] = await Promise.all([
    findEnd(session, log, level),
    readEntries(session, log, { from: 0, direction: "asc", limit: 1, level }),
    readClaims(session, log, named, level),
  ]);
  const places = await verifyClaims(session, log, claims, level);
  const placeOf = (id: ArchiveId) => places.get(textOfId(id));
  const found = named.map(placeOf).filter((place) => place !== undefined);
  if (found.length < named.length) return undefined;
  if (end.lastPosition === undefined) return EMPTY;
  const span = {
    lo: Math.max(
      firstPositionOf(first?.number ?? end.bucket.number),
      ...behind.map((id) => placeOf(id)! + 1),
    ),
    hi: Math.min(end.lastPosition, ...ahead.map((id) => placeOf(id)! - 1)),
  };
  const positions = ids && new Set(ids.map((id) => placeOf(id)!));
  return { session, log, level, end, span, filter, positions };
}

async function readFrom(
  view: View,
  { limit, from }: ArchivePageRequest,
): Promise<ArchivePage | typeof INCOMPLETE> {
  const direction = from === "start" ? "asc" : "desc";
  const rows = await rowsOf(view, direction, limit + 1);
  if (rows === INCOMPLETE) return INCOMPLETE;
  const messages = rows.slice(0, limit).map(messageOf);
  return {
    messages: direction === "asc" ? messages : messages.reverse(),
    isComplete: rows.length <= limit,
  };
}

function messageOf(row: CqlRow): StoredMessage {
  const { process, sequence, sentAtMs } = logRowOf(row);
  return { process, sequence, sentAtMs, stanza: row.bytes("stanza") ?? new Uint8Array() };
}

/** Returns the first whole rows of a view in a direction. */
async function rowsOf(
  view: View,
  direction: Direction,
  limit: number,
): Promise<readonly CqlRow[] | typeof INCOMPLETE> {
  const { filter, positions, span } = view;
  if (span.lo > span.hi) return [];
  if (positions !== undefined) {
    const inSpan = [...positions].filter((each) => each >= span.lo && each <= span.hi);
    const rows = await wholeRows(view, inSpan);
    return inOrder(rows, direction).filter((row) => isWanted(filter, row)).slice(0, limit);
  }
  if (filter.peer === undefined && !hasTimes(filter)) {
    return await plainRows(view, direction, limit);
  }
  const candidates = filter.peer === undefined
    ? scanTimes(view, direction, limit)
    : scanPeer(view, direction, limit);
  const rows: CqlRow[] = [];
  for await (const some of candidates) {
    // All of one step at once: a page has one or two of them.
    for (let i = 0; i < some.length && rows.length < limit;) {
      const part = some.slice(i, i + limit - rows.length);
      i += part.length;
      const found = await wholeRows(view, part.map(({ position }) => position));
      const ids = new Map(part.map((each) => [each.position, textOfId(each)]));
      // A claim means nothing where another message lies.
      const ours = found.filter((row) => {
        const { position, ...id } = logRowOf(row);
        return ids.get(position) === textOfId(id);
      });
      rows.push(...inOrder(ours, direction));
    }
    if (rows.length >= limit) break;
  }
  return rows;
}

function inOrder(rows: readonly CqlRow[], direction: Direction): CqlRow[] {
  const sign = direction === "asc" ? 1 : -1;
  return rows.toSorted((one, other) =>
    sign * (one.integer("position") - other.integer("position"))
  );
}

async function wholeRows(
  { session, log, level }: View,
  positions: readonly number[],
): Promise<readonly CqlRow[]> {
  return await readPositions(session, log, positions, { columns: WHOLE_ROW, level });
}

function hasTimes({ startMs, endMs }: ArchiveFilter): boolean {
  return startMs !== undefined || endMs !== undefined;
}

function isInTime({ startMs = -Infinity, endMs = Infinity }: ArchiveFilter, sentAtMs: number) {
  return sentAtMs >= startMs && sentAtMs <= endMs;
}

/** True when a whole row is what a filter wants, besides its position. */
function isWanted(filter: ArchiveFilter, row: CqlRow): boolean {
  const { peer } = filter;
  if (!isInTime(filter, row.integer("sent_at"))) return false;
  if (peer === undefined) return true;
  const isBare = areEqual(row.bytes("peer")!, keyOf(peer.bare));
  if (peer.resourcepart === "") return isBare;
  const resource = new TextEncoder().encode(peer.resourcepart);
  return isBare && areEqual(row.bytes("peer_resource")!, resource);
}

function areEqual(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, i) => byte === other[i]);
}

/** Returns the first rows of a span, whatever they are. */
async function plainRows(
  { session, log, level, end, span }: View,
  direction: Direction,
  limit: number,
): Promise<readonly CqlRow[] | typeof INCOMPLETE> {
  const rows: CqlRow[] = [];
  const order = direction === "asc" ? "ASC" : "DESC";
  let bucket = bucketOf(direction === "asc" ? span.lo : span.hi);
  while (rows.length < limit) {
    const wanted = limit - rows.length;
    const some = await session.select(
      `SELECT ${WHOLE_ROW} FROM archive_messages WHERE log = ? AND bucket = ? ` +
        `AND position >= ? AND position <= ? ORDER BY position ${order} LIMIT ?`,
      [log, bucket, span.lo, span.hi, wanted],
      level,
    );
    if (level === "near" && !isGapless(some, { span, bucket, direction, wanted })) {
      return INCOMPLETE;
    }
    rows.push(...some);
    const next = await nextBucket({ session, log, level, end }, bucket, direction, some.length);
    if (next === undefined || next < bucketOf(span.lo) || next > bucketOf(span.hi)) break;
    bucket = next;
  }
  return rows;
}

/** True when rows are the first ones of a span in their bucket, and all of them up to the limit. */
function isGapless(
  rows: readonly CqlRow[],
  { span, bucket, direction, wanted }: {
    readonly span: Span;
    readonly bucket: number;
    readonly direction: Direction;
    readonly wanted: number;
  },
): boolean {
  const [row] = rows;
  if (row === undefined) return false;
  const isLast = bucket === bucketOf(span.hi);
  // A bucket need not be full. It says where it ends, once it is sealed.
  if (!isLast && !row.isTrue("is_sealed")) return false;
  const lo = Math.max(span.lo, firstPositionOf(bucket));
  const hi = isLast ? span.hi : row.integer("last_position");
  const [start, step] = direction === "asc" ? [lo, 1] : [hi, -1];
  return rows.length === Math.min(wanted, hi - lo + 1) &&
    rows.every((each, i) => each.integer("position") === start + step * i);
}

/** Returns the bucket behind another one. Behind an empty one there may be many that are gone. */
async function nextBucket(
  { session, log, level, end }: Pick<View, "session" | "log" | "level" | "end">,
  bucket: number,
  direction: Direction,
  found: number,
): Promise<number | undefined> {
  const next = direction === "asc" ? bucket + 1 : bucket - 1;
  if (found > 0) return next;
  const [entry] = await readEntries(session, log, { from: next, direction, limit: 1, level });
  if (entry !== undefined) return entry.number;
  return direction === "asc" && bucket < end.bucket.number ? end.bucket.number : undefined;
}

/** Parts of a view's span whose buckets have messages of the times that the filter wants. */
async function* timedSpans(view: View, direction: Direction): AsyncGenerator<CountedSpan> {
  const { session, log, level, end, span, filter } = view;
  const { startMs = -Infinity, endMs = Infinity } = filter;
  const [loBucket, hiBucket] = [bucketOf(span.lo), bucketOf(span.hi)];
  const live = partOf(view, {
    number: end.bucket.number,
    lastPosition: end.bucket.lastPosition,
    firstSent: end.bucket.firstSent ?? 0,
    lastSent: end.bucket.lastSent ?? 0,
    hasHoles: end.hasHoles,
  });
  if (direction === "desc" && live !== undefined) yield live;
  let from: number | undefined = direction === "asc" ? loBucket : hiBucket;
  while (from !== undefined) {
    const entries = await readEntries(session, log, { from, direction, limit: INDEX_ROWS, level });
    for (const entry of entries) {
      if (entry.number < loBucket || entry.number > hiBucket) continue;
      // The last bucket may have got its entry after the end was read.
      if (entry.number >= end.bucket.number) continue;
      if (entry.firstSent > endMs || entry.lastSent < startMs) continue;
      const part = partOf(view, entry);
      if (part !== undefined) yield part;
    }
    const last: number | undefined = entries.length < INDEX_ROWS
      ? undefined
      : entries.at(-1)?.number;
    if (last === undefined || last < loBucket || last > hiBucket) break;
    from = direction === "asc" ? last + 1 : last - 1;
  }
  if (direction === "asc" && live !== undefined) yield live;
}

/** Part of one bucket that a query looks at. */
interface CountedSpan extends Span {
  readonly bucket: number;
  /** True when each position of the part has a message that the filter's times want. */
  readonly isWhole: boolean;
}

function partOf(
  { span, filter }: View,
  { number, lastPosition, firstSent, lastSent, hasHoles }: {
    readonly number: number;
    readonly lastPosition: number | undefined;
    readonly firstSent: number;
    readonly lastSent: number;
    readonly hasHoles: boolean;
  },
): CountedSpan | undefined {
  if (lastPosition === undefined) return undefined;
  const lo = Math.max(span.lo, firstPositionOf(number));
  const hi = Math.min(span.hi, lastPosition);
  if (lo > hi) return undefined;
  const isWhole = !hasHoles && isInTime(filter, firstSent) && isInTime(filter, lastSent);
  return { bucket: number, lo, hi, isWhole };
}

/** Finds the messages of a view that were sent at the wanted times, in steps. */
async function* scanTimes(
  view: View,
  direction: Direction,
  first: number,
): AsyncGenerator<readonly LogRow[]> {
  for await (const part of timedSpans(view, direction)) {
    yield* scanPart(view, part, { direction, first });
  }
}

/** Finds the messages of one bucket that were sent at the wanted times, in steps. */
async function* scanPart(
  { session, log, level, filter }: View,
  { bucket, lo, hi }: CountedSpan,
  { direction, first }: { readonly direction: Direction; readonly first: number },
): AsyncGenerator<readonly LogRow[]> {
  const { startMs = Number.MIN_SAFE_INTEGER, endMs = Number.MAX_SAFE_INTEGER } = filter;
  let [from, to] = [lo, hi];
  // Few at first: most pages need no more.
  for (let atOnce = Math.min(SCAN_ROWS, first);; atOnce = SCAN_ROWS) {
    // The server passes over the rows of other times: those of one bucket at most.
    const rows = await session.select(
      "SELECT position, process, sequence, sent_at FROM archive_messages " +
        "WHERE log = ? AND bucket = ? AND position >= ? AND position <= ? " +
        "AND sent_at >= ? AND sent_at <= ? " +
        `ORDER BY position ${direction === "asc" ? "ASC" : "DESC"} LIMIT ? ALLOW FILTERING`,
      [log, bucket, from, to, Math.ceil(startMs), Math.floor(endMs), atOnce],
      level,
    );
    yield rows.map(logRowOf);
    if (rows.length < atOnce) return;
    const last = rows.at(-1)!.integer("position");
    if (direction === "asc") from = last + 1;
    else to = last - 1;
  }
}

/** Finds the claims of messages with the wanted peer and times, in steps. */
async function* scanPeer(
  view: View,
  direction: Direction,
  first: number,
): AsyncGenerator<readonly LogRow[]> {
  const { filter } = view;
  // Few at first: most pages need no more.
  let atOnce = Math.min(INDEX_ROWS, first + 16);
  for await (const span of peerSpans(view, direction)) {
    let [from, to] = [span.lo, span.hi];
    while (from <= to) {
      const rows = await readPeerRows(view, { lo: from, hi: to }, { direction, limit: atOnce });
      // Several claims to one position may lie on both sides of the limit. They are read again.
      const isAll = rows.length < atOnce;
      const last = rows.at(-1)?.position;
      const whole = isAll ? rows : rows.filter(({ position }) => position !== last);
      yield whole.filter(({ sentAtMs }) => isInTime(filter, sentAtMs));
      if (isAll || last === undefined) break;
      if (direction === "asc") from = last;
      else to = last;
      atOnce = INDEX_ROWS;
    }
  }
}

async function readPeerRows(
  { session, log, level, filter }: View,
  { lo, hi }: Span,
  { direction, limit }: { readonly direction: Direction; readonly limit: number },
): Promise<readonly LogRow[]> {
  const { bare, resourcepart } = filter.peer!; // for those who look for a peer
  const key = resourcepart === ""
    ? keyOf(bare)
    : fullPeerKey(keyOf(bare), new TextEncoder().encode(resourcepart));
  const order = direction === "asc" ? "ASC" : "DESC";
  const rows = await session.select(
    "SELECT position, process, sequence, sent_at FROM archive_peers " +
      "WHERE log = ? AND peer = ? AND block = ? AND position >= ? AND position <= ? " +
      `ORDER BY position ${order}, process ${order}, sequence ${order} LIMIT ?`,
    [log, key, peerBlockOf(lo), lo, hi, limit],
    level,
  );
  return rows.map(logRowOf);
}

/** Cuts a view's span into those of one block each, without buckets of other times. */
async function* peerSpans(view: View, direction: Direction): AsyncGenerator<Span> {
  const spans = hasTimes(view.filter) ? joined(timedSpans(view, direction)) : [view.span];
  for await (const span of spans) yield* blocksOf(span, direction);
}

function* blocksOf({ lo, hi }: Span, direction: Direction): Generator<Span> {
  const [first, last] = [peerBlockOf(lo), peerBlockOf(hi)];
  for (let i = 0; i <= last - first; i++) {
    const block = positionsOfPeerBlock(direction === "asc" ? first + i : last - i);
    yield { lo: Math.max(lo, block.lo), hi: Math.min(hi, block.hi) };
  }
}

/** Buckets whose spans are joined. */
const MAX_JOINED = 64;

/** Joins spans of neighbouring buckets, some at a time. */
async function* joined(parts: AsyncIterable<CountedSpan>): AsyncGenerator<Span> {
  let open: { span: Span; bucket: number; count: number } | undefined;
  for await (const { lo, hi, bucket } of parts) {
    if (open !== undefined) {
      const { span, count }: { span: Span; count: number } = open;
      if (Math.abs(bucket - open.bucket) === 1 && count < MAX_JOINED) {
        const both = { lo: Math.min(lo, span.lo), hi: Math.max(hi, span.hi) };
        open = { span: both, bucket, count: count + 1 };
        continue;
      }
      yield span;
    }
    open = { span: { lo, hi }, bucket, count: 1 };
  }
  if (open !== undefined) yield open.span;
}

async function countIn(view: View, limit: number): Promise<number> {
  const { filter, positions, span, session, log, level } = view;
  if (span.lo > span.hi) return 0;
  if (positions !== undefined) {
    const rows = await rowsOf(view, "asc", limit);
    return rows.length; // an index is never incomplete, and these are few
  }
  let total = 0;
  if (filter.peer !== undefined) {
    for await (const some of scanPeer(view, "asc", limit)) {
      total += new Set(some.map(({ position }) => position)).size;
      if (total >= limit) return limit;
    }
    return total;
  }
  for await (const part of timedSpans(view, "asc")) {
    if (part.isWhole) total += part.hi - part.lo + 1;
    else if (hasTimes(filter)) {
      const scan = { direction: "asc", first: limit - total } as const;
      for await (const some of scanPart(view, part, scan)) total += some.length;
    } else {
      const [row] = await session.select(
        "SELECT COUNT(*) AS total FROM archive_messages " +
          "WHERE log = ? AND bucket = ? AND position >= ? AND position <= ?",
        [log, part.bucket, part.lo, part.hi],
        level,
      );
      total += row!.integer("total");
    }
    if (total >= limit) return limit;
  }
  return total;
}
