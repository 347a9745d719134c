import { readFileSync } from "node:fs";
import { CausewayError, describeFileError } from "../base/mod.ts";
import { promptPassword } from "./password_prompt.ts";

/** Input and output of commands besides the files they name. */
export interface CommandIo {
  /** Writes a line of the result. */
  out(line: string): void;
  /** Columns of the terminal that the result goes to; undefined where it goes elsewhere. */
  readonly columns?: number | undefined;
  /** Writes a line about an error. */
  error(line: string): void;
  /** Reads all of standard input. */
  readInput(): Promise<string>;
  /**
   * Reads a password from standard input: typed without echo at a terminal, else the first line.
   */
  readPassword(prompt: string): Promise<string>;
}

/** The process's own standard streams. */
export const PROCESS_IO: CommandIo = {
  out: (line) => console.log(line),
  get columns() {
    return Deno.stdout.isTerminal() ? Deno.consoleSize().columns : undefined;
  },
  error: (line) => console.error(line),
  readInput: () => new Response(Deno.stdin.readable).text(),
  async readPassword(prompt) {
    if (Deno.stdin.isTerminal()) return await promptPassword(prompt);
    return firstLine(await this.readInput());
  },
};

/** Reads the text of a file that the operator named. */
export function readNamedFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (thrown) {
    throw new CausewayError("cli/unreadable", `Cannot read ${path}: ${describeFileError(thrown)}`, {
      cause: thrown,
    });
  }
}

/** Returns the text before the first line break. */
export function firstLine(text: string): string {
  return text.split(/\r?\n/, 1)[0]!;
}
