import { Argument, Command } from "commander";
import type { CommandIo } from "./command_io.ts";
import { describe } from "./command_docs.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;
/** Commands whose arguments are the names of a command. */
const TAKES_COMMAND: ReadonlySet<string> = new Set(["help", "man"]);

/** Makes the command `causeway completion`, which knows the commands of `programOf()`. */
export function completionCommand(io: CommandIo, programOf: () => Command): Command {
  const command = new Command("completion")
    .description("print a script by which a shell completes these commands")
    .addArgument(new Argument("<shell>", "the shell").choices(SHELLS));
  describe(command, {
    examples: [
      ["source <(causeway completion bash)", "for this shell; or put it into ~/.bashrc"],
      ['causeway completion zsh > "${fpath[1]}/_causeway"', "for zsh, from the next start"],
      ["causeway completion fish > ~/.config/fish/completions/causeway.fish", "for fish"],
    ],
  });
  return command.action((shell: (typeof SHELLS)[number]) => {
    const words = withCommandPaths(wordsOf(programOf()));
    io.out({ bash: bashScript, zsh: zshScript, fish: fishScript }[shell](words));
  });
}

/** A command and what may follow it. */
export interface CompletedCommand {
  /** Names from the program on, without the program's: `["backends", "plan"]`. */
  readonly path: readonly string[];
  readonly about: string;
  readonly commands: readonly NamedCommand[];
  readonly options: readonly CompletedOption[];
  /** Words that its arguments may be; empty where they are free. */
  readonly words: readonly string[];
}

/** A name that may follow, and its description. */
export interface NamedCommand {
  readonly name: string;
  readonly about: string;
}

/** An option of a command. */
export interface CompletedOption {
  readonly flag: string;
  readonly about: string;
  /** `none`: a switch. `file`: a path. `word`: anything. */
  readonly value: "none" | "file" | "word";
  readonly choices: readonly string[];
}

/** Returns every command of `program`, itself first. */
export function wordsOf(program: Command, path: readonly string[] = []): CompletedCommand[] {
  const help = { flag: "--help", about: "show help", value: "none", choices: [] } as const;
  const options = program.options.filter(({ long }) => long !== undefined && long !== null);
  return [
    {
      path,
      about: program.description(),
      commands: program.commands.map((command) => (
        { name: command.name(), about: command.description() }
      )),
      options: [
        ...options.map(({ long, description, required, optional, flags, argChoices = [] }) => ({
          flag: long!,
          about: description,
          value: !required && !optional ? "none" : /<FILE>/.test(flags) ? "file" : "word",
          choices: argChoices,
        } as const)),
        help,
      ],
      words: program.registeredArguments.flatMap(({ argChoices = [] }) => argChoices),
    },
    ...program.commands.flatMap((command) => wordsOf(command, [...path, command.name()])),
  ];
}

/** Adds what may follow those commands whose arguments are the names of a command. */
function withCommandPaths(commands: readonly CompletedCommand[]): readonly CompletedCommand[] {
  const groups = commands.filter(({ commands }) => commands.length > 0);
  return commands.flatMap((command) => {
    if (!TAKES_COMMAND.has(command.path.join(" "))) return [command];
    return groups.map(({ path, commands }) => (
      { ...command, path: [...command.path, ...path], commands }
    ));
  });
}

function bashScript(commands: readonly CompletedCommand[]): string {
  const cases = commands.map(({ path, commands, options, words }) => {
    const key = JSON.stringify(path.join(" "));
    const flags = options.map(({ flag }) => flag).join(" ");
    return `    ${key}) names=${
      quote([...commands.map(({ name }) => name), ...words].join(" "))
    }; flags=${quote(flags)} ;;`;
  });
  const valued = valuedOptions(commands).map(({ offer, choices, places }) => {
    const reply = {
      choices: `COMPREPLY=($(compgen -W ${quote(choices.join(" "))} -- "$current")); `,
      file: 'COMPREPLY=($(compgen -f -- "$current")); ',
      nothing: "",
    }[offer];
    return `    ${patternOf(places)}) ${reply}return ;;`;
  });
  return [
    "# bash completion for causeway; made by `causeway completion bash`",
    "_causeway() {",
    '  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"',
    "  local path='' names='' flags='' word index",
    "  COMPREPLY=()",
    "  for ((index = 1; index < COMP_CWORD; index++)); do",
    '    word="${path:+$path }${COMP_WORDS[index]}"',
    '    case "$word" in',
    `      ${
      patternOf(commands.filter(({ path }) => path.length > 0).map(({ path }) => path.join(" ")))
    }) path="$word" ;;`,
    "    esac",
    "  done",
    '  case "$path:$previous" in',
    ...valued,
    "  esac",
    '  case "$path" in',
    ...cases,
    "  esac",
    '  if [[ "$current" == -* ]]; then COMPREPLY=($(compgen -W "$flags" -- "$current"))',
    '  else COMPREPLY=($(compgen -W "$names" -- "$current")); fi',
    "}",
    "complete -o default -F _causeway causeway",
  ].join("\n");
}

