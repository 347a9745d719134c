import type { BaselineFigures } from "./baseline.ts";
import type { BenchOptions } from "./bench_options.ts";
import type { LatencySummary } from "./latency_recorder.ts";
import type { TableFigures } from "./table_measurement.ts";

/** Resources that one node used for the messages of one run. */
export interface NodeFigures {
  readonly node: string;
  readonly role: "source" | "destination" | "both" | "bystander";
  /** Microseconds of processor time for each message that arrived. */
  readonly cpuUsPerMessage: number;
  readonly residentBytes: number;
}

/** One run, at full load or at the fixed rate. */
export interface RunFigures {
  readonly messagesPerSecond: number;
  readonly nodes: readonly NodeFigures[];
  readonly loadCpuUsPerMessage: number;
  readonly latency: LatencySummary;
}

/** The machine and the program that the figures belong to. */
export interface BenchContext {
  readonly date: string;
  readonly command: string;
  readonly commit: string;
  readonly cores: number;
  readonly processor: string;
  readonly versions: Readonly<Record<string, string>>;
}

/** Everything that one call of the bench has found out. */
export interface BenchFigures {
  readonly context: BenchContext;
  readonly options: BenchOptions;
  readonly full: readonly RunFigures[];
  readonly paced: RunFigures;
  /** At full load, while each sender's second device elsewhere gets carbons. */
  readonly withCarbons: readonly RunFigures[];
  readonly baseline: BaselineFigures;
  /** Undefined when it was left out. */
  readonly table: TableFigures | undefined;
}

/** Floors to keep on a machine of two cores that also runs the load. */
export const FLOORS = {
  messagesPerSecond: 45_000,
  cpuUsPerMessage: 15,
  /** Messages/s with a carbon of each to another datacenter, to those without. */
  carbonsRatio: 0.5,
} as const;

/** The same for the table; those of its renewal and its transfer belong to 100 000 sessions. */
export const TABLE_FLOORS = {
  cachedLookupsPerSecond: 2_000_000,
  uncachedLookupsPerSecond: 100_000,
  renewalShareOfCore: 0.05,
  transferSeconds: 10,
  /** p99 while it is transferred, to p99 when it is not. */
  p99Ratio: 2,
} as const;

/** The figures of several runs in one: the median, with the lowest and the highest beside it. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? 0;
  const median = sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2;
  return { median, min: sorted[0] ?? 0, max: sorted.at(-1) ?? 0 };
}

/** The figures with what follows from them, as they go into the JSON file. */
export function summarize(figures: BenchFigures) {
  const rate = spreadOf(figures.full.map((run) => run.messagesPerSecond));
  const nodes = (figures.full[0]?.nodes ?? []).map(({ node, role }, index) => ({
    node,
    role,
    cpuUsPerMessage: spreadOf(figures.full.map((run) => run.nodes[index]!.cpuUsPerMessage)),
    residentBytes: Math.max(...figures.full.map((run) => run.nodes[index]!.residentBytes)),
  }));
  const working = nodes.filter(({ role }) => role !== "bystander");
  const costliest = Math.max(0, ...working.map((node) => node.cpuUsPerMessage.median));
  const { baseline, paced, table } = figures;
  const withCarbons = spreadOf(figures.withCarbons.map((run) => run.messagesPerSecond));
  const carbonsRatio = withCarbons.median / rate.median;
  const baselineCpu = baseline.senderCpuUsPerFrame + baseline.receiverCpuUsPerFrame;
  const cpu = working.reduce((sum, node) => sum + node.cpuUsPerMessage.median, 0);
  return {
    ...figures,
    summary: {
      messagesPerSecond: rate,
      messagesPerSecondWithCarbons: withCarbons,
      nodes,
      loadCpuUsPerMessage: spreadOf(figures.full.map((run) => run.loadCpuUsPerMessage)),
      ratios: {
        messagesToBaselineFrames: rate.median / baseline.framesPerSecond,
        cpuToBaselineCpu: cpu / baselineCpu,
        carbonsToNone: carbonsRatio,
        latencyAddedP50Us: paced.latency.p50Us - baseline.latency.p50Us,
        latencyAddedP99Us: paced.latency.p99Us - baseline.latency.p99Us,
        latencyAddedP999Us: paced.latency.p999Us - baseline.latency.p999Us,
        ...(table !== undefined && { tableP99: p99Ratio(table) }),
      },
    },
    floors: { ...FLOORS, table: TABLE_FLOORS },
    missed: [
      ...(rate.median < FLOORS.messagesPerSecond
        ? [`${round(rate.median)} messages/s, floor ${FLOORS.messagesPerSecond}`]
        : []),
      ...(costliest >= FLOORS.cpuUsPerMessage
        ? [`${round(costliest, 1)} µs CPU per message and node, floor ${FLOORS.cpuUsPerMessage}`]
        : []),
      ...(carbonsRatio < FLOORS.carbonsRatio
        ? [`${round(carbonsRatio * 100)} % of the messages with carbons, floor 50 %`]
        : []),
      ...(table === undefined ? [] : missedBy(table)),
    ],
  };
}

