import assert from "node:assert/strict";
import { SCENARIOS } from "./scenarios/mod.ts";

const PAGE = await Deno.readTextFile(new URL("../docs/security.md", import.meta.url));

Deno.test("docs/security.md names existing tests and scenarios", () => {
  const table = PAGE.slice(PAGE.indexOf("## Attacks"));
  const files = [...table.matchAll(/`(src\/[^`]+)`/g)].map(([, path]) => path!); // the group matched
  assert.ok(files.length > 20);
  for (const path of files) {
    assert.ok(Deno.statSync(new URL(`../${path}`, import.meta.url)).isFile, path);
  }
  const names = new Set(SCENARIOS.map(({ name }) => name));
  const bold = [...table.matchAll(/\*\*([a-z-]+)\*\*/g)].map(([, name]) => name!);
  assert.ok(bold.length > 8);
  for (const name of bold) assert.ok(names.has(name), name);
});
