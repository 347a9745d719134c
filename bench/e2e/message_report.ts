import type { BaselineFigures } from "./baseline.ts";
import { round, showLatency, showSpread, showUs, spreadOf } from "./bench_format.ts";
import type { ReportRow } from "./bench_format.ts";
import type { BenchOptions } from "./bench_options.ts";
import type { LatencySummary } from "./latency_recorder.ts";

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

/** Messages between datacenters, with a raw TLS stream on the same machine beside it. */
export interface MessageFigures {
  readonly full: readonly RunFigures[];
  readonly paced: RunFigures;
  /** At full load, while each sender's second device elsewhere gets carbons. */
  readonly withCarbons: readonly RunFigures[];
  readonly baseline: BaselineFigures;
}

/** Floors to keep on a machine of two cores that also runs the load. */
export const FLOORS = {
  messagesPerSecond: 45_000,
  cpuUsPerMessage: 15,
  /** Messages/s with a carbon of each to another datacenter, to those without. */
  carbonsRatio: 0.5,
} as const;

/** Returns what follows from the figures. */
export function summarizeMessages({ full, paced, withCarbons, baseline }: MessageFigures) {
  const rate = spreadOf(full.map((run) => run.messagesPerSecond));
  const nodes = (full[0]?.nodes ?? []).map(({ node, role }, index) => ({
    node,
    role,
    cpuUsPerMessage: spreadOf(full.map((run) => run.nodes[index]!.cpuUsPerMessage)),
    residentBytes: Math.max(...full.map((run) => run.nodes[index]!.residentBytes)),
  }));
  const working = nodes.filter(({ role }) => role !== "bystander");
  const carbons = spreadOf(withCarbons.map((run) => run.messagesPerSecond));
  const baselineCpu = baseline.senderCpuUsPerFrame + baseline.receiverCpuUsPerFrame;
  const cpu = working.reduce((sum, node) => sum + node.cpuUsPerMessage.median, 0);
  return {
    messagesPerSecond: rate,
    messagesPerSecondWithCarbons: carbons,
    nodes,
    costliestUs: Math.max(0, ...working.map((node) => node.cpuUsPerMessage.median)),
    loadCpuUsPerMessage: spreadOf(full.map((run) => run.loadCpuUsPerMessage)),
    ratios: {
      messagesToBaselineFrames: rate.median / baseline.framesPerSecond,
      cpuToBaselineCpu: cpu / baselineCpu,
      carbonsToNone: carbons.median / rate.median,
      latencyAddedP50Us: paced.latency.p50Us - baseline.latency.p50Us,
      latencyAddedP99Us: paced.latency.p99Us - baseline.latency.p99Us,
      latencyAddedP999Us: paced.latency.p999Us - baseline.latency.p999Us,
    },
  };
}

/** Result of `summarizeMessages`. */
export type MessageSummary = ReturnType<typeof summarizeMessages>;

/** Returns the floors that the messages miss, each in words. */
export function missedByMessages(summary: MessageSummary): string[] {
  const { messagesPerSecond: { median }, costliestUs, ratios: { carbonsToNone } } = summary;
  return [
    ...(median < FLOORS.messagesPerSecond
      ? [`${round(median)} messages/s, floor ${FLOORS.messagesPerSecond}`]
      : []),
    ...(costliestUs >= FLOORS.cpuUsPerMessage
      ? [`${round(costliestUs, 1)} µs CPU per message and node, floor ${FLOORS.cpuUsPerMessage}`]
      : []),
    ...(carbonsToNone < FLOORS.carbonsRatio
      ? [`${round(carbonsToNone * 100)} % of the messages with carbons, floor 50 %`]
      : []),
  ];
}

export function messageRows(
  { full, paced, baseline }: MessageFigures,
  summary: MessageSummary,
  options: BenchOptions,
): ReportRow[] {
  const { ratios } = summary;
  return [
    ["messages/s between datacenters", showSpread(summary.messagesPerSecond, 0)],
    ...summary.nodes.map(({ node, role, cpuUsPerMessage, residentBytes }): ReportRow => [
      `CPU µs per message, ${node} (${role})`,
      `${showSpread(cpuUsPerMessage, 1)}, ${round(residentBytes / 1e6)} MB`,
    ]),
    ["CPU µs per message, load generator", showSpread(summary.loadCpuUsPerMessage, 1)],
    ["latency at full load", showLatency(full.at(-1)!.latency)],
    [`latency at ${round(paced.messagesPerSecond)} messages/s`, showLatency(paced.latency)],
    [
      "messages/s, with a carbon of each to a device elsewhere",
      `${showSpread(summary.messagesPerSecondWithCarbons, 0)}, ` +
      `${round(ratios.carbonsToNone * 100)} %`,
    ],
    ["raw TLS frames/s", round(baseline.framesPerSecond)],
    [
      "raw TLS CPU µs per frame, both ends",
      round(baseline.senderCpuUsPerFrame + baseline.receiverCpuUsPerFrame, 2),
    ],
    [`raw TLS latency at ${options.pacePerSecond} frames/s`, showLatency(baseline.latency)],
    ["messages to raw frames", round(ratios.messagesToBaselineFrames, 4)],
    ["CPU to raw CPU, both ends", round(ratios.cpuToBaselineCpu, 1)],
    [
      "latency added, p50 / p99 / p99.9",
      [
        ratios.latencyAddedP50Us,
        ratios.latencyAddedP99Us,
        ratios.latencyAddedP999Us,
      ].map(showUs).join(" / "),
    ],
  ];
}
