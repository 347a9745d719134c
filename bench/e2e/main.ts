/**
 * `deno task bench:e2e`: messages between datacenters through a whole cluster of node processes, with
 * a raw TLS stream on the same machine beside it; the session table; rosters and logins of people;
 * archives of messages, with the bare driver of their database beside them.
 */
import { withCluster } from "../../harness/cluster/mod.ts";
import type { ProgressBar } from "../../harness/screen/progress_bar.ts";
import { measureArchives } from "./archive/archives_measurement.ts";
import { measureBaseline } from "./baseline.ts";
import type { BenchOptions, BenchRow } from "./bench_options.ts";
import { parseBenchOptions, ROWS, USAGE } from "./bench_options.ts";
import { formatReport, summarize } from "./bench_report.ts";
import type { ClusterFigures, MeasuredCluster } from "./cluster_measurement.ts";
import { measureCluster } from "./cluster_measurement.ts";
import type { MessageFigures } from "./message_report.ts";
import { measurePeople } from "./people/people_measurement.ts";
import { runBench } from "./run_bench.ts";
import { TelemetrySink } from "./telemetry_sink.ts";
import type { TableFigures } from "./table_measurement.ts";
import { measureTable } from "./table_measurement.ts";

const PASSWORD = "bench";
/** Stanzas per second on the link that also carries the table of a new datacenter. */
const TABLE_STANZAS_PER_SECOND = 1_000;
/** Milliseconds that the start of a cluster and all pauses between runs take about. */
const START_MS = 15_000;

/** Measures the rows that are asked for. */
async function measureRows(options: BenchOptions, bar: ProgressBar) {
  const progress = (text: string) => bar.say(text);
  const rows = ROWS.filter((row) => options.rows.has(row));
  /** Shows that a row begins. Only of `messages` it is known how long it takes. */
  const begin = (row: BenchRow) => {
    const index = rows.indexOf(row);
    bar.begin({
      text: `${row} (${index + 1} of ${rows.length})`,
      from: index / rows.length,
      to: (index + 1) / rows.length,
      ...(row === "messages" && { forMs: messagesMs(options) }),
    });
  };
  const measured = async <Figures>(row: BenchRow, measure: () => Promise<Figures>) => {
    if (!options.rows.has(row)) return undefined;
    begin(row);
    return await measure();
  };
  return {
    messages: await measured("messages", () => measureMessages(options, progress)),
    table: await measured("table", () => measuredTable(options, progress)),
    ...await measurePeople(options, progress, begin),
    ...await measureArchives(options, progress, begin),
  };
}

/** Milliseconds that the row `messages` takes about: the baseline, and runs of three kinds. */
function messagesMs({ runs, seconds, warmUpSeconds }: BenchOptions): number {
  return START_MS + 1000 * ((2 * runs + 2) * seconds + warmUpSeconds);
}

/** Measures messages between datacenters, and a raw TLS stream beside them. */
async function measureMessages(
  options: BenchOptions,
  progress: (text: string) => void,
): Promise<MessageFigures> {
  const baseline = await measureBaseline({
    frameBytes: options.messageBytes,
    warmUpMs: 500,
    measureMs: options.seconds * 1000,
    pacePerSecond: options.pacePerSecond,
  });
  progress(`raw TLS: ${Math.round(baseline.framesPerSecond)} frames/s`);
  return { ...await runCluster(options, progress), baseline };
}

async function measuredTable(
  { sessions }: BenchOptions,
  progress: (text: string) => void,
): Promise<TableFigures | undefined> {
  if (sessions === 0) return undefined;
  return await measureTable({ sessions, stanzasPerSecond: TABLE_STANZAS_PER_SECOND }, progress);
}

/** Starts the datacenters, with accounts for every client at each, and measures. */
async function runCluster(
  options: BenchOptions,
  progress: (text: string) => void,
): Promise<ClusterFigures> {
  const { tracedRatio } = options;
  await using sink = tracedRatio > 0 ? new TelemetrySink() : undefined;
  const account = (index: number) => ({ localpart: `bench${index}`, password: PASSWORD });
  const users = Array.from({ length: 2 * options.pairs }, (_, index) => account(index));
  const { datacenters } = options;
  const figures = await withCluster({
    datacenters,
    users,
    links: "direct", // the harness's own proxies would be measured too
    components: [],
    configure: (configuration) => sink?.configure(configuration, tracedRatio),
  }, (cluster) => {
    const measured: MeasuredCluster = {
      domain: cluster.globalHost,
      nodes: cluster.datacenters.map((datacenter) => ({
        name: datacenter.name,
        pid: datacenter.node.pid,
        c2s: datacenter.clientAddress("none"),
      })),
      account,
    };
    return measureCluster(measured, options, progress);
  });
  if (sink !== undefined) {
    const { requests, bytes } = sink.taken;
    progress(`the collector got ${requests} requests of ${bytes} bytes`);
  }
  return figures;
}

if (import.meta.main) {
  await runBench({
    command: "deno task bench:e2e",
    usage: USAGE,
    parse: parseBenchOptions,
    measure: measureRows,
    report: ({ context, options }, measured) => {
      const report = summarize({ context, options, ...measured });
      const isMissed = options.check && report.missed.length > 0;
      return { figures: report, text: formatReport(report), isMissed };
    },
  });
}