function p99Ratio({ latencyMeanwhile, latencyIdle }: TableFigures): number {
  return latencyMeanwhile.p99Us / latencyIdle.p99Us;
}

function missedBy(table: TableFigures): string[] {
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

function tableRows(table: TableFigures): [string, string][] {
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

/** The same as a table for people, in Markdown so that it can be pasted. */
export function formatReport(report: ReturnType<typeof summarize>): string {
  const { summary, context, options, baseline, paced } = report;
  const rows: [string, string][] = [
    ["messages/s between datacenters", showSpread(summary.messagesPerSecond, 0)],
    ...summary.nodes.map(({ node, role, cpuUsPerMessage, residentBytes }): [string, string] => [
      `CPU µs per message, ${node} (${role})`,
      `${showSpread(cpuUsPerMessage, 1)}, ${round(residentBytes / 1e6)} MB`,
    ]),
    ["CPU µs per message, load generator", showSpread(summary.loadCpuUsPerMessage, 1)],
    ["latency at full load", showLatency(report.full.at(-1)!.latency)],
    [`latency at ${round(paced.messagesPerSecond)} messages/s`, showLatency(paced.latency)],
    [
      "messages/s, with a carbon of each to a device elsewhere",
      `${showSpread(summary.messagesPerSecondWithCarbons, 0)}, ` +
      `${round(summary.ratios.carbonsToNone * 100)} %`,
    ],
    ["raw TLS frames/s", round(baseline.framesPerSecond)],
    [
      "raw TLS CPU µs per frame, both ends",
      round(baseline.senderCpuUsPerFrame + baseline.receiverCpuUsPerFrame, 2),
    ],
    [`raw TLS latency at ${options.pacePerSecond} frames/s`, showLatency(baseline.latency)],
    ["messages to raw frames", round(summary.ratios.messagesToBaselineFrames, 4)],
    ["CPU to raw CPU, both ends", round(summary.ratios.cpuToBaselineCpu, 1)],
    [
      "latency added, p50 / p99 / p99.9",
      [
        summary.ratios.latencyAddedP50Us,
        summary.ratios.latencyAddedP99Us,
        summary.ratios.latencyAddedP999Us,
      ].map(showUs).join(" / "),
    ],
    ...(report.table === undefined ? [] : tableRows(report.table)),
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  const versions = Object.entries(context.versions).map(([name, version]) => `${name} ${version}`);
  return [
    `${context.date}, commit ${context.commit}: ${context.command}`,
    `${context.cores} × ${context.processor}; ${versions.join(", ")}`,
    `${options.datacenters} datacenters, ${options.pairs} pairs ${options.direction}, ` +
    `${options.inFlight} in flight each, ${options.messageBytes}-byte messages, ` +
    `${options.runs} × ${options.seconds} s: median (lowest – highest)`,
    "",
    `| ${"".padEnd(width)} | |`,
    `| ${"-".repeat(width)} | --- |`,
    ...rows.map(([name, value]) => `| ${name.padEnd(width)} | ${value} |`),
    "",
    report.missed.length === 0 ? "Every floor is kept." : `Missed: ${report.missed.join("; ")}`,
  ].join("\n");
}

function showSpread({ median, min, max }: Spread, digits: number): string {
  return `${round(median, digits)} (${round(min, digits)} – ${round(max, digits)})`;
}

function showLatency({ p50Us, p99Us, p999Us, maxUs }: LatencySummary): string {
  return `p50 ${showUs(p50Us)}, p99 ${showUs(p99Us)}, p99.9 ${showUs(p999Us)}, max ${
    showUs(maxUs)
  }`;
}

function showUs(us: number): string {
  return us >= 10_000 ? `${round(us / 1000, 1)} ms` : `${round(us)} µs`;
}

function round(value: number, digits = 0): string {
  return value.toLocaleString("en-US", {
    maximumFractionDigits: digits,
    minimumFractionDigits: digits,
  }).replaceAll(",", " ");
}
