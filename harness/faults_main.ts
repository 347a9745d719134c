/** Entry of `deno task test:faults`; see `--help`. */
import { ProgressBar } from "./screen/progress_bar.ts";
import { faultsMain } from "./trials/main.ts";
import { TRIALS } from "./trials/mod.ts";

if (import.meta.main) {
  using bar = ProgressBar.ofProcess("stdout");
  const code = await faultsMain(Deno.args, { trials: TRIALS, bar });
  bar[Symbol.dispose]();
  Deno.exit(code);
}
