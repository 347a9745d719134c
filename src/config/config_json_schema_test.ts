import assert from "node:assert/strict";
import { configJsonSchema } from "./config_json_schema.ts";

/** The value at a path of plain keys. */
function at(root: unknown, ...path: readonly string[]): unknown {
  let value = root;
  for (const key of path) value = (value as Record<string, unknown> | undefined)?.[key];
  return value;
}

Deno.test("configJsonSchema() describes the file as it is written", () => {
  const schema = configJsonSchema();
  assert.equal(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  assert.deepEqual(schema["required"], ["hosts", "modules"]);
  assert.equal(schema["additionalProperties"], false);
  const module = at(schema, "properties", "modules", "properties", "mod_global_distrib");
  assert.deepEqual(at(module, "required"), ["global_host", "local_host", "connections"]);
  const refreshAfter = at(module, "properties", "redis", "properties", "refresh_after");
  assert.deepEqual(refreshAfter, {
    default: 60,
    description: "how often a node refreshes its own keys; below `expire_after`",
    type: "integer",
    minimum: 1,
    maximum: 31_536_000,
  });
});

Deno.test("configJsonSchema() is JSON", () => {
  const schema = configJsonSchema();
  assert.deepEqual(JSON.parse(JSON.stringify(schema)), schema);
});
