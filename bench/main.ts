/**
 * Entry of `deno task bench`: `deno bench` over this folder, which takes further arguments as they
 * are. On a terminal a bar below its figures says how far it is. The figures come from a process of
 * their own, which does not know of the bar.
 */
import { fileURLToPath } from "node:url";
import { LineLog } from "../harness/process/line_log.ts";
import { ProgressBar } from "../harness/screen/progress_bar.ts";
import { microStage } from "./micro_stage.ts";

const FOLDER = fileURLToPath(new URL(".", import.meta.url));

/** Runs the benches of `files` and returns the exit code. */
async function bench(files: readonly string[]): Promise<number> {
  using bar = ProgressBar.ofProcess("stdout");
  const isColoured = Deno.stdout.isTerminal() && !Deno.noColor;
  const process = new Deno.Command(Deno.execPath(), {
    args: ["bench", "-P", "--no-prompt", FOLDER, ...Deno.args],
    cwd: fileURLToPath(new URL("..", import.meta.url)),
    env: isColoured ? { FORCE_COLOR: "1" } : {},
    stdout: "piped",
  }).spawn();
  const log = new LineLog();
  log.watch(({ text }) => {
    const stage = microStage(text, files);
    if (stage !== undefined) bar.begin(stage);
    bar.say(text);
  });
  await log.drain(process.stdout, "stdout");
  return (await process.status).code;
}

if (import.meta.main) {
  const names = [...Deno.readDirSync(FOLDER)].map(({ name }) => name);
  Deno.exit(await bench(names.filter((name) => name.endsWith("_bench.ts")).toSorted()));
}
