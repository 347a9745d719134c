import { fileURLToPath } from "node:url";
import { behind } from "./behind.ts";
import { jsonLine, readJsonLines } from "./json_lines.ts";

const SHOWN_STDERR_CHARS = 4_000;

/** Options of one of the bench's own processes. */
export interface BenchChildOptions {
  /** Permissions beside the network and the environment, as arguments. @default none */
  readonly permissions?: readonly string[];
  /** True: it stands for another machine, and runs behind the nodes. @default false */
  readonly isBehind?: boolean;
  /** Path of the `deno.json` that it runs with. @default this project's */
  readonly config?: string;
}

/** One of the bench's own processes: commands go in and events come out, each one line of JSON. */
export class BenchChild<Command, Event extends { readonly event: string }>
  implements AsyncDisposable {
  readonly #name: string;
  readonly #process: Deno.ChildProcess;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;
  readonly #events: AsyncGenerator<Event>;
  readonly #readingErrors: Promise<void>;
  #stderr = "";

  private constructor(name: string, process: Deno.ChildProcess) {
    this.#name = name;
    this.#process = process;
    this.#stdin = process.stdin.getWriter();
    this.#events = readJsonLines<Event>(process.stdout);
    this.#readingErrors = this.#readErrors();
  }

  /** Starts `script`, a file beside this one, with `argument` as JSON. */
  static start<Command, Event extends { readonly event: string }>(
    script: string,
    argument: unknown,
    { permissions = [], isBehind = false, config }: BenchChildOptions = {},
  ): BenchChild<Command, Event> {
    const path = fileURLToPath(new URL(script, import.meta.url));
    const [program, ...before] = isBehind ? behind([Deno.execPath()]) : [Deno.execPath()];
    const process = new Deno.Command(program!, {
      args: [
        ...before,
        "run",
        "--quiet",
        ...(config === undefined ? [] : [`--config=${config}`]),
        "--allow-net=127.0.0.1",
        "--allow-env",
        ...permissions,
        path,
        JSON.stringify(argument),
      ],
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    return new BenchChild(script, process);
  }

  get pid(): number {
    return this.#process.pid;
  }

  async send(command: Command): Promise<void> {
    await this.#stdin.write(jsonLine(command));
  }

  /** The next event, which must be the one named; throws with the child's last words otherwise. */
  async expect<Name extends Event["event"]>(
    name: Name,
  ): Promise<Extract<Event, { readonly event: Name }>> {
    const { value } = await this.#events.next();
    // Compared by the very field that `Extract` chooses by.
    if (value?.event === name) return value as Extract<Event, { readonly event: Name }>;
    await this.#stop();
    const seen = value === undefined ? "it ended" : JSON.stringify(value);
    throw new Error(`Expected "${name}" from ${this.#name}: ${seen}\n${this.#stderr}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
  }

  async #stop(): Promise<void> {
    try {
      this.#process.kill("SIGKILL");
    } catch {
      // It has ended by itself.
    }
    await this.#process.status;
    await this.#readingErrors;
    await this.#events.return(undefined);
    // Its pipe may be broken already.
    await this.#stdin.close().catch(() => {});
  }

  async #readErrors(): Promise<void> {
    for await (const text of this.#process.stderr.pipeThrough(new TextDecoderStream())) {
      this.#stderr = (this.#stderr + text).slice(-SHOWN_STDERR_CHARS);
    }
  }
}
