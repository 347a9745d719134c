import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { PAGES } from "./archive_protocol.ts";
import { archiveRows, missedByArchives } from "./archive_report.ts";
import type {
  ArchivedMessagesFigures,
  ArchiveFigures,
  SlowDatabaseFigures,
} from "./archive_report.ts";

const NOTHING = { archives: [], archivedMessages: undefined, slowDatabase: undefined };
const LATENCY = { count: 10, p50Us: 400, p99Us: 900, p999Us: 1200, maxUs: 20_000 };

/** Figures that keep each floor, just. */
const POSTGRESQL: ArchiveFigures = {
  database: "postgresql",
  hasSearch: true,
  insertsPerSecond: [15_000, 20_000, 24_000],
  driverPerSecond: [25_000, 33_000, 40_000],
  large: {
    entries: 1_000_000,
    bytesPerMessage: 900,
    pages: PAGES.map((page) => ({ page, p50Ms: 2, p99Ms: 10 })),
    counts: [{ count: "all", p50Ms: 3, p99Ms: 40 }],
    removals: [{ removal: "by age", messages: 100_000, elapsedMs: 2_500 }],
    mostBytes: 180e6,
  },
};
const MESSAGES: ArchivedMessagesFigures = {
  insertsPerSecond: 20_000,
  inFlight: 410,
  without: clusterFigures(30_000, 1_000),
  with: clusterFigures(6_000, 3_000),
};
const SLOW: SlowDatabaseFigures = {
  delayMs: 500,
  usual: { sent: 9, arrivedLate: 9, arrived: 9, refused: 0, dropped: 0, mostBytes: 200e6 },
  slow: { sent: 9, arrivedLate: 3, arrived: 4, refused: 5, dropped: 0, mostBytes: 250e6 },
};

function clusterFigures(messagesPerSecond: number, p99Us: number) {
  const run = {
    messagesPerSecond,
    nodes: [],
    loadCpuUsPerMessage: 9,
    latency: { ...LATENCY, p99Us },
  };
  return { full: [run], paced: run, withCarbons: [] };
}

Deno.test("missedByArchives() finds nothing where each floor is kept", () => {
  const all = { archives: [POSTGRESQL], archivedMessages: MESSAGES, slowDatabase: SLOW };
  deepStrictEqual(missedByArchives(all), []);
  deepStrictEqual(missedByArchives(NOTHING), []);
});

Deno.test("missedByArchives() names each floor that is missed", () => {
  const slow = (database: ArchiveFigures["database"], p99Ms: number): ArchiveFigures => ({
    ...POSTGRESQL,
    database,
    insertsPerSecond: [1_000],
    driverPerSecond: [2_000],
    large: { ...POSTGRESQL.large!, pages: [{ page: "last", p50Ms: 1, p99Ms }] },
  });
  deepStrictEqual(
    missedByArchives({
      archives: [slow("postgresql", 11), slow("cassandra", 30), slow("opensearch", 31)],
      archivedMessages: { ...MESSAGES, with: clusterFigures(5_000, 4_000) },
      slowDatabase: { ...SLOW, slow: { ...SLOW.slow, refused: 2, dropped: 1, mostBytes: 300e6 } },
    }),
    [
      "1 000 archived messages/s, floor 20000",
      "postgresql: 50 % of the bare driver's insertions, floor 60 %",
      "postgresql: last page after 11.0 ms (p99), limit 10 ms",
      "cassandra: 50 % of the bare driver's insertions, floor 60 %",
      "opensearch: 50 % of the bare driver's insertions, floor 60 %",
      "opensearch: last page after 31.0 ms (p99), limit 30 ms",
      "50 % of the messages that the archive allows, floor 60 %",
      "p99 of messages 4.0 times as high with archives, limit 3",
      "memory 1.50 times as high with a slow database",
      "2 messages lost",
    ],
  );
});

Deno.test("archiveRows() shows what was measured, and leaves out what was not", () => {
  const all = { archives: [POSTGRESQL], archivedMessages: MESSAGES, slowDatabase: SLOW };
  const rows = new Map(archiveRows(all));
  strictEqual(
    rows.get("archived messages/s, postgresql with search"),
    "20 000 (15 000 – 24 000), 60 % of the bare driver",
  );
  strictEqual(rows.get("bytes of a message in postgresql with search"), "900");
  strictEqual(rows.get("count of all, postgresql with search"), "p50 3.0 ms, p99 40.0 ms");
  strictEqual(
    rows.get("removal by age, postgresql with search"),
    "100 000 messages in 2.5 s",
  );
  strictEqual(
    rows.get("memory of the process that reads, postgresql with search"),
    "180 MB at most",
  );
  strictEqual(rows.get("p99 with archives to p99 without"), "3.00");
  deepStrictEqual(archiveRows(NOTHING), []);
  const small = archiveRows({ ...NOTHING, archives: [{ ...POSTGRESQL, large: undefined }] });
  strictEqual(small.length, 2);
});
