import type { Config, ConfigNote } from "../config/mod.ts";
import { Command, CommanderError, Option } from "commander";
import { CausewayError, describeError } from "../base/mod.ts";
import { BUILD, ConfigError, configJsonSchema, formatFinding, loadConfig } from "../config/mod.ts";
import { plainText } from "../terminal/mod.ts";
import { drainCommand, reloadCommand } from "./action_commands.ts";
import { archiveCommand } from "./archive_command.ts";
import { backendsCommand } from "./backends_command.ts";
import type { CommandDocs } from "./command_docs.ts";
import { describe, EXIT } from "./command_docs.ts";
import { describeCommands } from "./command_examples.ts";
import type { CommandIo } from "./command_io.ts";
import { PROCESS_IO } from "./command_io.ts";
import { completionCommand } from "./completion_command.ts";
import { doctorCommand } from "./doctor_command.ts";
import { exportCommand } from "./export_command.ts";
import { fromMongooseimCommand } from "./from_mongooseim_command.ts";
import { helpCommand } from "./help_command.ts";
import { importCommand } from "./import_command.ts";
import { bounceCommand, linksCommand, sessionsCommand } from "./list_commands.ts";
import { manCommand } from "./man_command.ts";
import { statusCommand } from "./status_command.ts";
import { topCommand } from "./top_command.ts";
import { traceCommand } from "./trace_command.ts";
import { nameUnknownFirst } from "./unknown_first.ts";
import { usersCommand } from "./users_command.ts";
import { whereCommand } from "./where_command.ts";

/** A command that the program has beside those of this folder. */
export interface AddedCommand {
  readonly name: string;
  readonly description: string;
  /** Its options, for the help, the manual page and the completion. */
  readonly options: readonly Option[];
  readonly docs: CommandDocs;
  /** Runs with the arguments behind its name, and returns the exit code. */
  run(args: readonly string[]): Promise<number>;
}

/**
 * Runs the command that `args` name and returns the exit code. Prints one line on standard error
 * for each mistake, never a stack trace.
 */
export async function main(
  args: readonly string[],
  io: CommandIo = PROCESS_IO,
  added: readonly AddedCommand[] = [],
): Promise<number> {
  const [first, ...rest] = args;
  const chosen = added.find(({ name }) => name === first);
  const asksForHelp = rest.some((word) => word === "--help" || word === "-h");
  // It reads its options itself.
  if (chosen !== undefined && !asksForHelp) return await chosen.run(rest);
  let exitCode: number = EXIT.ok;
  const program = buildProgram(io, (code) => exitCode = code);
  for (const { name, description, options, docs } of added) {
    const command = describe(program.command(name).description(description), docs);
    for (const option of options) command.addOption(option);
  }
  try {
    await program.parseAsync([...args], { from: "user" });
    return exitCode;
  } catch (thrown) {
    return report(thrown, io);
  }
}

function buildProgram(io: CommandIo, done: (code: number) => void): Command {
  const program = new Command("causeway")
    .description("several XMPP datacenters, one XMPP domain")
    .version(BUILD)
    // Commander's own `help` goes one word deep; `helpCommand` goes all the way.
    .helpCommand(false)
    .configureHelp({ showGlobalOptions: false, visibleCommands: ({ commands }) => [...commands] })
    .configureOutput({
      writeOut: (text) => io.out(text.trimEnd()),
      writeErr: (text) => io.error(text.trimEnd()),
      outputError: (text, write) => write(`causeway: ${text.replace(/^error: /, "")}`),
    })
    .exitOverride();
  const config = () => new Option("--config <FILE>", "configuration file").makeOptionMandatory();

  program.command("serve").description("run a node until SIGTERM or SIGINT").addOption(config())
    .action(async (options: { readonly config: string }) => {
      const configuration = loadConfig(options.config);
      // Import here, so that the other commands start without loading the node.
      const { runNode } = await import("../node/mod.ts");
      await checkCertificates(configuration, options.config);
      done(await runNode(configuration));
    });

  program.command("check").description("check a configuration file").addOption(config())
    .action(async (options: { readonly config: string }) => {
      const configuration = loadConfig(options.config);
      const notes = [
        ...configuration.notes,
        ...await checkCertificates(configuration, options.config),
      ];
      for (const { path, text } of notes) io.out(`${options.config}: ${path}: note: ${text}`);
      io.out(`${options.config}: ok`);
    });

  const configCommand = program.command("config").description(
    "print the schema of the configuration, or translate one of MongooseIM",
  );
  configCommand.command("schema").description("print its JSON Schema, for editors")
    .action(() => io.out(JSON.stringify(configJsonSchema(), null, 2)));

  configCommand.addCommand(inheritSettings(fromMongooseimCommand(io, done), configCommand));

  program.command("version").description("print the version").action(() => io.out(BUILD));

  const others = [
    statusCommand(io, done),
    whereCommand(io, done),
    linksCommand(io, done),
    bounceCommand(io),
    sessionsCommand(io),
    topCommand(io),
    traceCommand(io),
    drainCommand(io),
    reloadCommand(io),
    doctorCommand(io, done),
    usersCommand(io, done),
    archiveCommand(io),
    backendsCommand(io, done),
    importCommand(io, done),
    exportCommand(io),
    helpCommand(() => program),
    completionCommand(io, () => program),
    manCommand(io, () => program),
  ];
  for (const command of others) program.addCommand(inheritSettings(command, program));
  describeCommands(program);
  nameUnknownFirst(program);
  return program;
}

/**
 * Returns notes about the certificates that a node can use.
 * @throws ConfigError when a certificate, key or authority cannot be used
 */
async function checkCertificates(
  configuration: Config,
  file: string,
): Promise<readonly ConfigNote[]> {
  const { certificateFindings } = await import("../node/mod.ts");
  const { problems, notes } = await certificateFindings(configuration, Date.now());
  if (problems.length === 0) return notes;
  throw new ConfigError(
    problems.map(({ path, problem }) => ({ file, line: undefined, path, problem })),
  );
}

/** Copies the program's output and exit settings to a command that was made separately. */
function inheritSettings(command: Command, program: Command): Command {
  command.copyInheritedSettings(program);
  for (const inner of command.commands) inner.copyInheritedSettings(program);
  return command;
}

function report(thrown: unknown, io: CommandIo): number {
  if (thrown instanceof CommanderError) return thrown.exitCode; // commander has printed the reason
  if (thrown instanceof ConfigError) {
    for (const finding of thrown.findings) io.error(formatFinding(finding));
    return EXIT.configuration;
  }
  const code = thrown instanceof CausewayError ? EXIT_OF_ERROR[thrown.code] : undefined;
  // A message may hold what another node said.
  for (const line of describeError(thrown).split("\n")) io.error(`causeway: ${plainText(line)}`);
  return code ?? EXIT.failure;
}

/** Exit codes of errors that callers may want to tell apart. */
const EXIT_OF_ERROR: Readonly<Record<string, number>> = {
  "admin-client/unreachable": EXIT.unreachable,
  "admin-client/refused": EXIT.refused,
};
