import { RiakDouble } from "../../../../harness/databases/riak/mod.ts";
import type { RiakDoubleOptions, RiakSite } from "../../../../harness/databases/riak/mod.ts";
import type { PoolBounds } from "../../sql/connection_pool.ts";
import { PATIENT } from "../../testing/patient_bounds.ts";
import type { NamedPool } from "../../server_kind.ts";
import type { RiakPoolOptions } from "../../server_pools.ts";
import { RiakBackend } from "../riak_backend.ts";
import { RiakStores } from "../riak_stores.ts";

/** Returns the pool of servers on loopback. */
export function riakPool(
  ports: readonly number[],
  bounds: PoolBounds = PATIENT,
): NamedPool<RiakPoolOptions> {
  return {
    name: "riak.default",
    options: {
      backend: "riak",
      servers: ports.map((port) => ({ host: "127.0.0.1", port })),
      username: undefined,
      password: { reveal: () => "" },
      bounds,
    },
  };
}

/** Prepares a site of a double as the commands do, without starting a program for each bucket type. */
export async function prepareSite(site: RiakSite, port: number): Promise<void> {
  const backend = new RiakBackend(riakPool([port]));
  await backend.prepare();
  for (const command of await backend.leftover()) {
    const [, ...args] = command.split(" ").map((word) => word.replaceAll("'", ""));
    const { code, output } = site.types.admin(args);
    if (code !== 0) throw new Error(output);
  }
}

/** A double that is prepared, and nodes that use it. */
export class RiakFixture implements AsyncDisposable {
  readonly double: RiakDouble;
  readonly #stores: RiakStores[] = [];
  #next = 0;

  private constructor(double: RiakDouble) {
    this.double = double;
  }

  static async open(options: RiakDoubleOptions = {}): Promise<RiakFixture> {
    const double = await RiakDouble.start(options);
    const fixture = new RiakFixture(double);
    const nodes = options.nodes ?? 1;
    for (const [i, site] of double.sites.entries()) {
      await prepareSite(site, double.nodes[i * nodes]!.port);
    }
    return fixture;
  }

  /** Returns the stores as one more node has them. */
  stores(ports: readonly number[] = [this.double.port], bounds: PoolBounds = PATIENT): RiakStores {
    const stores = new RiakStores(riakPool(ports, bounds));
    this.#stores.push(stores);
    return stores;
  }

  /** Returns the stores of one of two nodes, in turn: their changes meet in the database alone. */
  either(): RiakStores {
    while (this.#stores.length < 2) this.stores();
    return this.#stores[this.#next++ % 2]!;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#stores.map((stores) => stores.close()));
    await this.double[Symbol.asyncDispose]();
  }
}
