/** Entry of `deno task test:faults`; see `--help`. */
import { faultsMain } from "./trials/main.ts";
import { TRIALS } from "./trials/mod.ts";

if (import.meta.main) {
  const write = (text: string) => void Deno.stdout.writeSync(new TextEncoder().encode(text));
  Deno.exit(await faultsMain(Deno.args, { trials: TRIALS, write }));
}
