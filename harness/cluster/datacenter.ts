import type { LinkProxy } from "../faults/mod.ts";
import type { Address, NodeProcess } from "../process/mod.ts";
import { RedisClient, type RedisServer, type ReplicatingProxy } from "../redis/mod.ts";
import {
  type CausewayConfiguration,
  CLIENT_SECURITIES,
  type Security,
  WEBSOCKET_SECURITIES,
  type WebSocketSecurity,
} from "./causeway_configuration.ts";

export type CausewayNode = NodeProcess<CausewayConfiguration>;

/** Dependencies of `Datacenter`. */
export interface DatacenterDeps {
  /** `dc1` */
  readonly name: string;
  /** `dc1.example.com` */
  readonly localHost: string;
  readonly nodes: readonly CausewayNode[];
  readonly redis: RedisServer;
  /** In front of the Redis, where replication is external. */
  readonly replicator: ReplicatingProxy | undefined;
  /** Between its nodes and the database, where `ClusterOptions.databaseLinks` asks for it. */
  readonly databaseLink: LinkProxy | undefined;
}

/** All that has one local host: its nodes and its Redis. */
export class Datacenter implements AsyncDisposable {
  readonly name: string;
  readonly localHost: string;
  readonly nodes: readonly CausewayNode[];
  readonly redis: RedisServer;
  readonly #replicator: ReplicatingProxy | undefined;
  readonly #databaseLink: LinkProxy | undefined;
  #redisClient: RedisClient | undefined;

  constructor(deps: DatacenterDeps) {
    this.name = deps.name;
    this.localHost = deps.localHost;
    this.nodes = deps.nodes;
    this.redis = deps.redis;
    this.#replicator = deps.replicator;
    this.#databaseLink = deps.databaseLink;
  }

  /** Its first node; the only one, where one is enough. */
  get node(): CausewayNode {
    return this.nodes[0]!; // a datacenter without nodes cannot be configured
  }

  /** The replicating proxy in front of its Redis. @throws where the nodes replicate by themselves */
  get replicator(): ReplicatingProxy {
    if (this.#replicator === undefined) throw new Error(`${this.name} has no replicating proxy`);
    return this.#replicator;
  }

  /** The proxy between its nodes and the database. @throws where there is none */
  get databaseLink(): LinkProxy {
    if (this.#databaseLink === undefined) throw new Error(`${this.name} has no link to a database`);
    return this.#databaseLink;
  }

  get hasReplicator(): boolean {
    return this.#replicator !== undefined;
  }

  /** A client of its Redis itself, past any proxy, for looking and for planting. */
  get redisClient(): RedisClient {
    return this.#redisClient ??= this.redis.client?.() ?? new RedisClient(this.redis.address);
  }

  /** Returns the address where clients log in. */
  clientAddress(security: Security, node = this.node): Address {
    return listener(node, "c2s", CLIENT_SECURITIES.indexOf(security));
  }

  /** Returns the address where clients log in over WebSocket. */
  webSocketAddress(security: WebSocketSecurity, node = this.node): Address {
    return listener(node, "websocket", WEBSOCKET_SECURITIES.indexOf(security));
  }

  /** The same as a URL, and beside it what the port tells of itself (XEP-0156). */
  webSocketUrl(
    security: WebSocketSecurity,
    { path = "/xmpp-websocket", node = this.node } = {},
  ): URL {
    const { host, port } = this.webSocketAddress(security, node);
    const isPage = path !== "/xmpp-websocket";
    const scheme = `${isPage ? "http" : "ws"}${security === "direct" ? "s" : ""}`;
    return new URL(path, `${scheme}://${host}:${port}`);
  }

  /** Returns the address where external components connect. */
  componentAddress(node = this.node): Address {
    return listener(node, "component", 0);
  }

  /** A URL of the admin API, such as that of `/ready`. */
  adminUrl(path: string, node = this.node): URL {
    const admin = node.ready.admin;
    if (admin === undefined) throw new Error(`${node.name} has no admin listener`);
    return new URL(path, `http://${admin.host}:${admin.port}`);
  }

  /** Starts those nodes that do not run. */
  async start(): Promise<void> {
    const stopped = this.nodes.filter((node) => node.state === "stopped");
    await Promise.all(stopped.map((node) => node.start()));
  }

  /** SIGTERM to every node, and waits. */
  async stop(): Promise<void> {
    await Promise.all(this.#living().map((node) => node.stop()));
  }

  /** SIGKILL to every node. */
  async kill(): Promise<void> {
    await Promise.all(this.#living().map((node) => node.kill()));
  }

  /** SIGSTOP to every node. */
  pause(): void {
    for (const node of this.#living()) node.pause();
  }

  /** SIGCONT to every node. */
  resume(): void {
    for (const node of this.#living()) node.resume();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.nodes.map((node) => node[Symbol.asyncDispose]()));
    await this.#redisClient?.[Symbol.asyncDispose]();
    await this.#replicator?.[Symbol.asyncDispose]();
    await this.#databaseLink?.[Symbol.asyncDispose]();
    await this.redis[Symbol.asyncDispose]();
  }

  #living(): readonly CausewayNode[] {
    return this.nodes.filter((node) => node.state !== "stopped");
  }
}

function listener(
  node: CausewayNode,
  kind: "c2s" | "websocket" | "component",
  index: number,
): Address {
  const address = node.ready[kind][index];
  if (address === undefined) throw new Error(`${node.name} has no ${kind} listener ${index}`);
  return address;
}
