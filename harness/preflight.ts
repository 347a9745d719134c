/**
 * Finds out which programs the tests need and this machine lacks, before any test runs. As root on
 * Debian or Ubuntu it installs them; elsewhere it says what to type, and ends with exit code 1.
 */
import { join } from "node:path";
import { isFile, isOnPath } from "./databases/programs.ts";
import { isSlapdThere } from "./databases/slapd.ts";
import { POSTGRESQL } from "./databases/server_kinds.ts";
import { findJavaHome } from "./databases/search_kinds.ts";
import { installCassandra, isCassandraThere } from "./cassandra_download.ts";
import { installMysql, isMysqlThere } from "./mysql_download.ts";
import { fetchRelease, hasRelease, LAST_RELEASE } from "./process/releases.ts";
import { areSearchServersThere, installSearchServers } from "./search_downloads.ts";
import { arePythonCheckersThere, installPythonCheckers } from "./python_checkers.ts";

/** Something that tests run, and the Debian package that brings it. */
export interface Need {
  /** As a message names it. */
  readonly what: string;
  readonly debianPackage: string;
  isThere(): Promise<boolean> | boolean;
}

/** Plan for the missing programs. */
export type Plan =
  | { readonly kind: "nothing" }
  | { readonly kind: "install"; readonly packages: readonly string[] }
  | { readonly kind: "stop"; readonly message: string };

/** Means of this machine to install packages. */
export interface Machine {
  readonly isRoot: boolean;
  readonly hasApt: boolean;
}

/** Python modules are for Debian's own Python: another one on the PATH does not see its packages. */
const PYTHON = "/usr/bin/python3";

/** Everything that `deno task test` runs besides Deno. */
export const TEST_NEEDS: readonly Need[] = [
  program("redis-server", "redis-server"),
  program("openssl", "openssl"),
  program("chromium", "chromium"),
  pythonModule("slixmpp", "python3-slixmpp"),
  program("go-sendxmpp", "go-sendxmpp"),
  program("sendxmpp", "sendxmpp"),
  program("profanity", "profanity-light"),
  program("mcabber", "mcabber"),
  program("tmux", "tmux"),
  program("ps", "procps"),
  // Shells whose completion is tested besides Bash, and what checks the manual pages.
  program("zsh", "zsh"),
  program("fish", "fish"),
  program("groff", "groff-base"),
  // Scripts for sh(1) in `deploy/machines/`.
  program("shellcheck", "shellcheck"),
  // It checks the unit. `.ci/under-systemd` and `.ci/two-machines` have systemd run it.
  program("systemd-analyze", "systemd"),
  program("ip", "iproute2"),
  // A graphical client, with a screen in memory and its keyboard.
  program("dino-im", "dino-im"),
  program("Xvfb", "xvfb"),
  program("xdotool", "xdotool"),
  pythonModule("lxml", "python3-lxml"),
  // promtool checks rules; the server reads real nodes.
  program("prometheus", "prometheus"),
  // It installs those of `python_checkers.ts`.
  pythonModule("pip", "python3-pip"),
  { what: "initdb of PostgreSQL", debianPackage: "postgresql", isThere: POSTGRESQL.isThere },
  program("mariadbd", "mariadb-server"),
  // Backups of the built-in store.
  program("sqlite3", "sqlite3"),
  { what: "slapd of OpenLDAP", debianPackage: "slapd", isThere: isSlapdThere },
  {
    what: "Java 17, for Elasticsearch, OpenSearch and Cassandra",
    debianPackage: "openjdk-17-jre-headless",
    isThere: () => findJavaHome() !== undefined,
  },
  // Other servers, from which accounts are moved and to which they can go.
  program("ejabberdctl", "ejabberd"),
  program("prosody-migrator", "prosody"),
  // The MySQL of `mysql_download.ts` needs these.
  library("libaio.so.1", "libaio1"),
  library("libnuma.so.1", "libnuma1"),
];

