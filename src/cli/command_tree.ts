import type { Command } from "commander";
import { CausewayError } from "../base/mod.ts";

/** Returns `command` and every command in it, at any depth. */
export function commandsOf(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(commandsOf)];
}

/**
 * Returns the command that `names` lead to, such as `["backends", "copy"]`; without names, `program`.
 *
 * @throws CausewayError `cli/usage` when one of them is no command
 */
export function commandAt(program: Command, names: readonly string[]): Command {
  let found = program;
  for (const name of names) {
    const next = found.commands.find((command) => command.name() === name);
    if (next === undefined) {
      const asked = [...pathOf(program), ...names].join(" ");
      const problem = `${pathOf(found).join(" ")} has no command ${name}`;
      throw new CausewayError("cli/usage", `Cannot find ${asked}: ${problem}`);
    }
    found = next;
  }
  return found;
}

/** Returns the names that lead to a command, the program's first. */
export function pathOf(command: Command): readonly string[] {
  return command.parent === null ? [command.name()] : [...pathOf(command.parent), command.name()];
}
