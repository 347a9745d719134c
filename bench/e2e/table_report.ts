import { round, showLatency } from "./bench_format.ts";
import type { ReportRow } from "./bench_format.ts";
import type { TableFigures } from "./table_measurement.ts";

/** Floors of the session table; those of its renewal and its transfer belong to 100 000 sessions. */
export const TABLE_FLOORS = {
  cachedLookupsPerSecond: 2_000_000,
  uncachedLookupsPerSecond: 100_000,
  renewalShareOfCore: 0.05,
  transferSeconds: 10,
  /** p99 while it is transferred, to p99 when it is not. */
  p99Ratio: 2,
} as const;

/** p99 while the table is transferred, to p99 when it is not. */
export function p99Ratio({ latencyMeanwhile, latencyIdle }: TableFigures): number {
  return latencyMeanwhile.p99Us / latencyIdle.p99Us;
}

/** Returns the floors that the table misses, each in words. */
export function missedByTable(table: TableFigures): string[] {
  const floors = TABLE_FLOORS;
  const missed: string[] = [];
  if (table.cachedLookupsPerSecond < floors.cachedLookupsPerSecond) {
    missed.push(`${round(table.cachedLookupsPerSecond)} cached lookups/s`);
  }
  if (table.uncachedLookupsPerSecond < floors.uncachedLookupsPerSecond) {
    missed.push(`${round(table.uncachedLookupsPerSecond)} uncached lookups/s`);
  }
  if (table.renewalShareOfCore >= floors.renewalShareOfCore) {
    missed.push(`${round(table.renewalShareOfCore * 100, 1)} % of a core for renewal`);
  }
  if (table.transferSeconds >= floors.transferSeconds) {
    missed.push(`${round(table.transferSeconds, 1)} s for the transfer`);
  }
  const ratio = p99Ratio(table);
  if (!(ratio < floors.p99Ratio)) missed.push(`p99 ${round(ratio, 2)} times as high meanwhile`);
  return missed;
}

export function tableRows(table: TableFigures): ReportRow[] {
  const { latencyMeanwhile, latencyIdle } = table;
  return [
    ["lookups/s, cached", round(table.cachedLookupsPerSecond)],
    ["lookups/s, by asking Redis over one connection", round(table.uncachedLookupsPerSecond)],
    [
      `renewal of ${round(table.sessions)} sessions within 60 s`,
      `${round(table.renewalShareOfCore * 100, 1)} % of a core`,
    ],
    ["a new datacenter has them all after", `${round(table.transferSeconds, 1)} s`],
    ["latency of stanzas meanwhile", showLatency(latencyMeanwhile)],
    ["latency of stanzas afterwards", showLatency(latencyIdle)],
    ["p99 meanwhile to p99 afterwards", round(p99Ratio(table), 2)],
  ];
}
