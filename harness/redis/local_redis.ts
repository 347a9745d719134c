import { Child, type Run } from "../process/mod.ts";
import { until } from "../until.ts";
import type { RedisAddress } from "./redis_client.ts";
import type { RedisServer } from "./redis_server.ts";

/** Either speaks the same protocol and takes the same options; the first that is there is used. */
export const LOCAL_PROGRAMS = ["redis-server", "valkey-server"] as const;

/** Options of a local Redis. */
export interface LocalRedisOptions {
  readonly run: Run;
  /** For file names: `dc1-redis`. */
  readonly name: string;
  readonly program?: string;
  /** Empty for none. @default "" */
  readonly password?: string;
  /** More options of redis-server. */
  readonly args?: readonly string[];
  /** Lines of a configuration file, which makes it a Sentinel: those write into theirs. */
  readonly sentinelFile?: readonly string[];
  /** The port to try first. @default a random one */
  readonly port?: number;
}

const FIRST_PORT = 10_240;
/**
 * Linux hands out 32768 and up to outgoing connections; below, a port stays ours across restarts. The
 * bus of a Redis Cluster is 10000 above its server.
 */
const LAST_PORT = 22_767;
const MAX_TRIES = 20;

/** A `redis-server` or `valkey-server` process. */
export class LocalRedis implements RedisServer {
  readonly kind = "local";
  readonly #options: LocalRedisOptions;
  readonly #program: string;
  #port: number | undefined;
  #child: Child | undefined;
  #more: readonly string[] = [];

  constructor(options: LocalRedisOptions) {
    this.#options = options;
    this.#program = options.program ?? LOCAL_PROGRAMS[0];
  }

  get description(): string {
    return `${this.#program} :${this.#port ?? "?"}`;
  }

  get address(): RedisAddress {
    if (this.#port === undefined) throw new Error(`${this.#options.name} was never started`);
    return { host: "127.0.0.1", port: this.#port, password: this.#options.password ?? "" };
  }

  get isRunning(): boolean {
    return this.#child?.isRunning ?? false;
  }

  /**
   * Starts it. Redis cannot say which free port it took, so the first start tries random ones until
   * it does not find one taken; a later start insists on the same port.
   */
  async start(): Promise<void> {
    if (this.isRunning) throw new Error(`Cannot start ${this.#options.name}: it is running`);
    if (this.#port !== undefined) return await this.#startAt(this.#port);
    let port = this.#options.port ?? randomPort();
    for (let tries = 1;; tries++) {
      try {
        await this.#startAt(port);
        this.#port = port;
        return;
      } catch (thrown) {
        const isTaken = /Address already in use/.test(this.tail());
        if (!isTaken || tries >= MAX_TRIES) throw thrown;
        port = randomPort();
      }
    }
  }

  /** As `start`, with further options from now on. */
  async startWith(...more: readonly string[]): Promise<void> {
    this.#more = more;
    await this.start();
  }

  async stop(): Promise<void> {
    await this.#child?.kill(); // nothing is saved, so there is nothing to wait for
  }

  pause(): Promise<void> {
    this.#child?.pause();
    return Promise.resolve();
  }

  resume(): Promise<void> {
    this.#child?.resume();
    return Promise.resolve();
  }

  tail(): string {
    return this.#child?.log.tail() ?? "";
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #startAt(port: number): Promise<void> {
    const { run, name, password, args, sentinelFile } = this.#options;
    const config = sentinelFile && run.path(`${name}.conf`);
    if (config !== undefined) await Deno.writeTextFile(config, `${sentinelFile!.join("\n")}\n`);
    const child = new Child({
      name,
      program: this.#program,
      args: [
        ...(config === undefined ? [] : [config, "--sentinel"]),
        ...["--port", String(port), "--bind", "127.0.0.1", "--dir", run.directory],
        ...(config === undefined ? ["--save", "", "--appendonly", "no"] : []),
        ...(password ? ["--requirepass", password] : []),
        ...(args ?? []),
        ...this.#more,
      ],
      run,
    });
    this.#child = child;
    const isReady = () =>
      child.log.lines.some((line) =>
        /Ready to accept connections|\+monitor master/.test(line.text)
      );
    await until(() => isReady() || !child.isRunning, {
      what: `${name} is ready`,
      everyMs: 5,
      signal: run.signal,
      evidence: () => child.log.tail(),
    });
    if (!child.isRunning) {
      throw new Error(`Cannot start ${this.#program} on port ${port}:\n${child.log.tail()}`);
    }
  }
}

function randomPort(): number {
  return FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT + 1));
}
