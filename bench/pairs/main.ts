/**
 * `deno task bench:pairs`: this tree beside an earlier build. The clusters of both run at the same time,
 * and one of them at a time has load for a moment, in an order that is drawn anew for each block. So
 * what the machine does meanwhile, and how warm it is, affects all of them alike.
 */
import { PROJECT_DIRECTORY, Run, unpackCommit } from "../../harness/process/mod.ts";
import type { ProgressBar } from "../../harness/screen/progress_bar.ts";
import { runBench } from "../e2e/run_bench.ts";
import { TelemetrySink } from "../e2e/telemetry_sink.ts";
import { ClusterArm } from "./cluster_arm.ts";
import type { ArmName, PairsOptions } from "./pairs_options.ts";
import { parsePairsOptions, USAGE } from "./pairs_options.ts";
import type { Block } from "./pairs_report.ts";
import { formatPairs, summarizePairs } from "./pairs_report.ts";

const TURN = { warmUpMs: 250, measureMs: 600 };
/** The first turn of a cluster: the engine compiles what runs often. */
const FIRST_TURN = { warmUpMs: 4_000, measureMs: 500 };
/** Milliseconds that a turn takes about, and the start of an arm. */
const [TURN_MS, START_MS] = [1_000, 8_000];
/** Removes a directory into which others may still write for a moment. */
const REMOVAL = 'for i in 1 2 3; do sleep 1; rm -rf "$1" && break; done';

async function measure(
  options: PairsOptions,
  bar: ProgressBar,
): Promise<readonly (readonly Block[])[]> {
  const arms = armsOf(options);
  await using run = await Run.start();
  const before = run.path("before");
  await Deno.mkdir(before);
  // The clusters write there too, and take a moment to end when this process dies.
  run.guardWith(["sh", "-c", REMOVAL, "sh", before]);
  await unpackCommit(options.before, before);
  await using sink = new TelemetrySink();
  const startMs = arms.length * START_MS;
  const forMs = startMs + options.blocks * arms.length * TURN_MS;
  const starts: Block[][] = [];
  for (let start = 1; start <= options.starts; start++) {
    const [from, to] = [(start - 1) / options.starts, start / options.starts];
    bar.begin({ text: `start ${start} of ${options.starts}`, from, to, forMs });
    await using stack = new AsyncDisposableStack();
    const clusters: ClusterArm[] = [];
    for (const name of arms) {
      const tree = name === "before" ? before : PROJECT_DIRECTORY;
      clusters.push(stack.use(await ClusterArm.start({ name, tree, sink }, options)));
    }
    for (const cluster of clusters) await cluster.turn(FIRST_TURN);
    const blocks: Block[] = [];
    while (blocks.length < options.blocks) {
      const block = [];
      for (const cluster of shuffled(clusters)) block.push(await cluster.turn(TURN));
      blocks.push(block);
    }
    starts.push(blocks);
    bar.say(`start ${start} of ${options.starts}: ${blocks.length} blocks`);
  }
  return starts;
}

function shuffled<T>(items: readonly T[]): T[] {
  const drawn = items.map((item) => ({ item, at: Math.random() }));
  return drawn.toSorted((one, other) => one.at - other.at).map(({ item }) => item);
}

/** Returns the earlier build and the others. */
function armsOf(options: PairsOptions): readonly ArmName[] {
  return ["before", ...options.arms];
}

if (import.meta.main) {
  await runBench({
    command: "deno task bench:pairs",
    usage: USAGE,
    parse: parsePairsOptions,
    measure,
    report: ({ context, options }, starts) => {
      const summary = summarizePairs(starts, armsOf(options));
      return {
        figures: { context, options, summary, starts },
        text: formatPairs({ context, options }, summary),
      };
    },
  });
}
