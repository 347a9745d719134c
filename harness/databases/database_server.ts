import { join } from "node:path";
import type { Run } from "../process/mod.ts";
import { until } from "../until.ts";
import { copying, keeping, preparedDataPath } from "./prepared_data.ts";
import type { CommandLine, ServerCertificate, ServerKind, ServerProgram } from "./server_kinds.ts";

/** `nobody`: PostgreSQL refuses to run as root. */
const UNPRIVILEGED = 65_534;
/** Ports for outgoing connections begin at 32768 on Linux. */
const [FIRST_PORT, LAST_PORT] = [10_240, 32_700];
const MAX_TRIES = 3;
/** Milliseconds within which a server answers: making its files may take long on a busy disk. */
const START_WITHIN_MS = 120_000;

/** Options of a server. */
export interface DatabaseServerOptions {
  /** Ends the server if this process dies, and keeps its log with the files of the run. */
  readonly run?: Run;
  /** Further arguments of every start. */
  readonly args?: readonly string[];
  /** Statements, one line each, that its first user runs before the server answers anybody. */
  readonly statements?: readonly string[];
}

/** Start of a server's program. */
interface SpawnOptions extends Pick<Deno.CommandOptions, "signal"> {
  /** File that it reads. @default none */
  readonly input?: string;
  /** True to start it as the harness's user, who may give files to others. @default false */
  readonly keepsOwners?: boolean;
}

/**
 * A database server of its own, in a directory of its own, on a port of loopback. It runs without
 * privileges, and is ended by its pid. It keeps its port and its data until it is disposed of.
 */
export class DatabaseServer<K extends ServerProgram = ServerKind> implements AsyncDisposable {
  readonly kind: K;
  readonly directory: string;
  readonly #options: DatabaseServerOptions;
  #port = 0;
  /** True once it has answered at its port, which is its own from then on. */
  #isSettled = false;
  #process: Deno.ChildProcess | undefined;
  /** Set while it is suspended. */
  #resume: (() => void) | undefined;

  private constructor(kind: K, directory: string, options: DatabaseServerOptions) {
    this.kind = kind;
    this.directory = directory;
    this.#options = options;
  }

