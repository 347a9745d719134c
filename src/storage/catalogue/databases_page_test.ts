import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { withCatalogue } from "./databases_page.ts";

const PAGE = readFileSync(new URL("../../../docs/databases.md", import.meta.url), "utf8");

Deno.test("docs/databases.md shows the catalogue as it is", () => {
  const command = "deno run -RW src/storage/catalogue/databases_page.ts";
  assert.equal(PAGE, withCatalogue(PAGE), `run \`${command}\``);
});

Deno.test("withCatalogue() refuses a page without the marks of its generated part", () => {
  assert.throws(() => withCatalogue("# Databases\n"), TypeError);
});
