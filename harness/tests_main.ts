/**
 * Entry of `deno task test`. Scenarios and trials mostly wait, so that they run beside the rest, which
 * mostly computes: one after the other, both take half as long again. With arguments there is one run
 * of what they name.
 */
import { PROJECT_DIRECTORY } from "./process/mod.ts";
import { runTests, type TestRun } from "./test_runs.ts";

/** Folders whose tests mostly wait. */
const WAITING = ["harness/scenarios", "harness/trials"];
/** Folders that `deno.json` leaves out. A folder that is ignored here has all of those read again. */
const LEFT_OUT = ["dist", ".tmp"];
/** The longest file of them. What is named as a file comes before what lies in folders. */
const LONGEST = "harness/trials/trials_test.ts";

/** Files that each run has under way at once. More take longer than their tests are patient. */
const JOBS = "2";

function testRun(name: string, args: readonly string[]): TestRun {
  return {
    name,
    program: Deno.execPath(),
    args: [
      ...["test", "-P", "--no-prompt", "--preload=harness/fixed_seed.ts", "--doc", "--parallel"],
      ...args,
    ],
    env: { DENO_JOBS: JOBS },
  };
}

if (import.meta.main) {
  Deno.chdir(PROJECT_DIRECTORY);
  const runs = Deno.args.length > 0 ? [testRun("tests", Deno.args)] : [
    testRun("scenarios and trials", [LONGEST, ...WAITING]),
    testRun("all other tests", [`--ignore=${[...WAITING, ...LEFT_OUT].join()}`]),
  ];
  const encoder = new TextEncoder();
  Deno.exit(await runTests(runs, (text) => Deno.stdout.writeSync(encoder.encode(text))));
}
