import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { SUITES } from "./suites.ts";

Deno.test("each suite has its module", async () => {
  const modules = await readdir(new URL(".", import.meta.url));
  for (const name of Object.keys(SUITES)) assert.ok(modules.includes(`${name}_test.ts`), name);
});
