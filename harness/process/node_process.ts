import { stringify } from "smol-toml";
import { PATIENCE_MS, until, type UntilOptions } from "../until.ts";
import { Child, type ChildExit } from "./child.ts";
import { type ReadyLine, tryReadyLine } from "./ready_line.ts";
import type { Run } from "./run.ts";
import { PROJECT_DIRECTORY } from "./own_program.ts";
import { causewayCommand, type Command } from "./serve_command.ts";

/** Milliseconds in which a node gets ready, beside the starts of many others too. */
export const READY_WITHIN_MS = 4 * PATIENCE_MS;

/** A configuration as the TOML file will hold it. */
export type NodeConfiguration = object;

/** Options of a node process. */
export interface NodeProcessOptions<Configuration extends NodeConfiguration = NodeConfiguration> {
  /** Short name for files and messages, such as `dc1-node1`. */
  readonly name: string;
  readonly run: Run;
  readonly configuration: Configuration;
  /** Added to the node's environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Milliseconds within which it has to be ready. @default READY_WITHIN_MS */
  readonly readyWithinMs?: number;
  /** The program, given the path of the configuration file. @default the task `serve` */
  readonly command?: (configFile: string) => Command;
  /** Called after each successful start, before `start()` resolves. */
  readonly started?: (ready: ReadyLine) => void;
}

/** `paused` is SIGSTOP: sockets stay open and nobody answers. */
export type NodeState = "stopped" | "running" | "paused";

/** One Causeway process: started, ended and held as often as wanted, always with the same files. */
export class NodeProcess<Configuration extends NodeConfiguration = NodeConfiguration>
  implements AsyncDisposable {
  readonly name: string;
  /** Written to the file at each start: change it and `restart()`. */
  configuration: Configuration;
  readonly env: Record<string, string>;
  /** The program, given the path of the configuration file: change it and `restart()`. */
  command: (configFile: string) => Command;
  readonly configFile: string;
  readonly #options: NodeProcessOptions<Configuration>;
  #child: Child | undefined;
  #ready: ReadyLine | undefined;
  #starting: Promise<ReadyLine> | undefined;

  constructor(options: NodeProcessOptions<Configuration>) {
    this.#options = options;
    this.name = options.name;
    this.configuration = options.configuration;
    this.env = { ...options.env };
    this.command = options.command ?? serveCommand;
    this.configFile = options.run.path(`${options.name}.toml`);
  }

  get state(): NodeState {
    if (!this.#child?.isRunning) return "stopped";
    return this.#child.isPaused ? "paused" : "running";
  }

  /** The ready line of the running node. @throws when it is not running */
  get ready(): ReadyLine {
    if (this.#ready === undefined) throw new Error(`${this.name} is not running`);
    return this.#ready;
  }

  /** @throws when it was never started */
  get pid(): number {
    return this.#startedChild().pid;
  }

  /** Resolves when the process of the last start has ended. */
  get exited(): Promise<ChildExit> {
    return this.#startedChild().exited;
  }

  /** Lines that the process of the last start wrote, oldest first. */
  get logs(): readonly string[] {
    return this.#child?.log.lines.map((line) => line.text) ?? [];
  }

  /** Calls `watcher` with each line that the process of the last start writes from now on. */
  watchLog(watcher: (text: string) => void): () => void {
    return this.#startedChild().log.watch(({ text }) => watcher(text));
  }

  /** The end of `logs` under a heading, for messages. */
  tail(count = 20): string {
    const state = this.#child?.exit === undefined ? this.state : exitText(this.#child.exit);
    return `--- ${this.name} (${state}) ---\n${this.#child?.log.tail(count) ?? "never started"}`;
  }

  /** Writes the configuration file as the next start would. */
  async writeConfiguration(): Promise<void> {
    await Deno.writeTextFile(this.configFile, stringify(this.configuration));
  }

  /**
   * Writes the configuration and starts the process.
   * @returns its ready line
   * @throws when it ends, or says nothing in time; the message has the end of its log
   */
  start(): Promise<ReadyLine> {
    return this.#starting = this.#start();
  }

  /** SIGTERM: it drains and ends; SIGKILL when it does not within `withinMs`. */
  async stop(withinMs?: number): Promise<ChildExit> {
    return await this.#startedChild().stop(withinMs);
  }

  /** SIGKILL. */
  async kill(): Promise<ChildExit> {
    return await this.#startedChild().kill();
  }

  /** `stop()` if it runs, then `start()`. */
  async restart(): Promise<ReadyLine> {
    if (this.state !== "stopped") await this.stop();
    return await this.start();
  }

  /** SIGSTOP. */
  pause(): void {
    this.#startedChild().pause();
  }

  /** SIGCONT. */
  resume(): void {
    this.#startedChild().resume();
  }

  /** Any other signal, such as SIGHUP. */
  signal(signal: Deno.Signal): void {
    this.#startedChild().signal(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child?.stop();
    await this.#starting?.catch(() => {}); // the caller of `start()` gets this error
  }

  async #start(): Promise<ReadyLine> {
    if (this.state !== "stopped") throw new Error(`Cannot start ${this.name}: it is ${this.state}`);
    await this.writeConfiguration();
    const child = new Child({
      name: this.name,
      ...this.command(this.configFile),
      cwd: PROJECT_DIRECTORY,
      env: this.env,
      logFile: this.#options.run.path(`${this.name}.log`),
      run: this.#options.run,
    });
    this.#child = child;
    void child.exited.then(() => {
      if (this.#child === child) this.#ready = undefined;
    });
    try {
      const ready = await readiness(child, {
        withinMs: this.#options.readyWithinMs ?? READY_WITHIN_MS,
        signal: this.#options.run.signal,
      });
      this.#ready = ready;
      this.#options.started?.(ready);
      return ready;
    } catch (thrown) {
      await child.kill();
      throw new Error(`Cannot start ${this.name}\n${this.tail()}`, { cause: thrown });
    }
  }

  #startedChild(): Child {
    if (this.#child === undefined) throw new Error(`${this.name} was never started`);
    return this.#child;
  }
}

/** This build's program, as the task `serve` runs it. */
export function serveCommand(configFile: string): Command {
  return causewayCommand(["serve", "--config", configFile]);
}

/** The ready line of `child`; rejects as soon as it cannot come any more. */
async function readiness(
  child: Child,
  limits: Required<Pick<UntilOptions, "withinMs" | "signal">>,
): Promise<ReadyLine> {
  let ready: ReadyLine | undefined;
  let malformed: unknown;
  const look = (text: string) => {
    try {
      ready ??= tryReadyLine(text);
    } catch (thrown) {
      malformed = thrown;
    }
  };
  const unwatch = child.log.watch((line) => line.stream === "stdout" && look(line.text));
  try {
    await until(() => ready ?? malformed ?? !child.isRunning, {
      what: `${child.name} is ready`,
      ...limits,
    });
  } finally {
    unwatch();
  }
  if (ready !== undefined && child.isRunning) return ready;
  if (malformed !== undefined) throw malformed;
  throw new Error(`${child.name} ended before it was ready: ${exitText(await child.exited)}`);
}

function exitText(exit: ChildExit): string {
  return exit.signal === null ? `exit code ${exit.code}` : `ended by ${exit.signal}`;
}
