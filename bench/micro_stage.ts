import { stripVTControlCharacters } from "node:util";
import type { Stage } from "../harness/screen/progress_bar.ts";

/** Milliseconds that the benches of one file usually take. */
const USUAL_FILE_MS = 20_000;

/**
 * Returns the stage that begins with `line`, when that is the line by which `deno bench` names the
 * next of `files`; undefined for every other line.
 */
export function microStage(line: string, files: readonly string[]): Stage | undefined {
  const named = /^file:\/\/.*\/([^/]+)$/.exec(stripVTControlCharacters(line).trimEnd())?.[1];
  const index = files.findIndex((file) => file === named);
  if (index === -1) return undefined;
  return {
    text: `${named} (${index + 1} of ${files.length})`,
    from: index / files.length,
    to: (index + 1) / files.length,
    forMs: USUAL_FILE_MS,
  };
}
