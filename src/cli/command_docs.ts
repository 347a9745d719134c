import type { Command } from "commander";

/** Exit codes of the commands. */
export const EXIT = {
  ok: 0,
  failure: 1,
  configuration: 2,
  unreachable: 3,
  refused: 4,
  incomplete: 5,
} as const;

/** Meaning of each exit code, unless a command says more. */
export const EXIT_MEANINGS: Readonly<Record<number, string>> = {
  [EXIT.ok]: "done",
  [EXIT.failure]: "failed, or used with a wrong option or argument",
  [EXIT.configuration]: "the configuration has mistakes, each named in a line",
  [EXIT.unreachable]: "no admin API answers at the address",
  [EXIT.refused]: "the admin API refuses the token or certificate, or its role",
  [EXIT.incomplete]: "done in part; what is missing is named in lines",
};

/** Text about a command besides its description and options. */
export interface CommandDocs {
  /** A command line, and what it does. */
  readonly examples?: readonly (readonly [line: string, does: string])[];
  /** Exit codes whose meaning for this command is more than `EXIT_MEANINGS` says. */
  readonly exits?: Readonly<Record<number, string>>;
  /** Paragraphs for the man page. */
  readonly more?: readonly string[];
}

const DOCS = new WeakMap<Command, CommandDocs>();

/** Keeps `docs` for the help and the man page of `command`. */
export function describe(command: Command, docs: CommandDocs): Command {
  DOCS.set(command, docs);
  command.addHelpText("after", () => helpText(docs));
  return command;
}

/** Returns what `describe` was given. */
export function docsOf(command: Command): CommandDocs {
  return DOCS.get(command) ?? {};
}

function helpText({ examples = [], exits = {} }: CommandDocs): string {
  const lines: string[] = [];
  if (examples.length > 0) {
    lines.push("", "Examples:");
    for (const [line, does] of examples) lines.push(`  # ${does}`, `  ${line}`);
  }
  const codes = Object.entries(exits);
  if (codes.length > 0) {
    lines.push("", "Exit codes:");
    for (const [code, meaning] of codes) lines.push(`  ${code}  ${meaning}`);
  }
  return lines.join("\n");
}
