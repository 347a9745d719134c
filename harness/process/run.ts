import { join } from "node:path";
import { RUNS_DIRECTORY, watchdogCommand } from "./own_program.ts";

/**
 * One use of the harness: a directory for its files, and a watchdog that ends the run's processes and
 * removes the directory when this process dies without doing so (a crash, kill -9).
 */
export class Run implements AsyncDisposable {
  readonly directory: string;
  /** Aborted when the run is to end early: waits and commands of a start give up then. */
  readonly signal: AbortSignal;
  readonly #watchdog: Deno.ChildProcess;
  readonly #orders: WritableStreamDefaultWriter<Uint8Array>;
  #isKept = false;
  #isClosed = false;

  private constructor(directory: string, watchdog: Deno.ChildProcess, signal: AbortSignal) {
    this.directory = directory;
    this.signal = signal;
    this.#watchdog = watchdog;
    this.#orders = watchdog.stdin.getWriter();
  }

  /**
   * Makes a fresh directory and sets the watchdog beside it.
   *
   * @param signal asks the run to end early. Default: never
   */
  static async start(signal: AbortSignal = new AbortController().signal): Promise<Run> {
    await Deno.mkdir(RUNS_DIRECTORY, { recursive: true });
    const directory = await Deno.makeTempDir({ dir: RUNS_DIRECTORY, prefix: "run-" });
    const { program, args } = watchdogCommand(directory);
    const watchdog = new Deno.Command(program, {
      args: [...args],
      stdin: "piped",
      stdout: "null",
      stderr: "inherit",
    }).spawn();
    return new Run(directory, watchdog, signal);
  }

  /** True once something has asked for the directory to stay. */
  get isKept(): boolean {
    return this.#isKept;
  }

  /** Path of a file or directory of this run. */
  path(...parts: string[]): string {
    return join(this.directory, ...parts);
  }

  /**
   * Keeps the directory when the run ends: something in it is worth looking at. Resolves when even
   * the sudden death of this process would leave it.
   */
  async keep(): Promise<void> {
    this.#isKept = true;
    await this.#order("keep");
  }

  /** Makes the watchdog end process `pid` if this one dies. */
  guard(pid: number): void {
    void this.#order(`guard ${pid}`);
  }

  unguard(pid: number): void {
    void this.#order(`unguard ${pid}`);
  }

  /** Makes the watchdog run a command if this process dies, such as removing a container. */
  guardWith(command: readonly string[]): void {
    void this.#order(`command ${JSON.stringify(command)}`);
  }

  unguardWith(command: readonly string[]): void {
    void this.#order(`uncommand ${JSON.stringify(command)}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#orders.close().catch(() => {}); // it is gone already: nothing is left to tell it
    await this.#watchdog.status;
    if (this.#isKept) return;
    await Deno.remove(this.directory, { recursive: true }).catch((thrown) => {
      if (!(thrown instanceof Deno.errors.NotFound)) throw thrown; // the watchdog was first
    });
  }

  /** Pipes keep the order of writes, so that only those who must know wait for theirs. */
  async #order(text: string): Promise<void> {
    if (this.#isClosed) return;
    try {
      await this.#orders.write(new TextEncoder().encode(text + "\n"));
    } catch {
      // A watchdog that is gone has nothing to hear.
    }
  }
}
