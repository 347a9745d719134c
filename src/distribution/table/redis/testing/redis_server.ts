import { setTimeout } from "node:timers/promises";

/**
 * A real `redis-server` on a Unix socket in a directory of its own, so that it needs no port. It
 * removes its files at the end.
 */
export class RedisServer implements AsyncDisposable {
  readonly directory: string;
  readonly #args: readonly string[];
  #process: Deno.ChildProcess | undefined;

  private constructor(directory: string, args: readonly string[]) {
    this.directory = directory;
    this.#args = args;
  }

  /** Starts a server with further command-line arguments. */
  static async start(...args: string[]): Promise<RedisServer> {
    const server = new RedisServer(await Deno.makeTempDir({ prefix: "causeway-redis-" }), args);
    await server.launch();
    return server;
  }

  /** Path of its socket. */
  get socket(): string {
    return `${this.directory}/redis.sock`;
  }

  /** Starts it without data, also after `kill`. */
  async launch(): Promise<void> {
    this.#process = new Deno.Command("redis-server", {
      args: [
        ...["--port", "0", "--unixsocket", this.socket, "--save", "", "--appendonly", "no"],
        ...["--dir", this.directory, "--daemonize", "no", ...this.#args],
      ],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    for (let tries = 0; tries < 6_000; tries++) {
      try {
        (await Deno.connect({ transport: "unix", path: this.socket })).close();
        return;
      } catch {
        await setTimeout(10); // it has not bound its socket yet
      }
    }
    throw new Error("redis-server did not accept connections within a minute");
  }

  /** Ends it as a crash would. */
  async kill(): Promise<void> {
    const process = this.#process;
    if (process === undefined) return;
    this.#process = undefined;
    process.kill("SIGKILL");
    await process.status;
    await Deno.remove(this.socket).catch(() => {}); // a crash leaves it, an early one has none
  }

  /** Suspends it with its connections open; `SIGCONT` resumes it. */
  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.#process?.kill(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await Deno.remove(this.directory, { recursive: true });
  }
}

/** Polls until `isSo`, for states without an event; fails with `what` after `withinMs`. */
export async function until(
  isSo: () => boolean | Promise<boolean>,
  what: string,
  withinMs = 60_000,
): Promise<void> {
  const endMs = performance.now() + withinMs;
  while (!await isSo()) {
    if (performance.now() > endMs) throw new Error(`Not within ${withinMs} ms: ${what}`);
    await setTimeout(10);
  }
}
