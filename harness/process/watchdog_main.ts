/** A program of its own, started by `Run`. */
import { watchOver } from "./watchdog.ts";

const [directory] = Deno.args;
if (directory === undefined) throw new TypeError("Cannot watch over a run: no directory given");
await watchOver(directory);
Deno.exit(0);
