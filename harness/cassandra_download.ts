/** The Cassandra that tests run. Debian has none, so its jar files come from Maven's repository. */
import { join } from "node:path";
import { CASSANDRA_HOME } from "./databases/cassandra.ts";
import { isFile } from "./databases/programs.ts";
import { installJars } from "./maven_download.ts";

const LIST = new URL("databases/cassandra_jars.txt", import.meta.url);

/** True when it is there, or Java has no such processor. */
export function isCassandraThere(): boolean {
  return Deno.build.os !== "linux" || isFile(join(CASSANDRA_HOME, "cassandra-all-5.0.9.jar"));
}

/** Downloads its jar files and checks them. */
export async function installCassandra(): Promise<void> {
  await installJars("Cassandra", { list: LIST, home: CASSANDRA_HOME });
}
