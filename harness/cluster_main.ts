/** Entry of `deno task cluster`; see `--help`. */
import { clusterMain } from "./command/main.ts";
import { SCENARIOS } from "./scenarios/mod.ts";

if (import.meta.main) {
  const isTerminal = Deno.stdout.isTerminal();
  Deno.exit(
    await clusterMain(Deno.args, {
      scenarios: SCENARIOS,
      isTerminal,
      isColoured: isTerminal && !Deno.noColor,
    }),
  );
}
