/** Parsers of T-SQL that tests run: Debian's are too old for the schema, so they come from PyPI. */
import { join } from "node:path";
import { isFile } from "./databases/programs.ts";
import { TSQL_PARSERS_HOME } from "./databases/server_kinds.ts";

const PACKAGES = ["sqlfluff==4.5.0", "sqlglot==30.30.0"];
/** Written once everything is there. */
const STAMP = join(TSQL_PARSERS_HOME, "causeway-versions");

/** True when these versions are installed. */
export function areTsqlParsersThere(): boolean {
  return isFile(STAMP) && Deno.readTextFileSync(STAMP) === PACKAGES.join("\n");
}

/** Installs them below `.tmp`. */
export async function installTsqlParsers(): Promise<void> {
  console.log(`Fetching parsers of T-SQL for the tests: pip install ${PACKAGES.join(" ")}`);
  const { success } = await new Deno.Command("/usr/bin/python3", {
    args: [
      ...["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"],
      ...["--root-user-action=ignore", "--target", TSQL_PARSERS_HOME, ...PACKAGES],
    ],
    stdin: "null",
  }).spawn().status;
  if (!success) throw new Error("Cannot install parsers of T-SQL for the tests: pip failed");
  await Deno.writeTextFile(STAMP, PACKAGES.join("\n"));
}
