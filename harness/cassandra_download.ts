/**
 * The Cassandra that tests run. Debian has none, so its jar files come from Maven's repository, and
 * lie below `.tmp` from then on.
 */
import { createHash } from "node:crypto";
import { basename, dirname, join } from "node:path";
import { CASSANDRA_HOME } from "./databases/cassandra.ts";
import { isFile } from "./databases/programs.ts";

const REPOSITORY = "https://repo1.maven.org/maven2/";
const LIST = new URL("databases/cassandra_jars.txt", import.meta.url);
const AT_ONCE = 8;

/** True when it is there, or Java has no such processor. */
export function isCassandraThere(): boolean {
  return Deno.build.os !== "linux" || isFile(join(CASSANDRA_HOME, "cassandra-all-5.0.9.jar"));
}

/** Downloads its jar files and checks them. */
export async function installCassandra(): Promise<void> {
  const lines = (await Deno.readTextFile(LIST)).split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  console.log(`Fetching Cassandra for the tests: ${lines.length} files of ${REPOSITORY}`);
  const cache = dirname(CASSANDRA_HOME);
  await Deno.mkdir(cache, { recursive: true });
  const folder = await Deno.makeTempDir({ dir: cache, prefix: "cassandra-" });
  try {
    await Deno.chmod(folder, 0o755); // the server runs as nobody
    const waiting = lines.values();
    const fetchSome = async () => {
      for (const line of waiting) {
        const [sha256, path] = line.split("  ") as [string, string]; // as the list says
        await Deno.writeFile(join(folder, basename(path)), await download(path, sha256));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, fetchSome));
    await Deno.rename(folder, CASSANDRA_HOME); // all of it or nothing
  } catch (thrown) {
    await Deno.remove(folder, { recursive: true });
    throw thrown;
  }
}

async function download(path: string, sha256: string): Promise<Uint8Array> {
  const response = await fetch(REPOSITORY + path).catch((error) => {
    throw new Error(`Cannot fetch Cassandra for the tests: ${error.message}`);
  });
  const bytes = new Uint8Array(await response.arrayBuffer());
  if (!response.ok) {
    throw new Error(`Cannot fetch ${path} for the tests: HTTP status ${response.status}`);
  }
  const found = createHash("sha256").update(bytes).digest("hex");
  if (found !== sha256) throw new Error(`Cannot use ${path} as fetched: its SHA-256 is ${found}`);
  return bytes;
}
