import { Command } from "commander";
import { join } from "node:path";
import { VERSION } from "../config/mod.ts";
import { CausewayError, describeFileError } from "../base/mod.ts";
import { describe, docsOf, EXIT_MEANINGS } from "./command_docs.ts";
import type { CommandIo } from "./command_io.ts";
import { commandAt, commandsOf, pathOf } from "./command_tree.ts";

/** Makes the command `causeway man`, which knows the commands of `programOf()`. */
export function manCommand(io: CommandIo, programOf: () => Command): Command {
  const command = new Command("man")
    .description("print the manual page of a command")
    .argument("[command...]", "the command; without it, the page of causeway itself")
    .option(
      "--directory <DIR>",
      "write all pages into this directory instead, where the program may write",
    );
  describe(command, {
    examples: [
      ["causeway man doctor | man -l -", "read the page of causeway doctor"],
      ["causeway man doctor > causeway-doctor.1", "write that page into a file"],
    ],
  });
  return command.action(async (names: readonly string[], options: { directory?: string }) => {
    const program = programOf();
    const { directory } = options;
    if (directory === undefined) {
      io.out(manPage(program, commandAt(program, names)));
      return;
    }
    for (const each of commandsOf(program)) {
      const file = join(directory, `${pageName(each)}.1`);
      try {
        await Deno.writeTextFile(file, manPage(program, each) + "\n");
      } catch (thrown) {
        const problem = `Cannot write ${file}: ${describeFileError(thrown)}`;
        throw new CausewayError("cli/unwritable", problem, { cause: thrown });
      }
    }
  });
}

function pageName(command: Command): string {
  return pathOf(command).join("-");
}

/** Returns the manual page of a command, in roff with the macros of man(7). */
export function manPage(program: Command, command: Command): string {
  const { examples = [], exits = {}, more = [] } = docsOf(command);
  const path = pathOf(command).join(" ");
  const lines = [
    `.TH ${pageName(command).toUpperCase()} 1 "" "causeway ${VERSION}" "Causeway"`,
    ".SH NAME",
    `${roff(pageName(command))} \\- ${roff(command.description())}`,
    ".SH SYNOPSIS",
    `.B ${roff(path)}`,
    roff(command.usage()),
  ];
  if (command.registeredArguments.length > 0) {
    lines.push(".SH ARGUMENTS");
    for (const argument of command.registeredArguments) {
      const { argChoices: choices } = argument;
      const text = choices === undefined ? "" : ` (${choices.join(", ")})`;
      lines.push(".TP", `.I ${roff(argument.name())}`, roff(argument.description + text));
    }
  }
  lines.push(".SH OPTIONS");
  for (const { flags, description, defaultValue, argChoices, envVar } of command.options) {
    const notes = [
      argChoices === undefined ? "" : `one of ${argChoices.join(", ")}`,
      typeof defaultValue === "number" || typeof defaultValue === "string"
        ? `default ${defaultValue}`
        : "",
      envVar === undefined ? "" : `environment variable ${envVar}`,
    ].filter((note) => note !== "");
    const text = notes.length === 0 ? description : `${description} (${notes.join("; ")})`;
    lines.push(".TP", `.B ${roff(flags)}`, roff(text));
  }
  lines.push(".TP", ".B \\-h, \\-\\-help", "show help");
  if (command.commands.length > 0) {
    lines.push(".SH COMMANDS");
    for (const inner of command.commands) {
      lines.push(".TP", `.B ${roff(pageName(inner))}\\fR(1)`, roff(inner.description()));
    }
  }
  if (more.length > 0) {
    lines.push(".SH NOTES", ...more.flatMap((text) => [".PP", roff(text)]));
  }
  if (examples.length > 0) {
    lines.push(".SH EXAMPLES");
    for (const [line, does] of examples) {
      lines.push(".PP", `${roff(does)}:`, ".PP", ".nf", ".RS", roff(line), ".RE", ".fi");
    }
  }
  lines.push(".SH EXIT STATUS");
  for (const [code, meaning] of Object.entries({ ...EXIT_MEANINGS, ...exits })) {
    lines.push(".TP", `.B ${code}`, roff(meaning));
  }
  if (command !== program) {
    lines.push(".SH SEE ALSO", `.BR ${roff(pageName(command.parent ?? program))} (1)`);
  }
  return lines.join("\n");
}

/** Escapes text for roff: no line begins a request, and hyphens can be copied. */
function roff(text: string): string {
  return text.replaceAll("\\", "\\e").replaceAll("-", "\\-").replace(/^([.'])/gm, "\\&$1")
    .replaceAll("→", "\\(->").replaceAll("…", "...");
}
