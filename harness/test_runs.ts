import { Child, type ChildOptions } from "./process/mod.ts";

/** One `deno test`, which runs some of the tests beside the other runs. */
export interface TestRun extends Pick<ChildOptions, "program" | "args" | "env"> {
  /** Name for people: `scenarios, trials and databases`. */
  readonly name: string;
}

/** Heading under which a run says what failed, after its last test. */
const ERRORS = " ERRORS ";
/** The last words of a run: `ok | 12 passed (3 steps) | 0 failed | 1 ignored (2s)`. */
const CLOSING = /^(?:ok|FAILED) \| \d+ passed\b.* \([^()]*\)$/;
const COUNT = /\| (\d+) ([a-z ]*[a-z])(?: \((\d+) steps?\))?/g;

/** Signals that the runs hear too. */
const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/**
 * Runs all of them at once, and writes what they say line by line. The reports of failures come last,
 * each in one piece: whoever has only the end of a log can read what failed. The last line counts the tests of all runs, in the words of `deno test`; there is
 * none when a run was ended before it had counted its own.
 *
 * @returns the exit code: 0, or the highest of the runs
 */
export async function runTests(
  runs: readonly TestRun[],
  write: (text: string) => void,
): Promise<number> {
  const startMs = performance.now();
  const closings: string[] = [];
  const children = runs.map((run) => new Child(run));
  const forwards = SIGNALS.map((signal) => {
    const forward = () => children.forEach((child) => child.signal(signal));
    Deno.addSignalListener(signal, forward);
    return () => Deno.removeSignalListener(signal, forward);
  });
  try {
    const reports: string[] = [];
    const codes = await Promise.all(children.map(async (child) => {
      const { report, closing } = await follow(child, write);
      if (closing !== undefined) closings.push(closing);
      const { code } = await child.exited;
      write(`${child.name}: ${closing ?? `ended with code ${code}, and counted nothing`}\n`);
      reports.push(report);
      return code;
    }));
    for (const report of reports) write(report);
    const seconds = Math.round((performance.now() - startMs) / 1000);
    if (closings.length === runs.length) write(`\n${sumOf(closings, seconds)}\n`);
    return Math.max(0, ...codes);
  } finally {
    for (const end of forwards) end();
  }
}

/** Returns last words with the sums of those of several runs. */
export function sumOf(closings: readonly string[], seconds: number): string {
  const sums = new Map<string, { tests: number; steps: number }>();
  for (
    const [, tests, word = "", steps = 0] of closings.flatMap((each) => [...each.matchAll(COUNT)])
  ) {
    const before = sums.get(word) ?? { tests: 0, steps: 0 };
    sums.set(word, { tests: before.tests + Number(tests), steps: before.steps + Number(steps) });
  }
  const parts = Array.from(sums, ([word, { tests, steps }]) => {
    return `${tests} ${word}${steps === 0 ? "" : ` (${steps} ${steps === 1 ? "step" : "steps"})`}`;
  });
  const isOk = closings.every((closing) => closing.startsWith("ok"));
  const time = `${Math.floor(seconds / 60)}m${seconds % 60}s`;
  return `${isOk ? "ok" : "FAILED"} | ${parts.join(" | ")} (${time})`;
}

/** Writes the lines of `child` as they come, but for its report of failures and its last words. */
async function follow(
  child: Child,
  write: (text: string) => void,
): Promise<{ readonly report: string; readonly closing: string | undefined }> {
  let report = "";
  let isReport = false;
  let closing: string | undefined;
  child.log.watch(({ text }) => {
    if (CLOSING.test(text)) {
      closing = text;
      return;
    }
    isReport ||= text === ERRORS;
    if (isReport) report += `${text}\n`;
    else write(`${text}\n`);
  });
  await child.exited;
  return { report, closing };
}
