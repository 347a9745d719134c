import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { existsSync } from "node:fs";
import { ALONE, filesOf, SUITES } from "./suites.ts";

Deno.test("each suite has its module", async () => {
  const modules = await readdir(new URL(".", import.meta.url));
  for (const name of Object.keys(SUITES)) assert.ok(modules.includes(`${name}_test.ts`), name);
});

Deno.test("each file that is loaded alone exists, and each suite has files", async () => {
  for (const file of ALONE) assert.ok(existsSync(file), file);
  for (const name of Object.keys(SUITES) as (keyof typeof SUITES)[]) {
    assert.ok((await filesOf(name)).length > 10, name);
  }
});
