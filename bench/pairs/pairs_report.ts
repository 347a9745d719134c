import type { BenchContext } from "../e2e/bench_report.ts";
import { pausesLine } from "../e2e/machine_pauses.ts";
import type { Spread } from "../e2e/bench_format.ts";
import { round, showSpread, showUs, spreadOf } from "../e2e/bench_format.ts";
import type { MedianBounds } from "./median_bounds.ts";
import { medianBounds } from "./median_bounds.ts";
import type { ArmName, PairsOptions } from "./pairs_options.ts";

/** Figures of one arm's load for a while. */
export interface Turn {
  readonly arm: ArmName;
  readonly messagesPerSecond: number;
  /** Microseconds of processor time of both nodes for each message that arrived. */
  readonly cpuUsPerMessage: number;
  readonly p99Us: number;
}

/** One turn of each arm, one after another. */
export type Block = readonly Turn[];

/** All figures of one call: blocks by the start of the clusters that they belong to. */
export interface PairsFigures {
  readonly context: BenchContext;
  readonly options: PairsOptions;
  readonly starts: readonly (readonly Block[])[];
}

type Figure = Exclude<keyof Turn, "arm">;

/** One arm over all blocks. */
export interface ArmSummary {
  readonly arm: ArmName;
  readonly messagesPerSecond: Spread;
  readonly cpuUsPerMessage: Spread;
  readonly p99Us: Spread;
  /** Ratios to `before`, whose turn was in the same block; undefined for `before` itself. */
  readonly ratios: Readonly<Record<Figure, RatioSummary>> | undefined;
}

/** Ratios of pairs of turns. */
export interface RatioSummary extends MedianBounds {
  /** Median for each start of the clusters. They may differ from start to start. */
  readonly byStart: readonly number[];
}

/** Returns what follows from the figures, by arm. Pure. */
export function summarizePairs(
  starts: PairsFigures["starts"],
  arms: readonly ArmName[],
): readonly ArmSummary[] {
  const spread = (arm: ArmName, figure: Figure) =>
    spreadOf(starts.flat().map((block) => turnOf(block, arm)[figure]));
  return arms.map((arm) => ({
    arm,
    messagesPerSecond: spread(arm, "messagesPerSecond"),
    cpuUsPerMessage: spread(arm, "cpuUsPerMessage"),
    p99Us: spread(arm, "p99Us"),
    ratios: arm === "before" ? undefined : {
      messagesPerSecond: ratiosOf(starts, arm, "messagesPerSecond"),
      cpuUsPerMessage: ratiosOf(starts, arm, "cpuUsPerMessage"),
      p99Us: ratiosOf(starts, arm, "p99Us"),
    },
  }));
}

function ratiosOf(starts: PairsFigures["starts"], arm: ArmName, figure: Figure): RatioSummary {
  const ratios = starts.map((blocks) =>
    blocks.map((block) => turnOf(block, arm)[figure] / turnOf(block, "before")[figure])
  );
  return {
    ...medianBounds(ratios.flat()),
    byStart: ratios.map((each) => spreadOf(each).median),
  };
}

function turnOf(block: Block, arm: ArmName): Turn {
  const turn = block.find((each) => each.arm === arm);
  if (turn === undefined) throw new TypeError(`A block has no turn of ${arm}`);
  return turn;
}

/** The figures as a table for people, in Markdown so that it can be pasted. */
export function formatPairs(
  { context, options }: Pick<PairsFigures, "context" | "options">,
  summary: readonly ArmSummary[],
): string {
  const rows = [
    ["", "messages/s", "ratio", "CPU µs per message", "ratio", "p99", "ratio"],
    ...summary.map(({ arm, messagesPerSecond, cpuUsPerMessage, p99Us, ratios }) => [
      arm,
      showSpread(messagesPerSecond, 0),
      showRatio(ratios?.messagesPerSecond),
      showSpread(cpuUsPerMessage, 1),
      showRatio(ratios?.cpuUsPerMessage),
      showUs(p99Us.median),
      showRatio(ratios?.p99Us),
    ]),
  ];
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column]!)).join(" | ")} |`;
  const [head, ...body] = rows.map(line);
  const versions = Object.entries(context.versions).map(([name, version]) => `${name} ${version}`);
  const { starts, blocks, pairs, inFlight, messageBytes, before } = options;
  return [
    `${context.date}, commit ${context.commit}: ${context.command}`,
    `${context.cores} × ${context.processor}; ${versions.join(", ")}`,
    `2 datacenters, ${pairs} pairs one-way, ${inFlight} in flight each, ${messageBytes}-byte ` +
    `messages; ${starts} × ${blocks} blocks; ratios to ${before}: median (95 % bounds)`,
    pausesLine(context.pauses),
    "",
    head,
    `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`,
    ...body,
    ...(starts === 1 ? [] : ["", ...summary.flatMap(startLines)]),
  ].join("\n");
}

function startLines({ arm, ratios }: ArmSummary): readonly string[] {
  if (ratios === undefined) return [];
  const show = ({ byStart }: RatioSummary) => byStart.map((ratio) => round(ratio, 2)).join(", ");
  return [
    `${arm} by start: messages/s ${show(ratios.messagesPerSecond)}; ` +
    `CPU ${show(ratios.cpuUsPerMessage)}`,
  ];
}

function showRatio(ratio: RatioSummary | undefined): string {
  return ratio === undefined
    ? ""
    : `${round(ratio.median, 2)} (${round(ratio.low, 2)} – ${round(ratio.high, 2)})`;
}
