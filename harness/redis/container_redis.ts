import { type Run, runProgram } from "../process/mod.ts";
import { PATIENCE_MS, until } from "../until.ts";
import { type RedisAddress, RedisClient } from "./redis_client.ts";
import type { RedisServer } from "./redis_server.ts";

/** Programs that run containers; they take the same commands. */
export const CONTAINER_ENGINES = ["docker", "podman"] as const;
export type ContainerEngine = typeof CONTAINER_ENGINES[number];

/** Options of a Redis in a container. */
export interface ContainerRedisOptions {
  readonly run: Run;
  readonly engine: ContainerEngine;
  /** @default "redis:7-alpine" */
  readonly image?: string;
  /** Empty for none. @default "" */
  readonly password?: string;
}

/** The command lines that make, find and end one container. */
export interface ContainerCommands {
  /** Starts it in the background; on `port` of loopback, or on a free one when undefined. */
  run(port: number | undefined): readonly string[];
  /** Prints the address that it is published at. */
  readonly port: readonly string[];
  readonly pause: readonly string[];
  readonly unpause: readonly string[];
  readonly logs: readonly string[];
  /** Ends and removes it. */
  readonly remove: readonly string[];
}

/** Builds the command lines for a container called `name`. */
export function containerCommands(
  name: string,
  options: { readonly image: string; readonly password: string },
): ContainerCommands {
  return {
    run: (port) => [
      ...["run", "--detach", "--rm", "--name", name],
      ...["--publish", `127.0.0.1:${port ?? ""}:6379`],
      options.image,
      ...["redis-server", "--save", "", "--appendonly", "no"],
      ...(options.password === "" ? [] : ["--requirepass", options.password]),
    ],
    port: ["port", name, "6379/tcp"],
    pause: ["pause", name],
    unpause: ["unpause", name],
    logs: ["logs", "--tail", "30", name],
    remove: ["rm", "--force", name],
  };
}

/** The port in what `docker port` prints, such as `127.0.0.1:49153`. */
export function parsePublishedPort(output: string): number {
  const match = /^(?:127\.0\.0\.1|0\.0\.0\.0):(\d+)\s*$/m.exec(output);
  if (match === null) throw new TypeError(`Cannot read a published port: "${output.trim()}"`);
  return Number(match[1]);
}

/** The engine that answers, if one does. A client without its daemon does not count. */
export async function findContainerEngine(run?: Run): Promise<ContainerEngine | undefined> {
  for (const engine of CONTAINER_ENGINES) {
    const args = ["version", "--format", "{{.Server.Version}}"];
    const answer = await runProgram(engine, args, run && { run });
    if (answer?.code === 0) return engine;
  }
  return undefined;
}

/** A Redis in a container of its own, published on loopback. */
export class ContainerRedis implements RedisServer {
  readonly kind = "docker";
  readonly #engine: ContainerEngine;
  readonly #run: Run;
  readonly #password: string;
  readonly #commands: ContainerCommands;
  #port: number | undefined;
  #isRunning = false;
  #tail = "";

  constructor(options: ContainerRedisOptions) {
    this.#engine = options.engine;
    this.#run = options.run;
    this.#password = options.password ?? "";
    this.#commands = containerCommands(`causeway-${crypto.randomUUID()}`, {
      image: options.image ?? "redis:7-alpine",
      password: this.#password,
    });
  }

  get description(): string {
    return `${this.#engine} :${this.#port ?? "?"}`;
  }

  get address(): RedisAddress {
    if (this.#port === undefined) throw new Error("The container was never started");
    return { host: "127.0.0.1", port: this.#port, password: this.#password };
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  async start(): Promise<void> {
    this.#run.guardWith([this.#engine, ...this.#commands.remove]);
    // To fetch the image may take minutes.
    await this.#must(this.#commands.run(this.#port), this.#run);
    this.#isRunning = true;
    this.#port = parsePublishedPort(await this.#must(this.#commands.port));
    await using client = new RedisClient(this.address);
    await until(() => client.call("PING"), {
      what: "the container answers",
      withinMs: 2 * PATIENCE_MS,
      signal: this.#run.signal,
    });
  }

  async stop(): Promise<void> {
    if (!this.#isRunning) return;
    this.#isRunning = false;
    this.#tail = (await runProgram(this.#engine, this.#commands.logs))?.output ?? "";
    await this.#must(this.#commands.remove);
    this.#run.unguardWith([this.#engine, ...this.#commands.remove]);
  }

  async pause(): Promise<void> {
    await this.#must(this.#commands.pause);
  }

  async resume(): Promise<void> {
    await this.#must(this.#commands.unpause);
  }

  tail(): string {
    return this.#tail;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** @param run the run that ends the command, if that is to end early */
  async #must(args: readonly string[], run?: Run): Promise<string> {
    const answer = await runProgram(this.#engine, args, run && { run });
    if (answer?.code === 0) return answer.output;
    throw new Error(
      `Cannot run ${this.#engine} ${args[0]}: ${answer?.errors.trim() ?? "not found"}`,
    );
  }
}