function zshScript(commands: readonly CompletedCommand[]): string {
  const lines = [
    "#compdef causeway",
    "# zsh completion for causeway; made by `causeway completion zsh`",
    "_causeway() {",
    "  local path_='' word index",
    "  local -a names flags",
    "  for ((index = 2; index < CURRENT; index++)); do",
    '    word="${path_:+$path_ }${words[index]}"',
    '    case "$word" in',
    `      ${
      patternOf(commands.filter(({ path }) => path.length > 0).map(({ path }) => path.join(" ")))
    }) path_="$word" ;;`,
    "    esac",
    "  done",
    '  case "$path_:${words[CURRENT-1]}" in',
  ];
  for (const { offer, choices, places } of valuedOptions(commands)) {
    const action = {
      choices: `compadd -- ${choices.map(quote).join(" ")}`,
      file: "_files",
      nothing: "_message value",
    }[offer];
    lines.push(`    ${patternOf(places)}) ${action}; return ;;`);
  }
  lines.push("  esac", '  case "$path_" in');
  for (const { path, commands: inner, options, words } of commands) {
    const described = inner.map(({ name, about }) => described_(name, about));
    lines.push(
      `    ${JSON.stringify(path.join(" "))})`,
      `      names=(${[...described, ...words].map(quote).join(" ")})`,
      `      flags=(${
        options.map(({ flag, about }) => quote(described_(flag, about))).join(" ")
      }) ;;`,
    );
  }
  lines.push(
    "  esac",
    '  if [[ "${words[CURRENT]}" == -* ]]; then _describe option flags',
    "  elif (( ${#names} )); then _describe command names",
    "  else _files; fi",
    "}",
    // Sourced, it registers itself; found in fpath, it is called.
    'if [[ "${funcstack[1]}" == _causeway ]]; then _causeway "$@"; else compdef _causeway causeway; fi',
  );
  return lines.join("\n");
}

/** A word with its description, as `_describe` takes it. */
function described_(word: string, about: string): string {
  return `${word.replaceAll(":", "\\:")}:${about}`;
}

function fishScript(commands: readonly CompletedCommand[]): string {
  const lines = [
    "# fish completion for causeway; made by `causeway completion fish`",
    "function __causeway_path",
    "  set -l path",
    "  for word in (commandline -opc)[2..-1]",
    `    if contains -- (string join ' ' -- $path $word) ${
      commands.filter(({ path }) => path.length > 0).map(({ path }) => quote(path.join(" ")))
        .join(" ")
    }`,
    "      set path $path $word",
    "    end",
    "  end",
    "  set -l joined (string join ' ' -- $path)",
    '  test "$joined" = "$argv[1]"',
    "end",
    "complete -c causeway -f",
  ];
  for (const { path, commands: inner, options, words } of commands) {
    const where = `complete -c causeway -n ${quote(`__causeway_path ${quote(path.join(" "))}`)}`;
    for (const { name, about } of inner) {
      lines.push(`${where} -a ${quote(name)} -d ${quote(about)}`);
    }
    if (words.length > 0) lines.push(`${where} -a ${quote(words.join(" "))}`);
    for (const { flag, about, value, choices } of options) {
      const kind = value === "none"
        ? ""
        : choices.length > 0
        ? ` -x -a ${quote(choices.join(" "))}`
        : value === "file"
        ? " -r -F"
        : " -x";
      lines.push(`${where} -l ${quote(flag.slice(2))}${kind} -d ${quote(about)}`);
    }
  }
  return lines.join("\n");
}

/** Values that a shell offers for options, and these options, each as `PATH:--FLAG`. */
interface ValuedOptions {
  readonly offer: "choices" | "file" | "nothing";
  readonly choices: readonly string[];
  readonly places: readonly string[];
}

/** Groups the options that take a value by what is offered for it: one name differs by command. */
function valuedOptions(commands: readonly CompletedCommand[]): readonly ValuedOptions[] {
  const groups = new Map<string, ValuedOptions & { readonly places: string[] }>();
  for (const { path, options } of commands) {
    for (const { flag, value, choices } of options) {
      if (value === "none") continue;
      const offer = choices.length > 0 ? "choices" : value === "file" ? "file" : "nothing";
      const group = groups.getOrInsertComputed([offer, ...choices].join(" "), () => (
        { offer, choices, places: [] }
      ));
      group.places.push(`${path.join(" ")}:${flag}`);
    }
  }
  return [...groups.values()];
}

/** A pattern of `case` that any of `words` fits. */
function patternOf(words: readonly string[]): string {
  return words.map((word) => JSON.stringify(word)).join("|");
}

/** Quotes a word for a shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
