import type { Run } from "../process/mod.ts";
import { Child, runProgram } from "../process/mod.ts";
import { until } from "../until.ts";

const COLUMNS = 160;
const ROWS = 50;
const SESSION = "program";

/** Program of a terminal. */
export interface TerminalOptions {
  /** Names the terminal's files; no other of the run has it. */
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  /** Added to the environment that it inherits. */
  readonly env: Readonly<Record<string, string>>;
}

/** A terminal in which one interactive program runs: a tmux server of its own, which ends with it. */
export class Terminal implements AsyncDisposable {
  readonly #server: Child;
  readonly #name: string;
  readonly #directory: string;

  private constructor(server: Child, name: string, directory: string) {
    this.#server = server;
    this.#name = name;
    this.#directory = directory;
  }

  static async open(run: Run, options: TerminalOptions): Promise<Terminal> {
    const { name, program, args, env } = options;
    // The name of a socket is short: it is told from within the directory.
    const server = new Child({
      name: `tmux for ${name}`,
      program: "tmux",
      args: ["-D", "-u", "-f", "/dev/null", "-S", socketOf(name)],
      cwd: run.directory,
      env: { LANG: "C.UTF-8", ...env },
      run,
    });
    const terminal = new Terminal(server, name, run.directory);
    try {
      const size = ["-x", String(COLUMNS), "-y", String(ROWS)];
      const session = ["new-session", "-d", "-s", SESSION, ...size, "--", program, ...args];
      await until(async () => await terminal.#tmux(session) !== undefined, {
        what: `tmux to run ${program}`,
        evidence: () => server.log.tail(),
      });
      return terminal;
    } catch (thrown) {
      await terminal[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  /** Types a line and the key that ends it. */
  async type(line: string): Promise<void> {
    // A semicolon at an argument's end would end tmux's command.
    await this.#keys(["-l", "--", line.replace(/;$/, "\\;")]);
    await this.#keys(["Enter"]);
  }

  /** Presses keys, and not the one that ends a line. */
  async press(keys: string): Promise<void> {
    await this.#keys(["-l", "--", keys]);
  }

  /** Returns the text on the screen now. */
  async screen(): Promise<string> {
    return await this.#tmux(["capture-pane", "-p", "-J", "-t", SESSION]) ?? "";
  }

  /** Waits until the screen shows `pattern`. */
  async expect(pattern: string | RegExp, what: string): Promise<void> {
    let screen = "";
    await until(
      async () => {
        screen = await this.screen();
        return typeof pattern === "string" ? screen.includes(pattern) : pattern.test(screen);
      },
      { what, everyMs: 100, evidence: () => screen },
    );
  }

  /** Waits until the program has ended by itself. */
  async expectEnd(): Promise<void> {
    await until(async () => await this.#tmux(["has-session", "-t", SESSION]) === undefined, {
      what: `the program in the terminal ${this.#name} to end`,
      everyMs: 100,
    });
  }

  /** Hangs up: the program in it loses its terminal, and ends. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop();
  }

  async #keys(keys: readonly string[]): Promise<void> {
    if (await this.#tmux(["send-keys", "-t", SESSION, ...keys]) !== undefined) return;
    throw new Error(`Cannot type into the terminal ${this.#name}: its program has ended`);
  }

  /**
   * Runs a tmux command and returns its output; undefined when it fails. Never starts a server of
   * its own.
   */
  async #tmux(command: readonly string[]): Promise<string | undefined> {
    const args = ["-N", "-u", "-S", socketOf(this.#name), ...command];
    const ended = await runProgram("tmux", args, { cwd: this.#directory });
    if (ended === undefined) {
      throw new Error("Cannot run tmux: it is not on the PATH, or not allowed");
    }
    return ended.code === 0 ? ended.output : undefined;
  }
}

function socketOf(name: string): string {
  return `${name}.tmux`;
}
