import { createServer } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import { until } from "./redis_server.ts";

/** Redis, or what takes the same options: `CAUSEWAY_REDIS_SERVER=valkey-server`. */
const PROGRAM = Deno.env.get("CAUSEWAY_REDIS_SERVER") ?? "redis-server";
/** Ports for outgoing connections begin at 32768 on Linux; the bus of a cluster is 10000 above its node. */
const [FIRST_PORT, LAST_PORT] = [10_240, 22_700];

/** Options of a process. */
interface RedisProcessOptions {
  readonly args: readonly string[];
  /** Lines of a configuration file, for a Sentinel, which wants to write into it. */
  readonly file?: readonly string[];
  /** Instead of `--port`, for TLS. @default "port" */
  readonly portOption?: "port" | "tls-port";
}

/** A `redis-server` process of its own port on loopback; ended by its pid. */
export class RedisProcess implements AsyncDisposable {
  readonly port: number;
  readonly #directory: string;
  readonly #options: RedisProcessOptions;
  #process: Deno.ChildProcess | undefined;

  private constructor(port: number, directory: string, options: RedisProcessOptions) {
    this.port = port;
    this.#directory = directory;
    this.#options = options;
  }

  /** Starts it on a free port, and resolves when it accepts connections there. */
  static async start(options: RedisProcessOptions): Promise<RedisProcess> {
    const directory = await Deno.makeTempDir({ prefix: "causeway-redis-" });
    for (let tries = 1;; tries++) {
      const process = new RedisProcess(await freePort(), directory, options);
      try {
        await process.launch();
        return process;
      } catch (error) {
        if (tries >= 10) throw error; // the port was taken in between, by another test
      }
    }
  }

  get address(): { readonly host: string; readonly port: number } {
    return { host: "127.0.0.1", port: this.port };
  }

