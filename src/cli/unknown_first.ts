import type { Command } from "commander";

/** A method of commander's that its types leave out: prints the nearest option, and throws. */
interface RefusesOptions {
  unknownOption(flag: string): void;
}

/**
 * Makes the commands below `program` name an unknown option before a required one that is missing.
 * The first is often the second, misspelt: `--confg node.toml`.
 */
export function nameUnknownFirst(program: Command): void {
  for (const command of program.commands) {
    if (command.commands.length > 0) nameUnknownFirst(command);
    else refuseUnknown(command);
  }
}

function refuseUnknown(command: Command): void {
  const parse = command.parseOptions.bind(command);
  command.parseOptions = (words) => {
    const parsed = parse(words);
    const { unknown } = parsed;
    // `--help` is not among the options of a command.
    const asksForHelp = unknown.includes("--help") || unknown.includes("-h");
    const flag = asksForHelp ? undefined : unknown.find((word) => word.startsWith("-"));
    if (flag !== undefined) (command as unknown as RefusesOptions).unknownOption(flag);
    return parsed;
  };
}
