import { createHash } from "node:crypto";

const SOURCE = new URL("../src/admin/dashboard/", import.meta.url);

/** Packages that are bundled with the dashboard. */
const PACKAGES = ["preact", "uplot"];

/** Digest of everything that the dashboard is made of: its files, and the versions of its packages. */
export async function sourceDigest(): Promise<string> {
  const hash = createHash("sha256");
  const { imports } = JSON.parse(
    await Deno.readTextFile(new URL("../deno.json", import.meta.url)),
  ) as { readonly imports: Readonly<Record<string, string>> };
  for (const name of PACKAGES) hash.update(`${imports[name]}\n`);
  const names = Array.from(Deno.readDirSync(SOURCE)).filter((entry) =>
    entry.isFile && !entry.name.endsWith("_test.ts")
  ).map(({ name }) => name).sort();
  for (const name of names) {
    hash.update(`${name}\n`).update(await Deno.readFile(new URL(name, SOURCE)));
  }
  return hash.digest("hex");
}