  /** Starts it, after `kill` again on the same port; `more`: options for this time. */
  async launch(...more: readonly string[]): Promise<void> {
    const { args, file, portOption = "port" } = this.#options;
    const config = `${this.#directory}/redis.conf`;
    if (file !== undefined) {
      await Deno.writeTextFile(config, file.map((line) => `${line}\n`).join(""));
    }
    const process = new Deno.Command(PROGRAM, {
      args: [
        ...(file === undefined ? [] : [config]),
        ...(portOption === "port" ? [] : ["--port", "0"]),
        ...[`--${portOption}`, String(this.port), "--bind", "127.0.0.1", "--dir", this.#directory],
        ...args,
        ...more,
      ],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    this.#process = process;
    let hasEnded = false;
    process.status.then(() => hasEnded = true);
    for (let tries = 0; tries < 6_000 && !hasEnded; tries++) {
      try {
        (await Deno.connect({ hostname: "127.0.0.1", port: this.port })).close();
        return;
      } catch {
        await pause(10); // it has not bound its port yet
      }
    }
    await this.kill();
    throw new Error(`${PROGRAM} does not accept connections on port ${this.port}`);
  }

  /** Ends it as a crash would. */
  async kill(): Promise<void> {
    const process = this.#process;
    if (process === undefined) return;
    this.#process = undefined;
    try {
      process.kill("SIGKILL");
    } catch {
      // it has ended by itself
    }
    await process.status;
  }

  /** Stops it in its tracks, connections open; `SIGCONT` lets it go on. */
  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.#process?.kill(signal);
  }

  /** Sends one command on a connection of its own. */
  async call(...command: readonly [string, ...(string | number)[]]): Promise<unknown> {
    const redis = new Redis({ ...this.address, disableClientInfo: true, enableReadyCheck: false });
    redis.on("error", () => {}); // the call rejects
    try {
      return await redis.call(...command as [string, ...string[]]);
    } finally {
      redis.disconnect();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await Deno.remove(this.#directory, { recursive: true });
  }
}

const WITHOUT_DATA = [
  ...["--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"],
];

/** A master and a replica, and three Sentinels that watch them. */
export class SentinelGroup implements AsyncDisposable {
  readonly master: RedisProcess;
  readonly replica: RedisProcess;
  readonly sentinels: readonly RedisProcess[];
  readonly #owned: AsyncDisposableStack;

  private constructor(redises: readonly RedisProcess[], owned: AsyncDisposableStack) {
    const [master, replica, ...sentinels] = redises;
    this.master = master!;
    this.replica = replica!;
    this.sentinels = sentinels;
    this.#owned = owned;
  }

  /** @param sentinelPassword what the Sentinels want to hear; empty for nothing */
  static async start(sentinelPassword = ""): Promise<SentinelGroup> {
    await using building = new AsyncDisposableStack();
    const master = building.use(await RedisProcess.start({ args: WITHOUT_DATA }));
    const replica = building.use(
      await RedisProcess.start({
        args: [
          ...WITHOUT_DATA,
          ...["--replicaof", `127.0.0.1 ${master.port}`],
        ],
      }),
    );
    const redises = [master, replica];
    for (let count = 0; count < 3; count++) {
      const sentinel = await RedisProcess.start({
        args: ["--sentinel"],
        file: [
          `sentinel monitor dc1 127.0.0.1 ${master.port} 2`,
          "sentinel down-after-milliseconds dc1 500",
          "sentinel failover-timeout dc1 3000",
          ...(sentinelPassword === "" ? [] : [
            `requirepass ${sentinelPassword}`,
            `sentinel sentinel-pass ${sentinelPassword}`,
          ]),
        ],
      });
      redises.push(building.use(sentinel));
    }
    const group = new SentinelGroup(redises, building.move());
    if (sentinelPassword === "") await group.#untilWatched();
    return group;
  }

  /** Waits until all Sentinels agree that `process` is the master. */
  async untilNamed(process: RedisProcess): Promise<void> {
    await until(
      async () => {
        const named = await Promise.all(
          this.sentinels.map((each) => each.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "dc1")),
        );
        return named.every((each) => Array.isArray(each) && Number(each[1]) === process.port);
      },
      "all Sentinels name the new master",
      180_000,
    );
  }

  /** A failover in which nobody has died. */
  async failOver(): Promise<void> {
    await this.sentinels[0]!.call("SENTINEL", "FAILOVER", "dc1");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync();
  }

  /** All Sentinels know each other and the replica, which has the master's data. */
  async #untilWatched(): Promise<void> {
    await until(
      async () => {
        const infos = await Promise.all(
          this.sentinels.map((each) => each.call("INFO", "sentinel")),
        );
        return infos.every((info) => /status=ok,.*slaves=1,sentinels=3/.test(String(info)));
      },
      "three Sentinels watch a master and a replica",
      60_000,
    );
    await until(
      async () => /master_link_status:up/.test(String(await this.replica.call("INFO"))),
      "the replica follows",
      60_000,
    );
  }
}

/** A Redis Cluster of three masters, each with a replica when asked for. */
export class RedisCluster implements AsyncDisposable {
  readonly nodes: readonly RedisProcess[];
  readonly #owned: AsyncDisposableStack;

  private constructor(nodes: readonly RedisProcess[], owned: AsyncDisposableStack) {
    this.nodes = nodes;
    this.#owned = owned;
  }

  static async start({ replicas = 0 }: { readonly replicas?: 0 | 1 } = {}): Promise<RedisCluster> {
    await using building = new AsyncDisposableStack();
    const nodes: RedisProcess[] = [];
    for (let count = 0; count < 3 * (1 + replicas); count++) {
      const node = await RedisProcess.start({
        args: [
          ...WITHOUT_DATA,
          ...["--cluster-enabled", "yes", "--cluster-node-timeout", "1000"],
        ],
      });
      nodes.push(building.use(node));
    }
    const cluster = new RedisCluster(nodes, building.move());
    await cluster.#join();
    return cluster;
  }

  /** Index of the master that holds `slot`, as the node `asked` sees it. */
  async ownerOf(slot: number, asked = 0): Promise<number> {
    const ranges = await this.nodes[asked]!.call("CLUSTER", "SLOTS") as [
      number,
      number,
      [string, number],
    ][];
    const port = ranges.find(([first, last]) => slot >= first && slot <= last)?.[2][1];
    return this.nodes.findIndex((node) => node.port === port);
  }

  async id(index: number): Promise<string> {
    return String(await this.nodes[index]!.call("CLUSTER", "MYID"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync();
  }

  async #join(): Promise<void> {
    const [first, ...others] = this.nodes;
    const bounds = [0, 5_461, 10_923, 16_384];
    for (const [index, node] of this.nodes.slice(0, 3).entries()) {
      await node.call("CLUSTER", "SET-CONFIG-EPOCH", index + 1);
      await node.call("CLUSTER", "ADDSLOTSRANGE", bounds[index]!, bounds[index + 1]! - 1);
    }
    for (const node of others) await node.call("CLUSTER", "MEET", "127.0.0.1", first!.port);
    await until(
      async () => (await this.#infos()).every((info) => /cluster_state:ok/.test(info)),
      "the cluster is whole",
      30_000,
    );
    for (const [index, replica] of this.nodes.slice(3).entries()) {
      const id = await this.id(index);
      await until(
        async () => {
          const known = String(await replica.call("CLUSTER", "NODES"));
          return known.includes(id);
        },
        "a replica knows its master",
        30_000,
      );
      await replica.call("CLUSTER", "REPLICATE", id);
    }
    for (const replica of this.nodes.slice(3)) {
      await until(
        async () => /master_link_status:up/.test(String(await replica.call("INFO"))),
        "a replica follows",
        30_000,
      );
    }
  }

  async #infos(): Promise<readonly string[]> {
    return await Promise.all(
      this.nodes.map(async (node) => String(await node.call("CLUSTER", "INFO"))),
    );
  }
}

/** A port that nobody listens on, nor on the one for a cluster's bus. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT + 1));
    if (await isFree(port) && await isFree(port + 10_000)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const { promise, resolve } = Promise.withResolvers<boolean>();
  server.once("error", () => resolve(false));
  server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  return await promise;
}
