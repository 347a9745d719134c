/** `deno task sbom`: writes `dist/sbom.cdx.json` and `dist/licences.md`; exit code 1 for a licence that nobody has accepted. */
import { readFile } from "node:fs/promises";
import { cycloneDx, licenceReport, listPackages, unacceptable } from "./sbom.ts";
import type { LockFile, ModuleGraph, Product } from "./sbom.ts";

async function readJson(path: string): Promise<unknown> {
  return JSON.parse(await readFile(path, "utf8"));
}

/** What the product consists of: the program, and the dashboard that is bundled into it. */
const ROOTS = ["mod.ts", "src/admin/dashboard/main.tsx"];

async function graphOf(root: string): Promise<ModuleGraph> {
  const info = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", "--frozen", root],
    stderr: "inherit",
  }).output();
  if (!info.success) Deno.exit(1);
  return JSON.parse(new TextDecoder().decode(info.stdout)) as ModuleGraph;
}

const graphs = await Promise.all(ROOTS.map(graphOf));
const graph: ModuleGraph = {
  modules: graphs.flatMap(({ modules }) => modules),
  npmPackages: Object.assign({}, ...graphs.map(({ npmPackages }) => npmPackages)),
};
const lock = await readJson("deno.lock") as LockFile;
const packages = await listPackages(graph, lock, readJson);
await Deno.mkdir("dist", { recursive: true });
const product = await readJson("deno.json") as Product;
await Deno.writeTextFile("dist/sbom.cdx.json", cycloneDx(product, packages));
await Deno.writeTextFile("dist/licences.md", licenceReport(packages));
const shipped = packages.filter(({ isShipped }) => isShipped).length;
console.log(
  `${packages.length} packages, ${shipped} of them shipped: dist/sbom.cdx.json, dist/licences.md`,
);
const refused = unacceptable(packages);
for (const { name, version, licence } of refused) {
  console.error(`${name} ${version}: nobody has accepted its licence (${licence ?? "none named"})`);
}
if (refused.length > 0) Deno.exit(1);
