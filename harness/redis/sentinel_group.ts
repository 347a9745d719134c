import type { Run } from "../process/mod.ts";
import { until } from "../until.ts";
import { LocalRedis } from "./local_redis.ts";
import { type RedisAddress, RedisClient } from "./redis_client.ts";
import type { FailoverRedis } from "./redis_server.ts";

const SENTINELS = 3;
/** A master that is silent for so long counts as dead. */
const DOWN_AFTER_MS = 4000;
const WITHIN_MS = 180_000;

/** A master and a replica, and three Sentinels that watch them. */
export class SentinelGroup implements FailoverRedis {
  readonly kind = "local";
  readonly #name: string;
  readonly #options: { readonly run: Run; readonly program: string };
  readonly #servers: readonly LocalRedis[];
  #sentinels: readonly LocalRedis[] = [];
  #master: LocalRedis;

  constructor(options: { readonly run: Run; readonly name: string; readonly program: string }) {
    this.#name = options.name;
    this.#options = options;
    this.#servers = ["a", "b"].map((letter) =>
      new LocalRedis({
        ...options,
        name: `${options.name}-${letter}`,
        args: ["--repl-diskless-sync-delay", "0"],
      })
    );
    this.#master = this.#servers[0]!;
  }

  get description(): string {
    return `${this.#master.description}, by ${SENTINELS} Sentinels`;
  }

  /** Address of the master, as far as known. */
  get address(): RedisAddress {
    return this.#master.address;
  }

  get isRunning(): boolean {
    return this.#master.isRunning;
  }

  get place(): Readonly<Record<string, unknown>> {
    const sentinels = this.#sentinels.map(({ address: { host, port } }) => ({ host, port }));
    return { sentinels, sentinel_name: this.#name };
  }

  client(): RedisClient {
    return new RedisClient(() => this.address);
  }

  async start(): Promise<void> {
    const [master, replica] = this.#servers as [LocalRedis, LocalRedis];
    this.#master = master;
    await master.start();
    const { port } = master.address;
    await replica.startWith("--replicaof", `127.0.0.1 ${port}`);
    this.#sentinels = Array.from({ length: SENTINELS }, (_, index) =>
      new LocalRedis({
        ...this.#options,
        name: `${this.#name}-sentinel-${index + 1}`,
        sentinelFile: [
          `sentinel monitor ${this.#name} 127.0.0.1 ${port} 2`,
          `sentinel down-after-milliseconds ${this.#name} ${DOWN_AFTER_MS}`,
          `sentinel failover-timeout ${this.#name} 5000`,
        ],
      }));
    await Promise.all(this.#sentinels.map((sentinel) => sentinel.start()));
    await this.#untilAllSentinels("know each other and the replica", async (client) => {
      const info = String(await client.call("INFO", "sentinel"));
      return new RegExp(`status=ok,.*slaves=1,sentinels=${SENTINELS}`).test(info);
    });
    await this.#untilFollows(replica);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#servers, ...this.#sentinels].map((each) => each.stop()));
  }

  pause(): Promise<void> {
    return this.#master.pause();
  }

  resume(): Promise<void> {
    return this.#master.resume();
  }

  tail(): string {
    return [...this.#servers, ...this.#sentinels].map((each) => each.tail()).join("\n");
  }

  async killMaster(): Promise<void> {
    const dead = this.#master;
    await dead.stop();
    this.#master = this.#servers.find((each) => each !== dead)!; // there are two
  }

  async restore(): Promise<void> {
    const { port } = this.#master.address;
    await this.#untilAllSentinels("name the new master", async (client) => {
      const named = await client.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", this.#name);
      return Array.isArray(named) && Number(named[1]) === port;
    });
    for (const server of this.#servers) {
      if (server.isRunning) continue;
      await server.startWith("--replicaof", `127.0.0.1 ${port}`);
      await this.#untilFollows(server);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #untilAllSentinels(
    what: string,
    isSo: (client: RedisClient) => Promise<boolean>,
  ): Promise<void> {
    await until(async () => {
      for (const { address } of this.#sentinels) {
        await using client = new RedisClient(address);
        if (!await isSo(client)) return false;
      }
      return true;
    }, { what: `the Sentinels of ${this.#name} ${what}`, withinMs: WITHIN_MS, everyMs: 100 });
  }

  async #untilFollows(replica: LocalRedis): Promise<void> {
    await using client = new RedisClient(replica.address);
    await until(
      async () => /master_link_status:up/.test(String(await client.call("INFO", "replication"))),
      { what: `the replica of ${this.#name} follows`, withinMs: WITHIN_MS, everyMs: 50 },
    );
  }
}
