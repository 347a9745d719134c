import type { LatencySummary } from "./latency_recorder.ts";

/** The figures of several runs in one: the median, with the lowest and the highest beside it. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** A line of the report's table. */
export type ReportRow = readonly [name: string, value: string];

export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? 0;
  const median = sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2;
  return { median, min: sorted[0] ?? 0, max: sorted.at(-1) ?? 0 };
}

export function showSpread({ median, min, max }: Spread, digits: number): string {
  return `${round(median, digits)} (${round(min, digits)} – ${round(max, digits)})`;
}

export function showLatency({ p50Us, p99Us, p999Us, maxUs }: LatencySummary): string {
  return `p50 ${showUs(p50Us)}, p99 ${showUs(p99Us)}, p99.9 ${showUs(p999Us)}, max ${
    showUs(maxUs)
  }`;
}

export function showUs(us: number): string {
  return us >= 10_000 ? `${round(us / 1000, 1)} ms` : `${round(us)} µs`;
}

export function round(value: number, digits = 0): string {
  return value.toLocaleString("en-US", {
    maximumFractionDigits: digits,
    minimumFractionDigits: digits,
  }).replaceAll(",", " ");
}
