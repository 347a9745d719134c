import { filesOf } from "./suites.ts";
import type { SUITES } from "./suites.ts";

const PROJECT = new URL("../../", import.meta.url);

/**
 * Loads all tests of a suite into the module that calls it, in `deno task test` alone. `deno test` loads
 * a module of its own for each file, and all code that the file tests with it: for a file whose tests
 * take milliseconds that is the larger part.
 */
export async function loadTests(suite: keyof typeof SUITES): Promise<void> {
  // Any other run finds the files by itself.
  if (Deno.env.get("CAUSEWAY_SUITES") === undefined) return;
  for (const file of await filesOf(suite)) await import(new URL(file, PROJECT).href);
}
