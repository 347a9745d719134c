/**
 * Prints the programs that a task may run, for its `--allow-run`: this very Deno, and those arguments
 * that are found on the PATH. A task that names them one by one would name what is not there, and
 * would miss the Deno that runs it when that is not the first on the PATH.
 */
import { delimiter, join } from "node:path";

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
  const programs = findPrograms(Deno.args, Deno.env.get("PATH") ?? "");
  console.log([Deno.execPath(), ...programs].join(","));
}
