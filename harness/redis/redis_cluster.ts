import type { Run } from "../process/mod.ts";
import { until } from "../until.ts";
import { ClusterClient } from "./cluster_client.ts";
import { LocalRedis } from "./local_redis.ts";
import { type RedisAddress, RedisClient } from "./redis_client.ts";
import type { FailoverRedis } from "./redis_server.ts";

const MASTERS = 3;
const SLOTS = 16_384;
const WITHIN_MS = 180_000;

/** A Redis Cluster of three masters and a replica for each. */
export class RedisCluster implements FailoverRedis {
  readonly kind = "local";
  readonly #name: string;
  readonly #nodes: readonly LocalRedis[];

  constructor(options: { readonly run: Run; readonly name: string; readonly program: string }) {
    this.#name = options.name;
    this.#nodes = Array.from({ length: 2 * MASTERS }, (_, index) => {
      const name = `${options.name}-${index + 1}`;
      return new LocalRedis({
        ...options,
        name,
        args: [
          ...["--cluster-enabled", "yes", "--cluster-node-timeout", "4000"],
          ...["--cluster-config-file", `${name}.nodes`, "--repl-diskless-sync-delay", "0"],
        ],
      });
    });
  }

  get description(): string {
    return `a cluster of ${this.#nodes.map((node) => node.description).join(", ")}`;
  }

  /** Address of a running node. */
  get address(): RedisAddress {
    return (this.#nodes.find((node) => node.isRunning) ?? this.#nodes[0]!).address;
  }

  get isRunning(): boolean {
    return this.#nodes.some((node) => node.isRunning);
  }

  get place(): Readonly<Record<string, unknown>> {
    const seeds = this.#nodes.slice(0, 2).map(({ address: { host, port } }) => ({ host, port }));
    return { cluster: seeds };
  }

  client(): RedisClient {
    return new ClusterClient(() =>
      this.#nodes.filter((node) => node.isRunning).map((node) => node.address)
    );
  }

  async start(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.start()));
    const masters = this.#nodes.slice(0, MASTERS);
    for (const [index, master] of masters.entries()) {
      const bound = (at: number) => Math.round(at * SLOTS / MASTERS);
      await call(master, "CLUSTER", "SET-CONFIG-EPOCH", index + 1);
      await call(master, "CLUSTER", "ADDSLOTSRANGE", bound(index), bound(index + 1) - 1);
    }
    const { port } = masters[0]!.address;
    const count = this.#nodes.length;
    await this.#untilAll("are whole", this.#nodes, async (node) => {
      const info = String(await call(node, "CLUSTER", "INFO"));
      if (info.includes(`cluster_known_nodes:${count}`)) return info.includes("cluster_state:ok");
      // Again and again: Redis gives up a node that does not answer for some seconds.
      await call(node, "CLUSTER", "MEET", "127.0.0.1", port);
      return false;
    });
    const replicas = this.#nodes.slice(MASTERS);
    for (const [index, replica] of replicas.entries()) {
      const id = String(await call(masters[index]!, "CLUSTER", "MYID"));
      await call(replica, "CLUSTER", "REPLICATE", id);
    }
    await this.#untilAll("follow", replicas, follows);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.stop()));
  }

  async pause(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.pause()));
  }

  async resume(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.resume()));
  }

  tail(): string {
    return this.#nodes.map((node) => node.tail()).join("\n");
  }

  async killMaster(): Promise<void> {
    for (const node of this.#nodes) {
      if (!node.isRunning || !await isMaster(node)) continue;
      await node.stop();
      return;
    }
  }

  async restore(): Promise<void> {
    const dead = this.#nodes.filter((node) => !node.isRunning);
    const alive = this.#nodes.filter((node) => node.isRunning);
    await this.#untilAll(
      "are whole again",
      alive,
      async (node) => String(await call(node, "CLUSTER", "INFO")).includes("cluster_state:ok"),
    );
    await Promise.all(dead.map((node) => node.start()));
    await this.#untilAll("follow", dead, follows);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #untilAll(
    what: string,
    nodes: readonly LocalRedis[],
    isSo: (node: LocalRedis) => Promise<boolean>,
  ): Promise<void> {
    await until(async () => (await Promise.all(nodes.map(isSo))).every(Boolean), {
      what: `the nodes of ${this.#name} ${what}`,
      withinMs: WITHIN_MS,
      everyMs: 100,
      evidence: () => this.tail(),
    });
  }
}

async function follows(node: LocalRedis): Promise<boolean> {
  return /master_link_status:up/.test(String(await call(node, "INFO", "replication")));
}

async function isMaster(node: LocalRedis): Promise<boolean> {
  return /role:master/.test(String(await call(node, "INFO", "replication")));
}

async function call(
  node: LocalRedis,
  ...command: readonly (string | number)[]
): Promise<unknown> {
  await using client = new RedisClient(node.address);
  return await client.call(...command);
}
