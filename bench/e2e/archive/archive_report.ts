import type { ReportRow } from "../bench_format.ts";
import { round, showLatency, showSpread, spreadOf } from "../bench_format.ts";
import type { ClusterFigures } from "../cluster_measurement.ts";
import type { ArchiveDatabase, CountName, PageName, RemovalName } from "./archive_protocol.ts";

/** Archives of one database. */
export interface ArchiveFigures {
  readonly database: ArchiveDatabase;
  readonly hasSearch: boolean;
  readonly insertsPerSecond: readonly number[];
  readonly driverPerSecond: readonly number[];
  /** Undefined: pages were left out. */
  readonly large: LargeArchiveFigures | undefined;
}

/** An archive with many messages. */
export interface LargeArchiveFigures {
  readonly entries: number;
  readonly bytesPerMessage: number;
  readonly pages: readonly PageFigures[];
  readonly counts: readonly CountFigures[];
  /** Empty: they were left out. */
  readonly removals: readonly RemovalFigures[];
  /** Most memory of the process that reads, counts and removes. */
  readonly mostBytes: number;
}

/** Times of one page. */
export interface PageFigures {
  readonly page: PageName;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Times of one kind of count. */
export interface CountFigures {
  readonly count: CountName;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Messages that one removal removed. */
export interface RemovalFigures {
  readonly removal: RemovalName;
  readonly messages: number;
  readonly elapsedMs: number;
}

/** Messages between datacenters, with archives on both sides and without. */
export interface ArchivedMessagesFigures {
  /** Messages on their way at once for each pair, at full load. */
  readonly inFlight: number;
  /** Insertions into the archives of one process, with nothing beside it. */
  readonly insertsPerSecond: number;
  readonly without: ClusterFigures;
  readonly with: ClusterFigures;
}

/** A flood of messages while the database answers late, and the same while it does not. */
export interface SlowDatabaseFigures {
  readonly delayMs: number;
  readonly usual: FloodFigures;
  readonly slow: FloodFigures;
}

/** Messages of one flood, and the most memory that a node had meanwhile. */
export interface FloodFigures {
  readonly sent: number;
  /** Those that arrived while the database was late, and in the end. */
  readonly arrivedLate: number;
  readonly arrived: number;
  readonly refused: number;
  /** Refusals that the sender did not read in time, so that the node dropped and counted them. */
  readonly dropped: number;
  readonly mostBytes: number;
}

/** Figures of archives. What was left out is empty or undefined. */
export interface ArchivesFigures {
  readonly archives: readonly ArchiveFigures[];
  readonly archivedMessages: ArchivedMessagesFigures | undefined;
  readonly slowDatabase: SlowDatabaseFigures | undefined;
}

/** Floors of archives. Rates and times belong to a machine with two cores and nothing else to do. */
export const ARCHIVE_FLOORS = {
  /** Insertions of PostgreSQL. */
  insertsPerSecond: 20_000,
  /** Insertions, to those of the bare driver. */
  driverRatio: 0.6,
  /** Messages between datacenters, to those that the rate of insertions allows: each has two. */
  messagesRatio: 0.6,
  /** p99 of messages with archives, to p99 without. */
  p99Ratio: 3,
  /** Milliseconds of a page, p99. */
  pageMs: 10,
  /** As above, with Elasticsearch, OpenSearch and Cassandra. */
  remotePageMs: 30,
  /** Memory of a node with a slow database, to that with a fast one. */
  memoryRatio: 1.25,
} as const;

const REMOTE: ReadonlySet<ArchiveDatabase> = new Set(["elasticsearch", "opensearch", "cassandra"]);
/** Insertions that one message between two people causes. */
const ARCHIVES_OF_A_MESSAGE = 2;

/** Each run is compared with that of the driver beside it: the machine may change between runs. */
function driverRatio({ insertsPerSecond, driverPerSecond }: ArchiveFigures): number {
  return spreadOf(insertsPerSecond.map((each, run) => each / driverPerSecond[run]!)).median;
}

function messagesRatio({ insertsPerSecond, with: archived }: ArchivedMessagesFigures): number {
  const { median } = spreadOf(archived.full.map((run) => run.messagesPerSecond));
  return median / (insertsPerSecond / ARCHIVES_OF_A_MESSAGE);
}

function p99Ratio({ without, with: archived }: ArchivedMessagesFigures): number {
  return archived.paced.latency.p99Us / without.paced.latency.p99Us;
}

function memoryRatio({ usual, slow }: SlowDatabaseFigures): number {
  return slow.mostBytes / usual.mostBytes;
}

/** Returns the floors that are missed, each in words. */
export function missedByArchives(
  { archives, archivedMessages, slowDatabase }: ArchivesFigures,
): string[] {
  return [
    ...archives.flatMap(missedByArchive),
    ...(archivedMessages === undefined ? [] : missedByMessages(archivedMessages)),
    ...(slowDatabase === undefined ? [] : missedByMemory(slowDatabase)),
  ];
}

function missedByArchive(figures: ArchiveFigures): string[] {
  const { insertsPerSecond, driverRatio: floor, pageMs, remotePageMs } = ARCHIVE_FLOORS;
  const { database, large } = figures;
  const { median } = spreadOf(figures.insertsPerSecond);
  const ratio = driverRatio(figures);
  const limitMs = REMOTE.has(database) ? remotePageMs : pageMs;
  return [
    ...(database === "postgresql" && median < insertsPerSecond
      ? [`${round(median)} archived messages/s, floor ${insertsPerSecond}`]
      : []),
    ...(ratio < floor
      ? [`${database}: ${round(ratio * 100)} % of the bare driver's insertions, floor 60 %`]
      : []),
    ...(large?.pages ?? []).filter(({ p99Ms }) => p99Ms > limitMs).map(({ page, p99Ms }) =>
      `${database}: ${page} page after ${round(p99Ms, 1)} ms (p99), limit ${limitMs} ms`
    ),
  ];
}

function missedByMessages(figures: ArchivedMessagesFigures): string[] {
  const [share, late] = [messagesRatio(figures), p99Ratio(figures)];
  return [
    ...(share < ARCHIVE_FLOORS.messagesRatio
      ? [`${round(share * 100)} % of the messages that the archive allows, floor 60 %`]
      : []),
    ...(late > ARCHIVE_FLOORS.p99Ratio
      ? [`p99 of messages ${round(late, 1)} times as high with archives, limit 3`]
      : []),
  ];
}

function missedByMemory(figures: SlowDatabaseFigures): string[] {
  const ratio = memoryRatio(figures);
  const { sent, arrived, refused, dropped } = figures.slow;
  const ended = arrived + refused + dropped;
  return [
    ...(ratio > ARCHIVE_FLOORS.memoryRatio
      ? [`memory ${round(ratio, 2)} times as high with a slow database`]
      : []),
    ...(ended < sent ? [`${round(sent - ended)} messages lost`] : []),
  ];
}

export function archiveRows(
  { archives, archivedMessages, slowDatabase }: ArchivesFigures,
): ReportRow[] {
  return [
    ...archives.flatMap(rowsOfArchive),
    ...(archivedMessages === undefined ? [] : rowsOfMessages(archivedMessages)),
    ...(slowDatabase === undefined ? [] : rowsOfMemory(slowDatabase)),
  ];
}

function rowsOfArchive(figures: ArchiveFigures): ReportRow[] {
  const { database, hasSearch, large } = figures;
  const name = `${database}${hasSearch ? " with search" : ""}`;
  return [
    [
      `archived messages/s, ${name}`,
      `${showSpread(spreadOf(figures.insertsPerSecond), 0)}, ` +
      `${round(driverRatio(figures) * 100)} % of the bare driver`,
    ],
    [`the same rows/s, bare driver`, showSpread(spreadOf(figures.driverPerSecond), 0)],
    ...(large === undefined ? [] : [
      [
        `bytes of a message in ${name}`,
        round(large.bytesPerMessage),
      ] as const,
      ...large.pages.map(({ page, p50Ms, p99Ms }): ReportRow => [
        `${page} page of ${round(large.entries)}, ${name}`,
        `p50 ${round(p50Ms, 1)} ms, p99 ${round(p99Ms, 1)} ms`,
      ]),
      ...large.counts.map(({ count, p50Ms, p99Ms }): ReportRow => [
        `count of ${count === "all" ? "all" : "those with a peer"}, ${name}`,
        `p50 ${round(p50Ms, 1)} ms, p99 ${round(p99Ms, 1)} ms`,
      ]),
      ...large.removals.map(({ removal, messages, elapsedMs }): ReportRow => [
        `${removal === "whole" ? "removal of the rest" : "removal by age"}, ${name}`,
        `${round(messages)} messages in ${round(elapsedMs / 1_000, 1)} s`,
      ]),
      [
        `memory of the process that reads, ${name}`,
        `${round(large.mostBytes / 1e6)} MB at most`,
      ] as const,
    ]),
  ];
}

function rowsOfMessages(figures: ArchivedMessagesFigures): ReportRow[] {
  const rate = ({ full }: ClusterFigures) =>
    showSpread(spreadOf(full.map((run) => run.messagesPerSecond)), 0);
  return [
    [
      "messages/s between datacenters, without archives",
      `${rate(figures.without)}, ${figures.inFlight} in flight each`,
    ],
    [
      "messages/s, with archives on both sides",
      `${rate(figures.with)}, ${round(messagesRatio(figures) * 100)} % of what ` +
      `${round(figures.insertsPerSecond)} archived messages/s allow`,
    ],
    ["latency at the fixed rate, without archives", showLatency(figures.without.paced.latency)],
    ["latency at the fixed rate, with archives", showLatency(figures.with.paced.latency)],
    ["p99 with archives to p99 without", round(p99Ratio(figures), 2)],
  ];
}

function rowsOfMemory({ delayMs, usual, slow }: SlowDatabaseFigures): ReportRow[] {
  const show = ({ sent, arrivedLate, arrived, refused, dropped, mostBytes }: FloodFigures) =>
    `${round(sent)} sent, ${round(arrived)} arrived, ` +
    (arrivedLate < arrived ? `${round(arrivedLate)} of them while it was late, ` : "") +
    `${round(refused)} refused, ` +
    (dropped > 0 ? `${round(dropped)} refusals dropped, ` : "") +
    `${round(mostBytes / 1e6)} MB at most`;
  return [
    ["flood of messages, fast database", show(usual)],
    [`flood of messages, database late by ${delayMs} ms`, show(slow)],
  ];
}