  /** Makes its data and starts it. */
  static async start<K extends ServerProgram = ServerKind>(
    kind: K,
    options: DatabaseServerOptions = {},
  ): Promise<DatabaseServer<K>> {
    // Not in the run's directory: all folders above must be open to everybody, and paths of sockets
    // are short.
    const directory = await Deno.makeTempDir({ dir: "/tmp", prefix: "causeway-sql-" });
    options.run?.guardWith(["rm", "-rf", directory]);
    const server = new DatabaseServer(kind, directory, options);
    try {
      if (Deno.uid() === 0) await Deno.chown(directory, UNPRIVILEGED, UNPRIVILEGED);
      await server.#prepare();
      const first = await server.#firstArgs(options.statements ?? []);
      await server.launch(...first);
      return server;
    } catch (thrown) {
      await server[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  get port(): number {
    return this.#port;
  }

  get isRunning(): boolean {
    return this.#process !== undefined;
  }

  /** @throws when it does not run */
  get pid(): number {
    if (this.#process === undefined) throw new Error(`${this.kind.name} does not run`);
    return this.#process.pid;
  }

  /** Its process, and those that it has for its sessions now. Empty when it does not run. */
  get pids(): readonly number[] {
    return this.#process === undefined ? [] : [this.#process.pid, ...childrenOf(this.#process.pid)];
  }

  /** Returns the end of what it wrote. */
  log(): string {
    return this.#wholeLog().slice(-4_000);
  }

  /** Starts it, after `kill` again on the same port, with more options. */
  async launch(...args: readonly string[]): Promise<void> {
    for (let tries = 1;; tries++) {
      if (this.#port === 0) this.#port = freePort(this.kind);
      const [program, ...own] = this.kind.run(this.directory, this.#port);
      const before = this.#wholeLog().length;
      const process = this.#spawn([program, ...own, ...this.#options.args ?? [], ...args]);
      this.#process = process;
      this.#options.run?.guard(process.pid);
      if (await this.#isUp(process, before)) {
        this.#isSettled = true;
        return;
      }
      await this.kill();
      if (tries >= MAX_TRIES) throw new Error(`${this.kind.name} does not start:\n${this.log()}`);
      if (!this.#isSettled) this.#port = 0; // it was taken in between, by another program
    }
  }

  /** Ends it as a crash would. */
  async kill(): Promise<void> {
    const process = this.#process;
    if (process === undefined) return;
    this.#process = undefined;
    this.#resume?.(); // a suspended process would end later
    if (this.kind.hasChildren) signalAll(childrenOf(process.pid), this.kind.killSignal);
    try {
      process.kill(this.kind.killSignal);
    } catch {
      // it has ended by itself
    }
    await process.status;
    this.#options.run?.unguard(process.pid);
  }

  /**
   * Suspends it with its connections open, with the processes that PostgreSQL has for its sessions.
   * Returns a function that resumes it.
   */
  suspend(): () => void {
    const { pid } = this;
    // The parent first, so that no session begins behind our back.
    Deno.kill(pid, "SIGSTOP");
    const pids = childrenOf(pid);
    signalAll(pids, "SIGSTOP");
    this.#resume = () => {
      this.#resume = undefined;
      signalAll(pids, "SIGCONT");
      Deno.kill(pid, "SIGCONT");
    };
    return () => this.#resume?.();
  }

  /** Copies a certificate to where the server may read it, and nobody else. */
  async install(certificate: ServerCertificate): Promise<ServerCertificate> {
    const copies = { certfile: `${this.directory}/cert.pem`, keyfile: `${this.directory}/key.pem` };
    for (const name of ["certfile", "keyfile"] as const) {
      await this.#giveAway(copies[name], await Deno.readTextFile(certificate[name]));
    }
    return copies;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    const { run } = this.#options;
    if (run?.isKept) {
      await Deno.writeTextFile(run.path(`${this.kind.name.toLowerCase()}.log`), this.#wholeLog());
    }
    await Deno.remove(this.directory, { recursive: true });
    run?.unguardWith(["rm", "-rf", this.directory]);
  }

  /** Makes its data, or copies those that an earlier server has made. */
  async #prepare(): Promise<void> {
    await this.#giveAway(join(this.directory, "log"), ""); // copies are not made by the server
    const kept = preparedDataPath(this.kind);
    if (kept !== undefined && isDirectory(kept)) {
      return await this.#runToEnd(copying(kept, this.directory), { keepsOwners: true });
    }
    for (const command of this.kind.prepare(this.directory)) await this.#runToEnd(command);
    if (kept !== undefined) await this.#keepData(kept);
  }

  async #keepData(kept: string): Promise<void> {
    const partial = `${kept}.${crypto.randomUUID()}`;
    const removal = ["rm", "-rf", partial] as const;
    this.#options.run?.guardWith(removal);
    try {
      await this.#runToEnd(keeping(this.directory, { kept, partial }), { keepsOwners: true });
    } finally {
      await this.#spawn(removal, { keepsOwners: true }).status;
      this.#options.run?.unguardWith(removal);
    }
  }

  /** Prepares `statements`, and returns the arguments of the start that runs them. */
  async #firstArgs(statements: readonly string[]): Promise<readonly string[]> {
    if (statements.length === 0) return [];
    const path = join(this.directory, "first.sql");
    await this.#giveAway(path, statements.map((statement) => `${statement};\n`).join(""));
    if ("driver" in this.kind && this.kind.driver === "mysql") return [`--init-file=${path}`];
    const [program] = this.kind.run(this.directory, 0);
    const data = join(this.directory, "data");
    await this.#runToEnd([program, "--single", "-D", data, "postgres"], { input: path });
    return [];
  }

  /** Writes a file that the server alone may read. */
  async #giveAway(path: string, text: string): Promise<void> {
    await Deno.writeTextFile(path, text, { mode: 0o600 });
    if (Deno.uid() === 0) await Deno.chown(path, UNPRIVILEGED, UNPRIVILEGED);
  }

  async #isUp(process: Deno.ChildProcess, before: number): Promise<boolean> {
    const { run } = this.#options;
    let hasEnded = false;
    void process.status.then(() => hasEnded = true);
    const isReady = () => this.#wholeLog().slice(before).includes(this.kind.readyText);
    await until(() => hasEnded || isReady(), {
      what: `${this.kind.name} is ready`,
      withinMs: START_WITHIN_MS,
      everyMs: 25,
      evidence: () => this.log(),
      ...(run && { signal: run.signal }),
    });
    return !hasEnded;
  }

  #wholeLog(): string {
    try {
      return Deno.readTextFileSync(join(this.directory, "log"));
    } catch {
      return ""; // nothing has been written yet
    }
  }

  async #runToEnd(command: CommandLine, how: SpawnOptions = {}): Promise<void> {
    const { run } = this.#options;
    run?.signal.throwIfAborted();
    const process = this.#spawn(command, { ...how, ...(run && { signal: run.signal }) });
    run?.guard(process.pid);
    const { success } = await process.status;
    run?.unguard(process.pid);
    if (!success) throw new Error(`${command[0]} failed:\n${this.log()}`);
  }

  /** Starts a program that writes into the server's log, so that nobody has its pipes open. */
  #spawn(
    command: CommandLine,
    { input = "/dev/null", keepsOwners = false, ...options }: SpawnOptions = {},
  ): Deno.ChildProcess {
    const isRoot = Deno.uid() === 0 && this.kind.isOwn !== true && !keepsOwners;
    return new Deno.Command("/bin/sh", {
      args: ["-c", 'input=$1; shift; exec "$@" <"$input" >>log 2>&1', "sh", input, ...command],
      cwd: this.directory,
      env: { TMPDIR: this.directory },
      stdin: "null",
      stdout: "null",
      stderr: "null",
      ...options,
      ...(isRoot ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {}),
    }).spawn();
  }
}

function isDirectory(path: string): boolean {
  try {
    return Deno.statSync(path).isDirectory;
  } catch {
    return false; // it is not there yet
  }
}

/** Returns the processes that a process has started. Deno itself reads `/proc` for nobody. */
function childrenOf(pid: number): readonly number[] {
  // Each of its threads has a list.
  const { stdout } = new Deno.Command("/bin/sh", {
    args: ["-c", "exec cat /proc/$1/task/*/children", "sh", String(pid)],
    stderr: "null", // it may have ended
  }).outputSync();
  return new TextDecoder().decode(stdout).split(" ").filter((each) => each.trim() !== "")
    .map(Number);
}

/** Sends a signal to those processes that have not ended. */
function signalAll(pids: readonly number[], signal: Deno.Signal): void {
  for (const pid of pids) {
    try {
      Deno.kill(pid, signal);
    } catch (thrown) {
      if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
    }
  }
}

function freePort(
  { ports: [first, last] = [FIRST_PORT, LAST_PORT], address = "127.0.0.1" }: ServerProgram,
): number {
  for (;;) {
    const port = first + Math.floor(Math.random() * (last - first + 1));
    try {
      Deno.listen({ hostname: address, port }).close();
      return port;
    } catch (thrown) {
      if (!(thrown instanceof Deno.errors.AddrInUse)) throw thrown;
    }
  }
}
