import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { POSTGRES } from "../sql/engines/postgres.ts";
import { SQLITE } from "../sql/engines/sqlite.ts";
import { versionOf } from "../sql/schema.ts";
import { withCatalogue } from "./databases_page.ts";

const PAGE = readFileSync(new URL("../../../docs/databases.md", import.meta.url), "utf8");

Deno.test("docs/databases.md shows the catalogue as it is", () => {
  const command = "deno run -RW src/storage/catalogue/databases_page.ts";
  assert.equal(PAGE, withCatalogue(PAGE), `run \`${command}\``);
});

Deno.test("docs/databases.md shows the present versions of schemas, as `backends check` prints them", () => {
  for (const dialect of [SQLITE, POSTGRES.dialect]) {
    const lines = PAGE.matchAll(new RegExp(`: ok \\(${dialect.name} .*schema version (\\d+)`, "g"));
    const shown = [...lines].map(([, version]) => Number(version));
    assert.ok(shown.length > 0);
    assert.deepEqual(new Set(shown), new Set([versionOf(dialect)]), dialect.name);
  }
});

Deno.test("withCatalogue() refuses a page without the marks of its generated part", () => {
  assert.throws(() => withCatalogue("# Databases\n"), TypeError);
});
