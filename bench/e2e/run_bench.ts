import { fullMessage } from "../../harness/command/run_scenario.ts";
import { ProgressBar } from "../../harness/screen/progress_bar.ts";
import { benchContext } from "./bench_context.ts";
import type { BenchContext } from "./bench_report.ts";
import { watchPauses } from "./machine_pauses.ts";

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

/** Options that every bench takes. */
interface CommonOptions {
  /** File to which the figures are written too. */
  readonly json: string | undefined;
}

/** Result of a bench. */
export interface BenchResult {
  /** The figures, for the file. */
  readonly figures: unknown;
  /** The same, for people. */
  readonly text: string;
  /** True when the figures are not good enough, and the options ask for that to count. */
  readonly isMissed?: boolean;
}

/** A bench that is run by itself. */
export interface Bench<Options extends CommonOptions, Measured> {
  /** Command line that runs the bench, without arguments. */
  readonly command: string;
  readonly usage: string;
  /** Returns undefined when only the usage is asked for. @throws Error for wrong arguments */
  parse(args: readonly string[]): Options | undefined;
  measure(options: Options, bar: ProgressBar): Promise<Measured>;
  report(
    run: { readonly context: BenchContext; readonly options: Options },
    measured: Measured,
  ): BenchResult;
}

/** Runs a bench with the arguments of this process, which ends then. */
export async function runBench<Options extends CommonOptions, Measured>(
  bench: Bench<Options, Measured>,
): Promise<never> {
  try {
    Deno.exit(await run(bench, Deno.args));
  } catch (thrown) {
    // A node that does not start has said why; where in our code that was noticed helps nobody.
    console.error(fullMessage(thrown));
    Deno.exit(EXIT_FAILED);
  }
}

/** Returns the exit code. */
async function run<Options extends CommonOptions, Measured>(
  bench: Bench<Options, Measured>,
  args: readonly string[],
): Promise<number> {
  let options: Options | undefined;
  try {
    options = bench.parse(args);
  } catch (thrown) {
    console.error(`${(thrown as Error).message}\n\n${bench.usage}`); // parseArgs throws errors only
    return EXIT_USAGE;
  }
  if (options === undefined) {
    console.log(bench.usage);
    return 0;
  }
  using bar = ProgressBar.ofProcess("stderr");
  const before = { load: Deno.loadavg(), pauses: await watchPauses() };
  const measured = await bench.measure(options, bar);
  bar[Symbol.dispose]();
  const context = await benchContext([bench.command, ...args], before);
  const { figures, text, isMissed = false } = bench.report({ context, options }, measured);
  if (options.json !== undefined) {
    await Deno.writeTextFile(options.json, `${JSON.stringify(figures, null, 2)}\n`);
  }
  console.log(text);
  return isMissed ? EXIT_FAILED : 0;
}
