import { Enums, Models, Serialize, Spec } from "@cyclonedx/cyclonedx-library";

/** One npm package that Causeway uses. */
export interface Package {
  /** Key of the package in `deno.lock` and in what `deno info --json` prints. */
  readonly id: string;
  readonly name: string;
  readonly version: string;
  /** SPDX identifier or expression from its `package.json`; undefined when it names none. */
  readonly licence: string | undefined;
  /** Subresource integrity from `deno.lock`, such as `sha512-…`. */
  readonly integrity: string;
  /** True for a package that the product loads; false for one that only tests and tasks load. */
  readonly isShipped: boolean;
  /** Ids of the packages that it depends on itself. */
  readonly dependencies: readonly string[];
}

/** Part of `deno info --json FILE` that this module reads. */
export interface ModuleGraph {
  readonly modules: readonly { readonly kind?: string; readonly npmPackage?: string }[];
  readonly npmPackages: Readonly<
    Record<string, {
      readonly name: string;
      readonly version: string;
      readonly dependencies: readonly string[];
      /** The folder with the unpacked package. */
      readonly localPath: string;
    }>
  >;
}

/** Part of `deno.lock` that this module reads. */
export interface LockFile {
  readonly npm: Readonly<Record<string, { readonly integrity: string }>>;
}

/** The program that the list is about. */
export interface Product {
  readonly name: string;
  readonly version: string;
  readonly license: string;
}

/**
 * Licences that let us ship a package, or test with it, under Apache-2.0. A package under any other
 * one fails the task: somebody has to read that licence first.
 */
export const ACCEPTED_LICENCES: ReadonlySet<string> = new Set([
  ...["0BSD", "Apache-2.0", "BlueOak-1.0.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"],
  ...["(MIT OR CC0-1.0)", "CC0-1.0", "Unlicense"],
]);

/**
 * Licences of tools that we may run in tests, but have not decided to ship: what changes the tool's
 * own files would have to be published.
 */
const ACCEPTED_FOR_TESTS: ReadonlySet<string> = new Set(["MPL-2.0"]);

/**
 * Lists the packages of a module graph by name and version.
 * @param readJson gives the parsed `package.json` at a path
 * @throws {Error} when a package is not in the lock file
 */
export async function listPackages(
  graph: ModuleGraph,
  lock: LockFile,
  readJson: (path: string) => Promise<unknown>,
): Promise<readonly Package[]> {
  const shipped = reachable(graph);
  const packages = await Promise.all(
    Object.entries(graph.npmPackages).map(async ([id, found]): Promise<Package> => {
      const integrity = lock.npm[id]?.integrity;
      if (integrity === undefined) throw new Error(`Cannot list ${id}: deno.lock does not name it`);
      return {
        id,
        name: found.name,
        version: found.version,
        licence: licenceOf(await readJson(`${found.localPath}/package.json`)),
        integrity,
        isShipped: shipped.has(id),
        dependencies: found.dependencies.filter((other) => other in graph.npmPackages),
      };
    }),
  );
  return packages.toSorted((a, b) => a.id < b.id ? -1 : 1);
}

/** Packages whose licence is missing or was not accepted for what they are used for. */
export function unacceptable(packages: readonly Package[]): readonly Package[] {
  return packages.filter(({ licence = "", isShipped }) =>
    !ACCEPTED_LICENCES.has(licence) && (isShipped || !ACCEPTED_FOR_TESTS.has(licence))
  );
}

/**
 * The software bill of materials as CycloneDX 1.6 JSON. It names no time and no serial number: the
 * same lock file gives the same bytes. Packages that are not shipped have the scope `excluded`.
 */
export function cycloneDx(product: Product, packages: readonly Package[]): string {
  const bom = new Models.Bom();
  const root = new Models.Component(Enums.ComponentType.Application, product.name, {
    version: product.version,
    bomRef: `${product.name}@${product.version}`,
  });
  root.licenses.add(new Models.SpdxLicense(product.license));
  bom.metadata.component = root;
  const components = new Map(packages.map((found) => [found.id, toComponent(found)]));
  for (const { id, dependencies } of packages) {
    const component = components.get(id)!; // made of the same list
    for (const other of dependencies) component.dependencies.add(components.get(other)!.bomRef);
    root.dependencies.add(component.bomRef);
    bom.components.add(component);
  }
  const normalizers = new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6);
  const text = new Serialize.JsonSerializer(normalizers).serialize(bom, {
    space: 2,
    sortLists: true,
  });
  return `${text}\n`;
}

/** The licences as a page for people: how many packages of each, then every package. */
export function licenceReport(packages: readonly Package[]): string {
  const rows = (isShipped: boolean) =>
    packages.filter((found) => found.isShipped === isShipped)
      .map(({ name, version, licence }) => `| ${name} | ${version} | ${licence ?? "unknown"} |`);
  const counts = Map.groupBy(packages, ({ licence }) => licence ?? "unknown");
  const table = ["| package | version | licence |", "| --- | --- | --- |"];
  return [
    "# Licences of the packages that Causeway uses",
    "",
    ...[...counts].toSorted(([a], [b]) => a < b ? -1 : 1)
      .map(([licence, found]) => `- ${licence}: ${found.length}`),
    ...["", "## Shipped in the product", "", ...table, ...rows(true)],
    ...["", "## Used by tests and tasks alone", "", ...table, ...rows(false)],
    "",
  ].join("\n");
}

function toComponent(found: Package): Models.Component {
  const purl = `pkg:npm/${found.name.replace("@", "%40")}@${found.version}`;
  const slash = found.name.indexOf("/");
  const component = new Models.Component(
    Enums.ComponentType.Library,
    found.name.slice(slash + 1),
    {
      ...(slash === -1 ? {} : { group: found.name.slice(0, slash) }),
      version: found.version,
      purl,
      // One version may stand there twice, with different peers.
      bomRef: found.id,
      scope: found.isShipped ? Enums.ComponentScope.Required : Enums.ComponentScope.Excluded,
    },
  );
  const [, digest] = /^sha512-(.+)$/.exec(found.integrity) ?? [];
  if (digest !== undefined) {
    component.hashes.set(Enums.HashAlgorithm["SHA-512"], Uint8Array.fromBase64(digest).toHex());
  }
  const { licence } = found;
  if (licence !== undefined) {
    component.licenses.add(
      /\s/.test(licence) ? new Models.LicenseExpression(licence) : new Models.SpdxLicense(licence),
    );
  }
  return component;
}

/** Ids of the packages that the graph's own modules load, and of all that those depend on. */
function reachable(graph: ModuleGraph): ReadonlySet<string> {
  const found = new Set<string>();
  const waiting = graph.modules.flatMap(({ npmPackage }) => npmPackage ?? []);
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    if (found.has(id)) continue;
    found.add(id);
    waiting.push(...graph.npmPackages[id]?.dependencies ?? []);
  }
  return found;
}

function licenceOf(manifest: unknown): string | undefined {
  const { license, licenses } = manifest as {
    license?: string | { type?: string };
    licenses?: readonly { type?: string }[];
  };
  return typeof license === "string" ? license : license?.type ?? licenses?.[0]?.type;
}
