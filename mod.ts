/**
 * Causeway: several XMPP datacenters, one XMPP domain. This is the face of the library and, run as a
 * program, the command `causeway`.
 *
 * @module
 */
import { main } from "./src/cli/mod.ts";
import type { Config } from "./src/config/mod.ts";

export { main } from "./src/cli/mod.ts";
export type { Config, Finding, ParseOptions } from "./src/config/mod.ts";
export {
  ConfigError,
  configJsonSchema,
  formatFinding,
  loadConfig,
  parseConfig,
  VERSION,
} from "./src/config/mod.ts";

/** Runs one node until it is told to stop by a signal; gives the exit code. */
export async function runNode(config: Config): Promise<number> {
  // Loaded at need: the commands that only read files start without it.
  const node = await import("./src/node/mod.ts");
  return await node.runNode(config);
}

if (import.meta.main) Deno.exit(await main(Deno.args));
