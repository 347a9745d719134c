import { cpuUsage } from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { readKept } from "./corpus.ts";
import { CURRENT_BYTES } from "./worker_protocol.ts";
import type { FuzzPlan, FuzzWord } from "./worker_protocol.ts";

/** Duration and seed of a fuzzing run. */
export interface FuzzRun {
  readonly target: string;
  readonly seed: number;
  readonly durationMs: number;
}

/** Something that does not hold. */
export interface FuzzFinding {
  readonly problem: string;
  /** Inputs that cause it: one, or several among which the cause is unknown. */
  readonly inputs: readonly Uint8Array[];
}

/** Result of a run. */
export interface FuzzResult {
  readonly runs: number;
  readonly finding: FuzzFinding | undefined;
}

/** Milliseconds of processor time; an input that takes more is a finding. */
const MAX_RUN_MS = 1000;
/** Milliseconds of silence that are one whatever it spends: it waits for something. */
const MAX_SILENT_MS = 20_000;
/** The first words take longer: the worker has to be compiled. */
const START_MS = 20_000;
/** A process that needs more is a finding: the targets keep nothing. */
const MAX_RSS_BYTES = 1_500_000_000;
const LOOK_MS = 250;

/**
 * Fuzzes a target in a Web Worker, which a watchdog here ends when it hangs or grows. Rejects when the
 * target lacks what it compares with.
 */
export async function runInProcess(run: FuzzRun): Promise<FuzzResult> {
  const current = new SharedArrayBuffer(CURRENT_BYTES);
  const plan: FuzzPlan = {
    target: run.target,
    seed: run.seed,
    corpus: (await readKept(run.target)).map(({ input }) => input),
    current,
  };
  const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  let runs = 0;
  let problem: string | undefined;
  let failure: string | undefined;
  const startMs = performance.now();
  /** A busy machine may not let the worker run for long: what counts is what it has spent. */
  let alive = { untilCpuMs: cpuMs() + START_MS, untilMs: startMs + MAX_SILENT_MS };
  worker.onmessage = ({ data }: MessageEvent<FuzzWord>) => {
    if (data.kind === "failed") {
      failure = data.problem;
      return;
    }
    runs = data.runs;
    alive = { untilCpuMs: cpuMs() + MAX_RUN_MS, untilMs: performance.now() + MAX_SILENT_MS };
    if (data.kind === "finding") problem = data.problem;
  };
  worker.onerror = (event) => {
    event.preventDefault();
    problem ??= `the worker failed: ${event.message}`;
  };
  worker.postMessage(plan);
  while (
    problem === undefined && failure === undefined && performance.now() - startMs < run.durationMs
  ) {
    await delay(LOOK_MS);
    const rssBytes = Deno.memoryUsage().rss;
    if (cpuMs() > alive.untilCpuMs || performance.now() > alive.untilMs) {
      problem ??= `an input takes longer than ${MAX_RUN_MS} ms`;
    } else if (rssBytes > MAX_RSS_BYTES) problem ??= `the process has grown to ${rssBytes} bytes`;
  }
  worker.terminate();
  if (failure !== undefined) throw new Error(failure);
  if (problem === undefined) return { runs, finding: undefined };
  const length = new Uint32Array(current, 0, 1)[0]!;
  return { runs, finding: { problem, inputs: [new Uint8Array(current, 4, length).slice()] } };
}

/** Processor time of this process, its workers included. */
function cpuMs(): number {
  const { user, system } = cpuUsage();
  return (user + system) / 1000;
}
