import type { Command } from "commander";
import type { CommandDocs } from "./command_docs.ts";
import { describe } from "./command_docs.ts";

const FILE = "/etc/causeway/causeway.toml";

/** Examples of the commands that need nothing else said about them, by path. */
const EXAMPLES: Readonly<Record<string, CommandDocs["examples"]>> = {
  "": [
    [`causeway check --config ${FILE}`, "check the configuration"],
    [`causeway serve --config ${FILE}`, "run a node"],
    [`causeway doctor --config ${FILE}`, "look for what is wrong"],
  ],
  "serve": [[`causeway serve --config ${FILE}`, "run a node until it is told to stop"]],
  "check": [[`causeway check --config ${FILE}`, "each mistake in a line, or ok"]],
  "config": [["causeway config schema > causeway.schema.json", "for an editor"]],
  "config schema": [["causeway config schema > causeway.schema.json", "for an editor"]],
  "version": [["causeway version", "such as 0.1.0"]],
  "users": [[`causeway users list --config ${FILE}`, "all accounts"]],
  "users add": [[`causeway users add alice@example.com --config ${FILE}`, "asks for a password"]],
  "users remove": [
    [`causeway users remove alice@example.com --config ${FILE}`, "with all data of the account"],
  ],
  "users passwd": [
    [`causeway users passwd alice@example.com --config ${FILE}`, "asks for the new password"],
  ],
  "users list": [[`causeway users list --config ${FILE}`, "an address in each line"]],
  "users import": [
    [`causeway users import --config ${FILE} people.csv`, "lines of address and password"],
  ],
  "archive": [
    [
      `causeway archive remove example.com --before 2026-01-31 --config ${FILE}`,
      "what people of the host have written and got until then",
    ],
  ],
  "archive remove": [
    [
      `causeway archive remove example.com --before 2026-01-31 --config ${FILE}`,
      "what people of the host have written and got until then",
    ],
    [`causeway archive remove alice@example.com --all --config ${FILE}`, "alice's whole archive"],
  ],
  "backends": [[`causeway backends check --config ${FILE}`, "whether all databases can be used"]],
  "backends list": [[`causeway backends list --config ${FILE}`, "which backend holds what"]],
  "backends plan": [[`causeway backends plan --config ${FILE}`, "each statement, run none"]],
  "backends prepare": [[`causeway backends prepare --config ${FILE}`, "safe to repeat"]],
  "backends check": [
    [`causeway backends check --config ${FILE}`, "reach each database, and look at its schema"],
  ],
  "backends odbc-entry": [
    [
      "causeway backends odbc-entry causeway --server db.example.com --database causeway",
      "print the entry of a data source",
    ],
  ],
  "backends schema": [["causeway backends schema pgsql", "the schema of PostgreSQL"]],
  "backends copy": [
    [
      `causeway backends copy --from internal --to rdbms.default --config ${FILE}`,
      "everything, from the built-in store into a database, while nodes run",
    ],
    [
      `causeway backends copy --from internal --to rdbms.default --final --config ${FILE}`,
      "once more for what has changed, when the nodes are stopped",
    ],
  ],
  "import": [
    [`causeway import /var/lib/causeway/moving --config ${FILE}`, "accounts of another server"],
  ],
  "export": [[`causeway export --output all.xml --config ${FILE}`, "all accounts in one file"]],
};

/** Gives every command that has none its examples. */
export function describeCommands(command: Command, path = ""): void {
  const examples = EXAMPLES[path];
  if (examples !== undefined) describe(command, { examples });
  for (const inner of command.commands) {
    describeCommands(inner, path === "" ? inner.name() : `${path} ${inner.name()}`);
  }
}
