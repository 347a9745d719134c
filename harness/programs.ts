/**
 * Prints the programs that a task may run, for its `--allow-run`: this very Deno, and what is found on
 * the PATH of those that a Redis may come from and of the arguments. A task that names them one by one
 * would name what is not there, and would miss the Deno that runs it when that is not the first on the
 * PATH. `CAUSEWAY_BIN`, the compiled program that the harness is to start, is one of them.
 */
import { delimiter, join } from "node:path";

/** What `harness/redis/` may run. */
const REDIS_PROGRAMS = ["redis-server", "valkey-server", "docker", "podman"];

/** Paths of `programs` in the folders of `path`, the first hit for each. */
export function findPrograms(programs: readonly string[], path: string): readonly string[] {
  const found: string[] = [];
  const suffix = Deno.build.os === "windows" ? ".exe" : "";
  for (const program of programs) {
    const isAbsolute = program.startsWith("/");
    const folders = isAbsolute ? [""] : path.split(delimiter).filter((folder) => folder !== "");
    const hit = folders
      .map((folder) => isAbsolute ? program : join(folder, program + suffix))
      .find(isFile);
    if (hit !== undefined) found.push(hit);
  }
  return found;
}

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false; // not there, or not ours to look at
  }
}

if (import.meta.main) {
  const programs = findPrograms([...REDIS_PROGRAMS, ...Deno.args], Deno.env.get("PATH") ?? "");
  const binary = Deno.env.get("CAUSEWAY_BIN") ?? "";
  console.log([Deno.execPath(), ...programs, ...(binary === "" ? [] : [binary])].join(","));
}
