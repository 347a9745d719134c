import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "./serve_command.ts";

/**
 * True in the executable of `deno task compile`, which holds the harness as one bundle, without the
 * files of the project around it.
 */
export const IS_BUNDLED = !import.meta.url.endsWith("/own_program.ts");

/** The project's root: where commands run and what `mod.ts` is relative to. */
export const PROJECT_DIRECTORY = IS_BUNDLED
  ? Deno.cwd()
  : fileURLToPath(new URL("../../", import.meta.url));

/**
 * Directory for the files of runs. It lies inside the project, so that no further permission is
 * needed. The executable makes one where it is run, the only one that it may write for this.
 */
export const RUNS_DIRECTORY = IS_BUNDLED
  ? resolve("causeway-cluster")
  : join(PROJECT_DIRECTORY, ".tmp/runs/");

/** Command of the executable that does what `watchdog_main.ts` does. */
export const WATCHDOG_COMMAND = "cluster-watchdog";

/** Returns the command that watches over a run and its directory. */
export function watchdogCommand(directory: string): Command {
  if (IS_BUNDLED) {
    return {
      program: Deno.env.get("CAUSEWAY_BIN") ?? Deno.execPath(),
      args: [WATCHDOG_COMMAND, directory],
    };
  }
  return {
    program: Deno.execPath(),
    args: [
      ...["run", "--no-prompt", "--no-config", "--quiet"],
      // Ending processes needs the whole run permission; it gets nothing else but the directory.
      ...["--allow-run", `--allow-write=${directory}`],
      new URL("./watchdog_main.ts", import.meta.url).href,
      directory,
    ],
  };
}
