/** Debian's names of the systems that a package is made for. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x86_64: "amd64", aarch64: "arm64" };

/**
 * Returns Debian's name of an architecture.
 * @throws {RangeError} for one that there is no executable of
 */
export function debianArchitecture(arch: string): string {
  const name = ARCHITECTURES[arch];
  if (name === undefined) throw new RangeError(`there is no package for ${arch}`);
  return name;
}

/** Returns `version` so that Debian sorts what comes before a release before it: `0.2.0~dev`. */
export function debianVersion(version: string): string {
  return version.replace("-", "~");
}

/** Facts about a package. */
export interface PackageFacts {
  readonly version: string;
  /** Debian's name. */
  readonly architecture: string;
  /** KiB of its files. */
  readonly installedKib: number;
}

/** Returns the file `control`. */
export function controlFile({ version, architecture, installedKib }: PackageFacts): string {
  return [
    "Package: causeway",
    `Version: ${version}`,
    `Architecture: ${architecture}`,
    "Maintainer: Causeway maintainers <causeway@localhost>",
    `Installed-Size: ${installedKib}`,
    "Depends: libc6 (>= 2.31), passwd",
    "Suggests: redis-server (>= 6), postgresql, prometheus, grafana",
    "Section: net",
    "Priority: optional",
    "Description: several XMPP datacenters, one XMPP domain",
    " A node stands at the edge of each datacenter. Clients log in at the nearest one, and",
    " stanzas cross between datacenters over TLS, acknowledged and in order.",
    "",
  ].join("\n");
}
