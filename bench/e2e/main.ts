/**
 * `deno task bench:e2e`: messages between datacenters through a whole cluster of node processes, with
 * a raw TLS stream on the same machine beside it; the session table; rosters and logins of people;
 * archives of messages, with the bare driver of their database beside them.
 */
import { withCluster } from "../../harness/cluster/mod.ts";
import { ProgressBar } from "../../harness/screen/progress_bar.ts";
import { fullMessage } from "../../harness/command/run_scenario.ts";
import { measureArchives } from "./archive/archives_measurement.ts";
import { measureBaseline } from "./baseline.ts";
import { benchContext } from "./bench_context.ts";
import type { BenchOptions, BenchRow } from "./bench_options.ts";
import { parseBenchOptions, ROWS, USAGE } from "./bench_options.ts";
import { formatReport, summarize } from "./bench_report.ts";
import type { ClusterFigures, MeasuredCluster } from "./cluster_measurement.ts";
import { measureCluster } from "./cluster_measurement.ts";
import type { MessageFigures } from "./message_report.ts";
import { measurePeople } from "./people/people_measurement.ts";
import { TelemetrySink } from "./telemetry_sink.ts";
import type { TableFigures } from "./table_measurement.ts";
import { measureTable } from "./table_measurement.ts";

const PASSWORD = "bench";
/** Stanzas per second on the link that also carries the table of a new datacenter. */
const TABLE_STANZAS_PER_SECOND = 1_000;
/** Milliseconds that the start of a cluster and all pauses between runs take about. */
const START_MS = 15_000;
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

/** Runs the bench and says how to exit. */
async function main(args: readonly string[]): Promise<number> {
  let options: BenchOptions | undefined;
  try {
    options = parseBenchOptions(args);
  } catch (thrown) {
    console.error(`${(thrown as Error).message}\n\n${USAGE}`); // parseArgs throws errors only
    return EXIT_USAGE;
  }
  if (options === undefined) {
    console.log(USAGE);
    return 0;
  }
  using bar = ProgressBar.ofProcess("stderr");
  const progress = (text: string) => bar.say(text);
  const loadBefore = Deno.loadavg();
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
  const figures = {
    messages: await measured("messages", () => measureMessages(options, progress)),
    table: await measured("table", () => measuredTable(options, progress)),
    ...await measurePeople(options, progress, begin),
    ...await measureArchives(options, progress, begin),
  };
  bar[Symbol.dispose]();
  const context = await benchContext(["deno task bench:e2e", ...args], loadBefore);
  const report = summarize({ context, options, ...figures });
  if (options.json !== undefined) {
    await Deno.writeTextFile(options.json, `${JSON.stringify(report, null, 2)}\n`);
  }
  console.log(formatReport(report));
  return options.check && report.missed.length > 0 ? EXIT_FAILED : 0;
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
  try {
    Deno.exit(await main(Deno.args));
  } catch (thrown) {
    // A node that does not start has said why; where in our code that was noticed helps nobody.
    console.error(fullMessage(thrown));
    Deno.exit(EXIT_FAILED);
  }
}
