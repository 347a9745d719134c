import { createConnection, createServer } from "node:net";
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { RawClient } from "../../clients/mod.ts";
import { Cluster } from "../../cluster/mod.ts";
import { listenOn } from "../../net/listening.ts";
import type { Listening } from "../../net/listening.ts";
import { readSeeds } from "../corpus.ts";
import { bytesOf } from "../fuzz_target.ts";
import type { LiveFuzzTarget } from "../fuzz_target.ts";
import { Company, FUZZ_USERS } from "./company.ts";
import { NodeWatch } from "./node_watch.ts";

const SAY_WITHIN_MS = 250;

/**
 * Replies of Redis. A node whose Redis sends nonsense goes on serving, reports no bug of its own,
 * and is ready again once Redis sends valid replies.
 */
export class RespTarget implements LiveFuzzTarget {
  readonly name = "resp";
  readonly tokens = bytesOf([
    "\r\n",
    "+OK\r\n",
    "$-1\r\n",
    "*-1\r\n",
    "$0\r\n\r\n",
    "*0\r\n",
    ":1\r\n",
    ":99999999999999999999\r\n",
    "$99999999\r\n",
    "$-7\r\n",
    "*4294967296\r\n",
    "-ERR no\r\n",
    "-READONLY no\r\n",
    "-NOAUTH no\r\n",
    "-MOVED 1 127.0.0.1:1\r\n",
    "-WRONGTYPE no\r\n",
    "$15\r\ndc1.example.com\r\n",
    "_\r\n",
    "%1\r\n+a\r\n+b\r\n",
    ",1.5\r\n",
    "#t\r\n",
    ">1\r\n+x\r\n",
    "*1\r\n*1\r\n*1\r\n*1\r\n",
  ]);
  readonly inputsPerCheck = 100;
  readonly #cluster: Cluster;
  readonly #nonsense: NonsenseProxy;
  readonly #asker: RawClient;
  readonly #canary: RawClient;
  readonly #watch: NodeWatch;
  readonly #company: Company;
  #runs = 0;

  private constructor(
    deps: {
      readonly cluster: Cluster;
      readonly nonsense: NonsenseProxy;
      readonly asker: RawClient;
      readonly canary: RawClient;
      readonly company: Company;
    },
  ) {
    this.#cluster = deps.cluster;
    this.#nonsense = deps.nonsense;
    this.#asker = deps.asker;
    this.#canary = deps.canary;
    this.#company = deps.company;
    this.#watch = new NodeWatch(deps.cluster.datacenter("dc1"), deps.canary);
  }

  static async start(): Promise<RespTarget> {
    const nonsense = await NonsenseProxy.start();
    const cluster = await Cluster.start({
      datacenters: 1,
      components: [],
      users: FUZZ_USERS,
      configure(configuration) {
        const { redis, ...rest } = configuration.modules.mod_global_distrib;
        nonsense.redisPort = redis.port;
        redis.port = nonsense.port;
        Object.assign(configuration.modules.mod_global_distrib, rest, { bounce: false });
      },
    });
    const { port } = cluster.datacenter("dc1").clientAddress("none");
    const login = (localpart: string) =>
      RawClient.login({ port, domain: cluster.globalHost, localpart, password: "secret" });
    // Two clients: a stanza of the asker may wait for Redis, and all that the asker sends waits behind it.
    return new RespTarget({
      cluster,
      nonsense,
      asker: await login("bob"),
      canary: await login("carol"),
      company: await Company.join(cluster, "some"),
    });
  }

  seeds(): readonly Uint8Array[] {
    return readSeeds("resp");
  }

  async run(input: Uint8Array): Promise<void> {
    const said = this.#nonsense.sayNext(input);
    // Somebody unknown, so that Redis is asked.
    await this.#watch.during(() =>
      this.#asker.send(
        `<message to='nobody${this.#runs}@example.com' type='chat' id='m'><body>x</body></message>`,
      )
    );
    await said;
    this.#runs++;
  }

  /** Lets Redis talk sense, and waits until the node says that it is ready. */
  async check(): Promise<void> {
    await this.#watch.check();
    this.#nonsense.beSensible();
    const datacenter = this.#cluster.datacenter("dc1");
    await this.#cluster.until(async () => {
      const response = await fetch(datacenter.adminUrl("/ready"));
      await response.body?.cancel();
      return response.ok;
    }, { what: "the node is ready again", withinMs: 60_000 });
    await this.#watch.check();
    await this.#watch.during(() => this.#company.check());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#company[Symbol.asyncDispose]();
    await this.#asker[Symbol.asyncDispose]();
    await this.#canary[Symbol.asyncDispose]();
    await this.#cluster[Symbol.asyncDispose]();
    await this.#nonsense.close();
  }
}

/** Stands before a Redis and says something else, now and then. */
class NonsenseProxy {
  redisPort = 0;
  #next: Uint8Array | undefined;
  #said = Promise.withResolvers<void>();
  readonly #listening: Listening;

  private constructor(listening: Listening) {
    this.#listening = listening;
  }

  static async start(): Promise<NonsenseProxy> {
    const server = createServer();
    const proxy = new NonsenseProxy(await listenOn(server));
    server.on("connection", (client) => proxy.connected(client));
    return proxy;
  }

  get port(): number {
    return this.#listening.port;
  }

  /**
   * Replaces what Redis says next; resolves when it was said, or when nobody has asked for a while: the
   * node waits before it connects again.
   */
  async sayNext(bytes: Uint8Array): Promise<void> {
    this.#next = bytes;
    this.#said = Promise.withResolvers<void>();
    const giveUp = new AbortController();
    await Promise.race([
      this.#said.promise,
      delay(SAY_WITHIN_MS, undefined, { signal: giveUp.signal }).catch(() => {}), // said in time
    ]);
    giveUp.abort();
  }

  beSensible(): void {
    this.#next = undefined;
  }

  connected(client: Socket): void {
    const redis = createConnection(this.redisPort, "127.0.0.1");
    client.on("data", (chunk) => redis.write(chunk));
    redis.on("data", (chunk) => {
      const said = this.#next ?? chunk;
      this.#next = undefined;
      client.write(said);
      this.#said.resolve();
    });
    // Either side may go at any moment: then both are gone.
    for (const [one, other] of [[client, redis], [redis, client]] as const) {
      one.on("error", () => other.destroy());
      one.on("close", () => other.destroy());
    }
  }

  close(): Promise<void> {
    return this.#listening.close();
  }
}
