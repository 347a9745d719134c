/**
 * The Elasticsearch and OpenSearch that tests run. Debian has none, so they come from Maven's
 * repository, and lie below `.tmp` from then on.
 */
import { createHash } from "node:crypto";
import { basename, dirname, join } from "node:path";
import { isFile } from "./databases/programs.ts";
import {
  ELASTICSEARCH_7_HOME,
  ELASTICSEARCH_8_HOME,
  OPENSEARCH_HOME,
} from "./databases/search_kinds.ts";

const REPOSITORY = "https://repo1.maven.org/maven2/";
const JARS = new URL("databases/opensearch_jars.txt", import.meta.url);
const AT_ONCE = 8;

/** Distributions for tests: servers without the modules that ours do not need. */
const ARCHIVES = [
  {
    home: ELASTICSEARCH_7_HOME,
    version: "7.17.29",
    sha256: "841ee00be1a72ba8e707b5a2fb55f23fe7a4184369b4585393238b1c903eedaf",
  },
  {
    home: ELASTICSEARCH_8_HOME,
    version: "8.19.21",
    sha256: "215d5f3dbf0609a149f6218a9e47b6ae2df34ebbff3c5754e35f15a5e5393c8a",
  },
] as const;

/** True when all of them are there, or this is no Linux. */
export function areSearchServersThere(): boolean {
  if (Deno.build.os !== "linux") return true;
  return isFile(join(OPENSEARCH_HOME, "opensearch-2.19.1.jar")) &&
    ARCHIVES.every(({ home }) => isFile(join(home, "bin/elasticsearch")));
}

/** Downloads, checks and unpacks those that are missing. */
export async function installSearchServers(): Promise<void> {
  for (const { home, version, sha256 } of ARCHIVES) {
    if (isFile(join(home, "bin/elasticsearch"))) continue;
    const file = `elasticsearch-${version}.zip`;
    const path = `org/elasticsearch/distribution/integ-test-zip/elasticsearch/${version}/${file}`;
    console.log(`Fetching Elasticsearch for the tests: ${REPOSITORY}${path}`);
    await makeWhole(home, async (folder) => {
      const zip = join(folder, "elasticsearch.zip");
      await Deno.writeFile(zip, await download(path, sha256));
      await run("/usr/bin/python3", ["-m", "zipfile", "-e", zip, folder]);
      await Deno.remove(zip);
      const unpacked = join(folder, `elasticsearch-${version}`);
      // The archive's rights are lost. The server runs as nobody.
      await run("chmod", ["-R", "a+rX", unpacked]);
      await run("chmod", ["a+x", join(unpacked, "bin/elasticsearch")]);
      return unpacked;
    });
  }
  if (!isFile(join(OPENSEARCH_HOME, "opensearch-2.19.1.jar"))) await installOpenSearch();
}

async function installOpenSearch(): Promise<void> {
  const lines = (await Deno.readTextFile(JARS)).split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  console.log(`Fetching OpenSearch for the tests: ${lines.length} files of ${REPOSITORY}`);
  await makeWhole(OPENSEARCH_HOME, async (folder) => {
    const waiting = lines.values();
    const fetchSome = async () => {
      for (const line of waiting) {
        const [sha256, path] = line.split("  ") as [string, string]; // as the list says
        await Deno.writeFile(join(folder, basename(path)), await download(path, sha256));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, fetchSome));
    return folder;
  });
}

/** Makes a folder from what `fill` puts into a temporary one: all of it or nothing. */
async function makeWhole(
  home: string,
  fill: (folder: string) => Promise<string>,
): Promise<void> {
  await Deno.mkdir(dirname(home), { recursive: true });
  const folder = await Deno.makeTempDir({ dir: dirname(home), prefix: "search-" });
  try {
    await Deno.chmod(folder, 0o755);
    await Deno.rename(await fill(folder), home);
  } finally {
    await Deno.remove(folder, { recursive: true }).catch(() => {}); // it has become the home itself
  }
}

async function download(path: string, sha256: string): Promise<Uint8Array> {
  const response = await fetch(REPOSITORY + path).catch((error) => {
    throw new Error(`Cannot fetch ${path} for the tests: ${error.message}`);
  });
  const bytes = new Uint8Array(await response.arrayBuffer());
  if (!response.ok) {
    throw new Error(`Cannot fetch ${path} for the tests: HTTP status ${response.status}`);
  }
  const found = createHash("sha256").update(bytes).digest("hex");
  if (found !== sha256) throw new Error(`Cannot use ${path} as fetched: its SHA-256 is ${found}`);
  return bytes;
}

async function run(program: string, args: readonly string[]): Promise<void> {
  const { success } = await new Deno.Command(program, { args: [...args], stdin: "null" }).spawn()
    .status;
  if (!success) throw new Error(`Cannot unpack what was fetched for the tests: ${program} failed`);
}
