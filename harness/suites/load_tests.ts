import { readdir } from "node:fs/promises";

const PROJECT = new URL("../../", import.meta.url);

/**
 * Loads all tests of folders of the project into the module that calls it, in `deno task test` alone.
 * `deno test` loads a module of its own for each file, and all code that the file tests with it: for a
 * file whose tests take milliseconds that is the larger part.
 */
export async function loadTests(folders: readonly string[]): Promise<void> {
  // Any other run finds the files by itself.
  if (Deno.env.get("CAUSEWAY_SUITES") === undefined) return;
  for (const folder of folders) {
    const files = await readdir(new URL(folder, PROJECT), { recursive: true });
    for (const file of files.filter((each) => each.endsWith("_test.ts")).toSorted()) {
      await import(new URL(`${folder}/${file}`, PROJECT).href);
    }
  }
}
