import { Command } from "commander";
import { describe } from "./command_docs.ts";
import { commandAt } from "./command_tree.ts";

/** Makes the command `causeway help`, which knows the commands of `programOf()`. */
export function helpCommand(programOf: () => Command): Command {
  const command = new Command("help")
    .description("show the help of a command")
    .argument("[command...]", "the command; without it, all commands are listed");
  describe(command, {
    examples: [["causeway help backends copy", "as causeway backends copy --help"]],
  });
  return command.action((names: readonly string[]) => commandAt(programOf(), names).outputHelp());
}
