import assert from "node:assert/strict";
import { controlFile, debianArchitecture, debianVersion } from "./package_plan.ts";

Deno.test("debianVersion() puts what comes before a release before it", () => {
  assert.equal(debianVersion("0.2.0-dev"), "0.2.0~dev");
  assert.equal(debianVersion("1.0.0"), "1.0.0");
});

Deno.test("debianArchitecture() knows the systems that there are executables for", () => {
  assert.equal(debianArchitecture("x86_64"), "amd64");
  assert.equal(debianArchitecture("aarch64"), "arm64");
  assert.throws(() => debianArchitecture("riscv64"), RangeError);
});

Deno.test("controlFile() has the fields that dpkg needs, each on a line", () => {
  const text = controlFile({ version: "0.2.0~dev", architecture: "amd64", installedKib: 12 });
  const fields = [...text.matchAll(/^([A-Z][A-Za-z-]+): \S/gm)].map(([, name]) => name);
  for (const name of ["Package", "Version", "Architecture", "Maintainer", "Description"]) {
    assert.ok(fields.includes(name), name);
  }
  assert.ok(text.endsWith("\n"));
});
