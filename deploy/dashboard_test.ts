import assert from "node:assert/strict";
import { SOURCE_DIGEST } from "../src/admin/dashboard_files.gen.ts";
import { sourceDigest } from "./dashboard_sources.ts";

Deno.test("the dashboard in the program is as new as its sources", async () => {
  assert.equal(SOURCE_DIGEST, await sourceDigest(), "run `deno task dashboard`");
});
