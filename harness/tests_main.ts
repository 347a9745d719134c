/**
 * Entry of `deno task test`. Scenarios, trials and the stores of two SQL servers mostly wait, so that
 * they run beside the rest, which mostly computes: one after the other, both take half as long again.
 * Work that all would do is done once before: the types of all files are checked, and the program is
 * bundled, as its nodes start in half the time then. With arguments there is one run of what they
 * name, and nothing is bundled.
 */
import { join } from "node:path";
import { bundle } from "../deploy/bundle.ts";
import { PROJECT_DIRECTORY } from "./process/mod.ts";
import { filesOf, SUITES } from "./suites/suites.ts";
import { runTests, type TestRun } from "./test_runs.ts";

/** Folders whose tests mostly wait. */
const WAITING = ["harness/scenarios", "harness/trials"];
/** Folders that `deno.json` leaves out. A folder that is ignored here has all of those read again. */
const LEFT_OUT = ["dist", ".tmp"];
/** Files that mostly wait for a database: as many as make both runs about as long. */
const WAITING_FOR_DATABASES = ["mysql", "postgresql"]
  .map((name) => `src/storage/sql/stores_${name}_test.ts`);
/** The longest file of `WAITING`. What is named as a file comes before what lies in folders. */
const LONGEST = "harness/trials/trials_test.ts";

/** Files that each run has under way at once. More take longer than their tests are patient. */
const JOBS = "2";

/** Checks the types in all files and in the examples of docstrings. Returns the exit code. */
async function checkTypes(): Promise<number> {
  const check = new Deno.Command(Deno.execPath(), { args: ["check", "--doc", "--quiet"] });
  return (await check.spawn().status).code;
}

/** Bundles the program. Returns its entry: see `causewayCommand`. */
async function bundleProgram(): Promise<string> {
  const directory = ".tmp/program";
  await bundle("mod.ts", { directory });
  return join(PROJECT_DIRECTORY, directory, "mod.js");
}

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
  const isAll = Deno.args.length === 0;
  if (isAll) {
    const code = await checkTypes();
    if (code !== 0) Deno.exit(code);
    Deno.env.set("CAUSEWAY_PROGRAM", await bundleProgram());
    Deno.env.set("CAUSEWAY_SUITES", "loaded");
  }
  const suites = Object.keys(SUITES) as (keyof typeof SUITES)[];
  const loaded = (await Promise.all(suites.map(filesOf))).flat();
  const runs = isAll
    ? [
      testRun("scenarios, trials and databases", [
        "--no-check",
        ...[LONGEST, ...WAITING_FOR_DATABASES, ...WAITING],
      ]),
      testRun("all other tests", [
        "--no-check",
        // Deno would ignore none of them if it were given a file or a folder, too.
        `--ignore=${[...WAITING, ...WAITING_FOR_DATABASES, ...loaded, ...LEFT_OUT].join()}`,
      ]),
    ]
    : [testRun("tests", Deno.args)];
  const encoder = new TextEncoder();
  Deno.exit(await runTests(runs, (text) => Deno.stdout.writeSync(encoder.encode(text))));
}
