/**
 * `deno task fuzz`: mutated input against everything that reads bytes from outside. A crash, a hang
 * over a second, growth over a bound or a disagreement with the reference is a finding: its input is
 * kept in `fixtures/fuzz/`, where it is a test from then on.
 */
import { parseArgs } from "node:util";
import { ProgressBar } from "../screen/progress_bar.ts";
import { keepFinding } from "./corpus.ts";
import { SUBJECTS } from "./replay.ts";
import { runInProcess } from "./run_in_process.ts";
import { LIVE_TARGETS, runLive } from "./run_live.ts";

const NAMES = Object.keys(SUBJECTS);

const USAGE = `deno task fuzz [options]
  --minutes N    time for each target (1)
  --target NAME  only this one: ${NAMES.join(", ")}
  --seed N       where the random changes begin (drawn, and printed)`;

interface FuzzOptions {
  readonly minutes: number;
  readonly targets: readonly string[];
  readonly seed: number;
}

/** Reads the command line. Throws an error that names the mistake. */
function parseOptions(args: readonly string[]): FuzzOptions {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    args: [...args],
    options: { minutes: text, target: text, seed: text },
  });
  const minutes = Number(values.minutes ?? "1");
  if (!(minutes > 0)) throw new RangeError(`Cannot fuzz for ${values.minutes} minutes`);
  const seed = Number(values.seed ?? crypto.getRandomValues(new Uint32Array(1))[0]);
  if (!Number.isInteger(seed)) throw new RangeError(`Cannot begin at seed ${values.seed}`);
  const { target } = values;
  if (target !== undefined && !NAMES.includes(target)) {
    throw new RangeError(`Cannot find target ${target}: there are ${NAMES.join(", ")}`);
  }
  return { minutes, targets: target === undefined ? NAMES : [target], seed };
}

async function main(args: readonly string[]): Promise<number> {
  if (args.includes("--help")) {
    console.log(USAGE);
    return 0;
  }
  let options: FuzzOptions;
  try {
    options = parseOptions(args);
  } catch (thrown) {
    console.error(`${(thrown as Error).message}\n\n${USAGE}`); // errors only are thrown
    return 2;
  }
  let findings = 0;
  using bar = ProgressBar.ofProcess("stdout");
  const { seed, minutes, targets } = options;
  for (const [index, target] of targets.entries()) {
    bar.begin({
      text: `${target} (${index + 1} of ${targets.length})`,
      from: index / targets.length,
      to: (index + 1) / targets.length,
      forMs: minutes * 60_000,
    });
    const run = { target, seed, durationMs: minutes * 60_000 };
    const fuzzed = target in LIVE_TARGETS
      ? await runLive(run)
      : await runInProcess(run).catch(explain);
    if (fuzzed === undefined) return 2;
    const { runs, finding } = fuzzed;
    if (finding === undefined) {
      bar.say(`${target}: ${runs} inputs in ${minutes} min, seed ${seed}: nothing found`);
      continue;
    }
    findings++;
    bar.say(`${target}: after ${runs} inputs, seed ${seed}: ${finding.problem}`);
    for (const path of await keepFinding(target, finding.inputs)) bar.say(`  input: ${path}`);
  }
  return findings === 0 ? 0 : 1;
}

function explain(thrown: unknown): undefined {
  console.error(thrown instanceof Error ? thrown.message : String(thrown));
}

if (import.meta.main) Deno.exit(await main(Deno.args));
