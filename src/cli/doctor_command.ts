import { Command, Option } from "commander";
import { hostname } from "node:os";
import { parseAdminAddress } from "../admin_client/mod.ts";
import type { Config } from "../config/mod.ts";
import { loadConfig, parseConfig } from "../config/mod.ts";
import type { DoctorFinding, Severity } from "../doctor/mod.ts";
import type { AdminCommandOptions } from "./admin_options.ts";
import { addAccessOptions, adminClient, ownAddress } from "./admin_options.ts";
import type { CommandIo } from "./command_io.ts";
import { readNamedFile } from "./command_io.ts";
import { describe } from "./command_docs.ts";
import { DEFAULT_COLUMNS, plainText, wrapText } from "../terminal/mod.ts";

interface Options extends Omit<AdminCommandOptions, "admin" | "config"> {
  readonly config: string;
  readonly admin: readonly string[];
  readonly other: readonly string[];
  readonly ownNode: boolean;
}

/**
 * Makes the command `causeway doctor`, which looks at everything that a datacenter depends on. Calls
 * `done` with the exit code.
 */
export function doctorCommand(io: CommandIo, done: (code: number) => void): Command {
  const command = new Command("doctor")
    .description("look for what is wrong, here and at the other datacenters, and say what to do")
    .addOption(new Option("--config <FILE>", "configuration file").makeOptionMandatory())
    .addOption(
      new Option("--admin <ADDRESS>", "admin API of another node to ask too; may be repeated")
        .default([], "none").argParser(collect),
    )
    .addOption(
      new Option("--other <FILE>", "configuration file of another node to compare; may be repeated")
        .default([], "none").argParser(collect),
    )
    .option("--no-own-node", "do not ask the admin API of the configuration's own node");
  addAccessOptions(command).option("--json", "print JSON");
  describe(command, {
    examples: [
      ["causeway doctor --config /etc/causeway/causeway.toml", "look at everything from here"],
      [
        "causeway doctor --config dc1.toml --admin http://dc2-node1:8088 --token-file ops.token",
        "ask a node of another datacenter too",
      ],
      [
        "causeway doctor --config dc1.toml --other dc2.toml --other dc3.toml",
        "compare configuration files before they go out",
      ],
    ],
    exits: {
      0: "it has found no error; warnings and notes do not count",
      1: "it has found an error",
    },
  });
  return command.action(async (options: Options) => {
    const config = loadConfig(options.config);
    // Import here, so that the other commands start without loading the node.
    const { CHECKS, examine, gatherFacts } = await import("../doctor/mod.ts");
    const facts = await gatherFacts({
      config,
      otherConfigs: options.other.map(readOtherConfig),
      ownClient: options.ownNode
        ? adminClient(ownAddress(config), { ...options, admin: "" }, config)
        : undefined,
      clients: options.admin.map((text) => {
        // The token of the file is for that file's own node.
        return adminClient(parseAdminAddress(text), { ...options, admin: text }, undefined);
      }),
      timeoutMs: options.timeout * 1000,
    });
    const findings = examine(facts);
    if (findings.some(({ severity }) => severity === "error")) done(1);
    if (options.json) {
      io.out(JSON.stringify({ checks: CHECKS.map(({ id }) => id), findings }, null, 2));
      return;
    }
    const columns = io.columns ?? DEFAULT_COLUMNS;
    for (const finding of findings) for (const line of linesOf(finding, columns)) io.out(line);
    io.out(summaryOf(findings, CHECKS.length));
  });
}

/**
 * Reads the configuration of another node. Its secrets lie on another machine, and are not needed.
 * @throws ConfigError
 */
function readOtherConfig(file: string): Config {
  return parseConfig(readNamedFile(file), {
    file,
    env: () => "unknown here",
    readFile: () => "unknown here",
    hostname,
  });
}

const MARGIN = "         ";

/** Returns a finding as text for people. */
export function linesOf(
  { severity, check, about, found, advice }: DoctorFinding,
  columns: number,
): readonly string[] {
  const room = Math.max(40, columns) - MARGIN.length;
  return [
    `${severity.padEnd(MARGIN.length)}${check}: ${plainText(about)}`,
    ...wrapText(found, room).map((line) => MARGIN + line),
    ...wrapText(advice, room - 2).map((line, i) => `${MARGIN}${i === 0 ? "→" : " "} ${line}`),
    "",
  ];
}

function summaryOf(findings: readonly DoctorFinding[], checks: number): string {
  const count = (severity: Severity) =>
    findings.filter((finding) => finding.severity === severity).length;
  const counted = (["error", "warning", "note"] as const)
    .map((severity) => [count(severity), severity] as const)
    .filter(([number]) => number > 0)
    .map(([number, severity]) => `${number} ${severity}${number === 1 ? "" : "s"}`);
  return `${checks} checks: ${counted.join(", ") || "nothing found"}`;
}

function collect(value: string, previous: readonly string[]): readonly string[] {
  return [...previous, value];
}
