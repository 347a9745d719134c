import { delimiter, join } from "node:path";

/** True when there is a file of this path. */
export function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false; // missing, or not readable
  }
}

/** True when a program of this name is on the PATH. */
export function isOnPath(program: string): boolean {
  const folders = (Deno.env.get("PATH") ?? "").split(delimiter).filter((folder) => folder !== "");
  return folders.some((folder) => isFile(join(folder, program)));
}
