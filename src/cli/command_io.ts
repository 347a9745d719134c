import { readFileSync } from "node:fs";
import { CausewayError, describeError } from "../base/mod.ts";
import { promptPassword } from "./password_prompt.ts";

/** What commands read and write besides the files they are told of. */
export interface CommandIo {
  /** Writes a line of what was asked for. */
  out(line: string): void;
  /** Writes a line of what went wrong. */
  error(line: string): void;
  /** All of standard input. */
  readInput(): Promise<string>;
  /** A password from standard input: typed unseen at a terminal, else its first line. */
  readPassword(prompt: string): Promise<string>;
}

/** The process's own standard streams. */
export const PROCESS_IO: CommandIo = {
  out: (line) => console.log(line),
  error: (line) => console.error(line),
  readInput: () => new Response(Deno.stdin.readable).text(),
  async readPassword(prompt) {
    if (Deno.stdin.isTerminal()) return await promptPassword(prompt);
    return firstLine(await this.readInput());
  },
};

/** The text of a file that the operator named. */
export function readNamedFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (thrown) {
    throw new CausewayError("cli/unreadable", `Cannot read ${path}: ${describeError(thrown)}`, {
      cause: thrown,
    });
  }
}

/** What stands before the first line break. */
export function firstLine(text: string): string {
  return text.split(/\r?\n/, 1)[0]!;
}
