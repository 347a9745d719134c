import { PATIENCE_MS } from "../until.ts";
import { LineLog } from "./line_log.ts";
import type { Run } from "./run.ts";

/** Milliseconds that a process has for its orderly end once its run is to end early. */
const EARLY_END_MS = 3_000;

/** A process to start. */
export interface ChildOptions {
  /** Name for messages. */
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  /** Added to the environment that it inherits. */
  readonly env?: Readonly<Record<string, string>>;
  /** Appended to. */
  readonly logFile?: string;
  /** Ends the child if the harness dies, and lets it take less time to end if the run ends early. */
  readonly run?: Run;
}

/** Exit code and signal of a process that ended. */
export interface ChildExit {
  readonly code: number;
  readonly signal: string | null;
}

/** A process that this one started, with everything it writes; ended by its own pid, never by name. */
export class Child implements AsyncDisposable {
  readonly name: string;
  readonly pid: number;
  readonly log: LineLog;
  /** Resolves when it has ended and its last line is in the log. */
  readonly exited: Promise<ChildExit>;
  readonly #process: Deno.ChildProcess;
  readonly #run: Run | undefined;
  #exit: ChildExit | undefined;
  #isPaused = false;

  /** Starts it. @throws {Deno.errors.NotFound} when there is no such program */
  constructor(options: ChildOptions) {
    this.name = options.name;
    this.#process = new Deno.Command(options.program, {
      args: [...options.args],
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
      ...(options.cwd !== undefined && { cwd: options.cwd }),
      env: { NO_COLOR: "1", ...options.env },
    }).spawn();
    this.pid = this.#process.pid;
    this.#run = options.run;
    this.log = new LineLog(options.logFile === undefined ? {} : { file: options.logFile });
    options.run?.guard(this.pid);
    this.exited = this.#watch();
  }

  get isRunning(): boolean {
    return this.#exit === undefined;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Set once it has ended. */
  get exit(): ChildExit | undefined {
    return this.#exit;
  }

  /** Sends a signal; does nothing when the process has ended already. */
  signal(signal: Deno.Signal): void {
    if (!this.isRunning) return;
    try {
      this.#process.kill(signal);
    } catch (thrown) {
      // Between its death and our hearing of it there is nothing left to signal.
      if (!(thrown instanceof TypeError) && !(thrown instanceof Deno.errors.NotFound)) throw thrown;
    }
  }

  /** SIGSTOP: it keeps its sockets and answers nothing. */
  pause(): void {
    this.#isPaused = true;
    this.signal("SIGSTOP");
  }

  resume(): void {
    this.#isPaused = false;
    this.signal("SIGCONT");
  }

  /** SIGTERM, and SIGKILL when that has not helped in time, which is short if the run ends early. */
  async stop(withinMs = 2 * PATIENCE_MS): Promise<ChildExit> {
    if (this.#isPaused) this.resume(); // a stopped process does not hear SIGTERM
    this.signal("SIGTERM");
    const kill = () => this.signal("SIGKILL");
    let timer = setTimeout(kill, withinMs);
    const hurry = () => {
      clearTimeout(timer);
      timer = setTimeout(kill, Math.min(EARLY_END_MS, withinMs));
    };
    const signal = this.#run?.signal;
    if (signal?.aborted) hurry();
    else signal?.addEventListener("abort", hurry, { once: true });
    try {
      return await this.exited;
    } finally {
      signal?.removeEventListener("abort", hurry);
      clearTimeout(timer);
    }
  }

  /** SIGKILL; works on a paused process too. */
  async kill(): Promise<ChildExit> {
    this.signal("SIGKILL");
    return await this.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #watch(): Promise<ChildExit> {
    const [status] = await Promise.all([
      this.#process.status,
      this.log.drain(this.#process.stdout, "stdout"),
      this.log.drain(this.#process.stderr, "stderr"),
    ]);
    this.#exit = { code: status.code, signal: status.signal };
    this.log.close();
    this.#run?.unguard(this.pid);
    return this.#exit;
  }
}
