import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { DATABASE_CHOICES, type DatabaseChoice } from "../databases/mod.ts";
import { IS_BUNDLED } from "../process/mod.ts";
import { REDIS_CHOICES, type RedisChoice } from "../redis/mod.ts";

/** Parsed command line of `deno task cluster`. */
export interface ClusterCommand {
  /** Undefined: as many as the scenario asks for, else three. */
  readonly datacenters: number | undefined;
  /** Undefined: as many as the scenario asks for, else one. */
  readonly nodes: number | undefined;
  readonly redis: RedisChoice;
  /** Undefined: whichever the scenario asks for, else the first that is there. */
  readonly database: DatabaseChoice | undefined;
  /** Undefined: whichever the scenario is for, else builtin. */
  readonly replication: "external" | "builtin" | undefined;
  /** Name of a scenario to run instead of staying up. */
  readonly scenario: string | undefined;
  readonly list: boolean;
  readonly json: boolean;
}

/** Reason to stop: help was requested, or an option is wrong. The message is printed already. */
export interface ParsingEnd {
  readonly exitCode: number;
}

/** Output for people. */
export interface CommandOutput {
  out(text: string): void;
  error(text: string): void;
}

/** Reads the command line of `deno task cluster`. */
export function parseClusterCommand(
  args: readonly string[],
  output: CommandOutput,
): ClusterCommand | ParsingEnd {
  const program = new Command(IS_BUNDLED ? "causeway cluster" : "deno task cluster")
    .description(
      "Starts datacenters on this machine that share one XMPP domain, and says how to log in.\n" +
        "Ctrl-C ends it and leaves nothing behind.",
    )
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => output.out(text),
      writeErr: (text) => output.error(text),
    });
  for (const option of optionsOfCluster()) program.addOption(option);
  try {
    program.parse(args, { from: "user" });
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) throw thrown;
    return { exitCode: thrown.exitCode === 0 ? 0 : 2 };
  }
  const options = program.opts<{
    datacenters?: number;
    nodes?: number;
    redis: RedisChoice;
    database?: DatabaseChoice;
    replication?: "external" | "builtin";
    check?: true;
    scenario?: string;
    list?: true;
    json?: true;
  }>();
  return {
    datacenters: options.datacenters,
    nodes: options.nodes,
    redis: options.redis,
    database: options.database,
    replication: options.replication,
    scenario: options.check ? "self-check" : options.scenario,
    list: options.list ?? false,
    json: options.json ?? false,
  };
}

/** Returns the options of `deno task cluster`. */
export function optionsOfCluster(): readonly Option[] {
  return [
    count("--datacenters <N>", "datacenters, called dc1, dc2 … (default: 3, or the scenario's)"),
    count("--nodes <M>", "Causeway processes in each (default: 1, or the scenario's)"),
    new Option(
      "--redis <KIND>",
      "where each datacenter's Redis comes from; auto: the first that works",
    ).choices(REDIS_CHOICES).default("auto"),
    new Option(
      "--database <KIND>",
      "database that all nodes share; auto: the first that is there of postgresql, mariadb and " +
        "internal, one SQLite file for the nodes of this machine (default: auto, or the " +
        "scenario's)",
    ).choices(DATABASE_CHOICES),
    new Option(
      "--replication <WHO>",
      "who carries the session table between datacenters: the nodes (builtin, the default " +
        "wherever the scenario does not need the other), or a proxy under Redis (external)",
    ).choices(["builtin", "external"]),
    new Option("--check", "check that it works and exit: 0 if it does, 1 if not"),
    new Option("--scenario <NAME>", "run one scenario and exit").conflicts("check"),
    new Option("--list", "list the scenarios"),
    new Option("--json", "write JSON, an object on each line"),
  ];
}

function count(flags: string, description: string): Option {
  return new Option(flags, description).argParser((text) => {
    if (!/^\d+$/.test(text)) throw new InvalidArgumentError("It has to be a whole number.");
    return Number(text);
  });
}
