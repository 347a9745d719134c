import assert from "node:assert/strict";
import metadata from "../../deno.json" with { type: "json" };
import { VERSION } from "./version.ts";

Deno.test("VERSION is that of deno.json", () => {
  assert.equal(VERSION, metadata.version);
});