/** Decides what to do about `missing`. */
export function planFor(missing: readonly Need[], { isRoot, hasApt }: Machine): Plan {
  if (missing.length === 0) return { kind: "nothing" };
  const packages = missing.map(({ debianPackage }) => debianPackage);
  if (isRoot && hasApt) return { kind: "install", packages };
  const names = missing.map(({ what }) => what).join(", ");
  const message = hasApt
    ? `The tests need ${names}. Type: sudo apt-get install ${packages.join(" ")}`
    : `The tests need ${names}, which Debian has in the packages ${packages.join(", ")}. ` +
      "Install them by this system's own means, so that the tests find them on the PATH " +
      `(Python modules: for ${PYTHON})`;
  return { kind: "stop", message };
}

/** The needs among `needs` that are not met, in their order. */
export async function missingOf(needs: readonly Need[]): Promise<readonly Need[]> {
  const found = await Promise.all(needs.map((need) => need.isThere()));
  return needs.filter((_, i) => !found[i]);
}

function program(name: string, debianPackage: string): Need {
  return { what: name, debianPackage, isThere: () => isOnPath(name) };
}

function library(name: string, debianPackage: string): Need {
  const folders = ["/lib", "/usr/lib", "/lib64", "/usr/lib64"].flatMap((folder) => [
    folder,
    `${folder}/${Deno.build.arch}-linux-gnu`,
  ]);
  return {
    what: name,
    debianPackage,
    isThere: () => folders.some((folder) => isFile(join(folder, name))),
  };
}

function pythonModule(name: string, debianPackage: string): Need {
  return {
    what: `${name} for ${PYTHON}`,
    debianPackage,
    isThere: async () => isFile(PYTHON) && await succeeds(PYTHON, ["-c", `import ${name}`], "null"),
  };
}

async function succeeds(
  name: string,
  args: readonly string[],
  output: "inherit" | "null",
): Promise<boolean> {
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  const child = new Deno.Command(name, {
    args: [...args],
    env,
    stdin: "null",
    stdout: output,
    stderr: output,
  });
  return (await child.spawn().status).success;
}

/** Keeps packages from starting their services: the tests start their own, on ports of their own. */
async function withoutServices<T>(install: () => Promise<T>): Promise<T> {
  const policy = "/usr/sbin/policy-rc.d";
  if (isFile(policy)) return await install();
  await Deno.writeTextFile(policy, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  try {
    return await install();
  } finally {
    await Deno.remove(policy);
  }
}

async function main(): Promise<number> {
  const exitCode = await installPackages();
  if (exitCode !== 0) return exitCode;
  try {
    if (!isMysqlThere()) await installMysql();
    if (!areSearchServersThere()) await installSearchServers();
    if (!isCassandraThere()) await installCassandra();
    if (!arePythonCheckersThere()) await installPythonCheckers();
    if (!await hasRelease(LAST_RELEASE)) await fetchLastRelease();
    return 0;
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    return 1;
  }
}

/** Two tests alone need the last release: they fail without it, and the others run. */
async function fetchLastRelease(): Promise<void> {
  const { version, commit } = LAST_RELEASE;
  console.log(`Fetching release ${version}, which this shallow clone lacks: ${commit}`);
  try {
    await fetchRelease(LAST_RELEASE);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    console.error(
      `The trial rolling-upgrade and a test of the doctor will fail without release ${version}. ` +
        `${why}\n` +
        "In a shallow clone type: git fetch --unshallow",
    );
  }
}

async function installPackages(): Promise<number> {
  const missing = await missingOf(TEST_NEEDS);
  const machine = { isRoot: Deno.uid() === 0, hasApt: isFile("/usr/bin/apt-get") };
  const plan = planFor(missing, machine);
  if (plan.kind === "nothing") return 0;
  if (plan.kind === "stop") {
    console.error(plan.message);
    return 1;
  }
  const { packages } = plan;
  console.log(`Installing what the tests need: apt-get install ${packages.join(" ")}`);
  const apt = (...args: readonly string[]) => succeeds("/usr/bin/apt-get", args, "inherit");
  const isDone = await withoutServices(async () =>
    await apt("update", "-q") &&
    await apt("install", "-q", "-y", "--no-install-recommends", ...packages)
  );
  const left = isDone ? await missingOf(missing) : missing;
  if (left.length === 0) return 0;
  console.error(`Cannot install what the tests need: ${left.map(({ what }) => what).join(", ")}`);
  return 1;
}

if (import.meta.main) Deno.exit(await main());
