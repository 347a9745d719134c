import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { parse } from "./testing/config.ts";
import { FILE_SCHEMA } from "./file_schema.ts";
import { withOptions } from "./reference_page.ts";

const PAGE = readFileSync(new URL("../../docs/configuration.md", import.meta.url), "utf8");

Deno.test("docs/configuration.md lists the options of the schema", () => {
  assert.equal(PAGE, withOptions(PAGE), "run `deno run -RW src/config/reference_page.ts`");
});

Deno.test("docs/configuration.md has an example that is accepted and sets the values it shows", () => {
  const example = /## Example[^]*?```toml\n([^]*?)```/.exec(PAGE)?.[1];
  assert.ok(example !== undefined);
  const config = parse(example, { env: (name) => `value of ${name}` });
  assert.equal(config.nodeName, "node1@dc1.example.com");
  assert.equal(config.listen.c2s.length, 3);
  assert.equal(config.listen.component[0]?.domains.length, 2);
  assert.equal(config.links.connectionsPerEndpoint, 2);
  assert.deepEqual(config.modules.get("dc1.example.com")?.mod_disco, {
    usersCanSeeHiddenServices: true,
  });
});

Deno.test("every option of the schema has a meaning", () => {
  for (const [key, option] of Object.entries(FILE_SCHEMA.shape)) {
    assert.ok(option.description !== undefined, key);
  }
  const rows = PAGE.split("\n").filter((line) => line.startsWith("| `"));
  assert.ok(rows.length > 80, String(rows.length));
  for (const row of rows) assert.ok(!/\|\s*\|/.test(row), row);
});
