import assert from "node:assert/strict";
import { LAST_RELEASE } from "./releases.ts";

Deno.test("CHANGELOG.md names the commit of the last release", async () => {
  const { version, commit } = LAST_RELEASE;
  const page = await Deno.readTextFile(new URL("../../CHANGELOG.md", import.meta.url));
  const [, section = ""] = page.split(`\n## ${version} `);
  assert.ok(section.split("\n## ")[0]!.includes(`commit \`${commit}\``));
});
