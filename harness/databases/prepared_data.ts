import { createHash } from "node:crypto";
import { join } from "node:path";
import { IS_BUNDLED, PROJECT_DIRECTORY } from "../process/mod.ts";
import { isFile } from "./programs.ts";
import type { CommandLine, ServerProgram } from "./server_kinds.ts";

const PREPARED = join(PROJECT_DIRECTORY, ".tmp/prepared");

/**
 * Returns the directory in which the data of a program are kept for later servers; undefined when each
 * server makes its own, as in the executable of `deno task compile`. Another version of the program,
 * another user and other commands have another directory.
 */
export function preparedDataPath(program: ServerProgram): string | undefined {
  if (IS_BUNDLED || !program.preparesOnce) return undefined;
  const [path] = program.run("", 0);
  if (!isFile(path)) return undefined;
  const { mtime, size } = Deno.statSync(path);
  const made = [path, mtime, size, Deno.uid(), program.prepare("")];
  const digest = createHash("sha256").update(JSON.stringify(made)).digest("hex").slice(0, 16);
  return join(PREPARED, `${program.name.toLowerCase()}-${digest}`);
}

/** Returns the command that copies kept data into the directory of a server. */
export function copying(kept: string, directory: string): CommandLine {
  return ["cp", "-a", kept, join(directory, "data")];
}

/**
 * Returns the command that keeps the data of a server which has not started yet. It copies them to
 * `partial` first, so that `kept` is always whole. Of several servers that are the first at the same
 * time, one has its data kept. Pages of zeros take no room, and no time later.
 */
export function keeping(
  directory: string,
  { kept, partial }: { readonly kept: string; readonly partial: string },
): CommandLine {
  const script = 'mkdir -p "$1" && cp -a --sparse=always "$2" "$3" && { mv -T "$3" "$4" || true; }';
  return ["/bin/sh", "-c", script, "sh", PREPARED, join(directory, "data"), partial, kept];
}
