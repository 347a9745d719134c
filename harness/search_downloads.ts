/** The Elasticsearch and OpenSearch that tests run. Debian has none: they come from Maven's repository. */
import { join } from "node:path";
import { isFile } from "./databases/programs.ts";
import {
  ELASTICSEARCH_7_HOME,
  ELASTICSEARCH_8_HOME,
  OPENSEARCH_HOME,
} from "./databases/search_kinds.ts";
import { downloadFile, installJars, makeWhole } from "./maven_download.ts";

const JARS = new URL("databases/opensearch_jars.txt", import.meta.url);

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
    console.log(`Fetching Elasticsearch for the tests: ${path}`);
    await makeWhole(home, async (folder) => {
      const zip = join(folder, "elasticsearch.zip");
      await Deno.writeFile(zip, await downloadFile(path, sha256));
      await run("/usr/bin/python3", ["-m", "zipfile", "-e", zip, folder]);
      await Deno.remove(zip);
      const unpacked = join(folder, `elasticsearch-${version}`);
      // The archive's rights are lost. The server runs as nobody.
      await run("chmod", ["-R", "a+rX", unpacked]);
      await run("chmod", ["a+x", join(unpacked, "bin/elasticsearch")]);
      return unpacked;
    });
  }
  if (isFile(join(OPENSEARCH_HOME, "opensearch-2.19.1.jar"))) return;
  await installJars("OpenSearch", { list: JARS, home: OPENSEARCH_HOME });
}

async function run(program: string, args: readonly string[]): Promise<void> {
  const { success } = await new Deno.Command(program, { args: [...args], stdin: "null" }).spawn()
    .status;
  if (!success) throw new Error(`Cannot unpack what was fetched for the tests: ${program} failed`);
}
