import { Cluster } from "../../cluster/mod.ts";
import { RawClient, RawSocket } from "../../clients/mod.ts";
import type { LiveFuzzTarget } from "../fuzz_target.ts";
import { Company, FUZZ_USERS } from "./company.ts";
import { NodeWatch } from "./node_watch.ts";

/** A node whose event loop does not come round by then hangs. */
const END_WITHIN_MS = 5000;
/** An input that was cut short leaves an exchange open, which is no finding. */
const LEAVE_WITHIN_MS = 200;

/** Options of a target: one way into a node. */
export interface EdgeTargetOptions {
  readonly name: string;
  readonly tokens: readonly Uint8Array[];
  readonly seeds: readonly Uint8Array[];
  /** Opens a connection on which the node reads `input` next. */
  open(cluster: Cluster, input: Uint8Array): Promise<RawSocket>;
  /** Ends the exchange in order, if the input still allows that; the node then sends `answer`. */
  readonly leave?: { readonly bytes: Uint8Array; readonly answer: string };
  /** Bytes that end whatever the input has left open. The node must end the connection after them. */
  readonly ending: Uint8Array;
}

/**
 * A port of a node for strangers: it must end each connection within seconds of being told to, log no
 * bug of its own, not grow, and go on serving others.
 */
export class EdgeTarget implements LiveFuzzTarget {
  readonly inputsPerCheck = 50;
  readonly #options: EdgeTargetOptions;
  readonly #cluster: Cluster;
  readonly #canary: RawClient;
  readonly #watch: NodeWatch;
  readonly #company: Company;

  private constructor(
    options: EdgeTargetOptions,
    cluster: Cluster,
    { canary, company }: { readonly canary: RawClient; readonly company: Company },
  ) {
    this.#options = options;
    this.#cluster = cluster;
    this.#company = company;
    this.#canary = canary;
    this.#watch = new NodeWatch(cluster.datacenter("dc1"), canary);
  }

  static async start(options: EdgeTargetOptions): Promise<EdgeTarget> {
    const cluster = await Cluster.start({ datacenters: 1, users: FUZZ_USERS });
    const { port } = cluster.datacenter("dc1").clientAddress("none");
    const canary = await RawClient.login({
      port,
      domain: cluster.globalHost,
      localpart: "carol",
      password: "secret",
    });
    return new EdgeTarget(options, cluster, { canary, company: await Company.join(cluster) });
  }

  get name(): string {
    return this.#options.name;
  }

  get tokens(): readonly Uint8Array[] {
    return this.#options.tokens;
  }

  seeds(): readonly Uint8Array[] {
    return this.#options.seeds;
  }

  async run(input: Uint8Array): Promise<void> {
    const { leave, ending } = this.#options;
    const socket = await this.#options.open(this.#cluster, input);
    try {
      await socket.send(input);
      if (leave !== undefined) {
        await socket.send(leave.bytes);
        await socket.readUntil(leave.answer, LEAVE_WITHIN_MS).catch(() => {}); // or not in order
      }
      await socket.send(ending);
      await socket.closeWrite();
      await socket.readToEnd(END_WITHIN_MS);
    } catch (thrown) {
      // The node may hang up before it was sent everything; that is an end too.
      if (!isEndOfConnection(thrown)) throw thrown;
    } finally {
      await socket.close();
    }
  }

  async check(): Promise<void> {
    await this.#watch.check();
    await this.#watch.during(() => this.#company.check());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#company[Symbol.asyncDispose]();
    await this.#canary[Symbol.asyncDispose]();
    await this.#cluster[Symbol.asyncDispose]();
  }
}

function isEndOfConnection(thrown: unknown): boolean {
  return thrown instanceof Deno.errors.ConnectionReset ||
    thrown instanceof Deno.errors.BrokenPipe ||
    thrown instanceof Deno.errors.NotConnected ||
    thrown instanceof Deno.errors.UnexpectedEof;
}
