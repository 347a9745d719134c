import "ajv"; // the validator of CycloneDX loads these three by name
import "ajv-formats";
import "ajv-formats-draft2019";
import { Spec, Validation } from "@cyclonedx/cyclonedx-library";
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { cycloneDx, licenceReport, listPackages, unacceptable } from "./sbom.ts";
import type { ModuleGraph } from "./sbom.ts";

const PRODUCT = { name: "causeway", version: "0.2.0-dev", license: "Apache-2.0" };
const INTEGRITY = `sha512-${new Uint8Array(64).fill(7).toBase64()}`;

const GRAPH: ModuleGraph = {
  modules: [{ kind: "esm" }, { kind: "npm", npmPackage: "@a/top@1.0.0" }],
  npmPackages: {
    "@a/top@1.0.0": npm("@a/top", "1.0.0", ["below@2.1.0"]),
    "below@2.1.0": npm("below", "2.1.0", []),
    "tester@3.0.0": npm("tester", "3.0.0", ["below@2.1.0"]),
  },
};

const LICENCES: Readonly<Record<string, unknown>> = {
  "/npm/@a/top/package.json": { license: "MIT" },
  "/npm/below/package.json": { licenses: [{ type: "(MIT OR CC0-1.0)" }] },
  "/npm/tester/package.json": { license: "GPL-2.0-only" },
};

function npm(name: string, version: string, dependencies: readonly string[]) {
  return { name, version, dependencies, localPath: `/npm/${name}` };
}

function list(graph = GRAPH) {
  const npm = Object.fromEntries(
    Object.keys(GRAPH.npmPackages).map((id) => [id, { integrity: INTEGRITY }]),
  );
  return listPackages(graph, { npm }, (path) => Promise.resolve(LICENCES[path]));
}

Deno.test("listPackages() separates shipped packages from those that only tests load", async () => {
  const packages = await list();
  assert.deepEqual(
    packages.map(({ id, licence, isShipped }) => [id, licence, isShipped]),
    [
      ["@a/top@1.0.0", "MIT", true],
      ["below@2.1.0", "(MIT OR CC0-1.0)", true],
      ["tester@3.0.0", "GPL-2.0-only", false],
    ],
  );
});

Deno.test("listPackages() refuses a package that the lock file does not name", async () => {
  const graph = { ...GRAPH, npmPackages: { "new@1.0.0": npm("new", "1.0.0", []) } };
  await assert.rejects(list(graph), /deno\.lock does not name it/);
});

Deno.test("unacceptable() names packages under a licence that nobody has accepted", async () => {
  assert.deepEqual(unacceptable(await list()).map(({ name }) => name), ["tester"]);
  const weak = {
    licence: "MPL-2.0",
    dependencies: [],
    id: "a",
    name: "a",
    version: "1",
    integrity: "",
  };
  const both = [{ ...weak, isShipped: false }, { ...weak, isShipped: true }];
  assert.deepEqual(unacceptable(both), [both[1]], "good enough for tests alone");
});

Deno.test("cycloneDx() is valid CycloneDX 1.6, and the same bytes each time", async () => {
  const text = cycloneDx(PRODUCT, await list());
  assert.equal(await new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(text), null);
  assert.equal(cycloneDx(PRODUCT, await list()), text);
  const bom = JSON.parse(text);
  const [top] = bom.components;
  assert.equal(top.purl, "pkg:npm/%40a/top@1.0.0");
  assert.deepEqual([top.group, top.name, top.scope], ["@a", "top", "required"]);
  assert.equal(top.hashes[0].content, "07".repeat(64));
  assert.deepEqual(
    bom.dependencies.find(({ ref }: { ref: string }) => ref === "@a/top@1.0.0").dependsOn,
    ["below@2.1.0"],
  );
});

Deno.test("licenceReport() counts each licence and lists shipped packages separately", async () => {
  const report = licenceReport(await list());
  assert.match(report, /- GPL-2\.0-only: 1\n/);
  assert.match(report, /Shipped[^]*below \| 2\.1\.0[^]*tests and tasks alone[^]*tester \| 3\.0\.0/);
});

Deno.test("deno.json freezes the lock file: no build may rewrite it", async () => {
  const text = await readFile(new URL("../deno.json", import.meta.url), "utf8");
  assert.deepEqual(JSON.parse(text).lock, { frozen: true });
});
