import { type RedisAddress, RedisClient } from "./redis_client.ts";
import { RespError, type RespValue } from "./resp.ts";

const MAX_REDIRECTS = 5;

/** A client of a Redis Cluster: asks any node, and goes where it is sent. */
export class ClusterClient extends RedisClient {
  readonly #living: () => readonly RedisAddress[];
  readonly #clients = new Map<number, RedisClient>();

  /** @param living the nodes that run */
  constructor(living: () => readonly RedisAddress[]) {
    super(() => living()[0]!);
    this.#living = living;
  }

  override async call(...command: readonly (string | number)[]): Promise<RespValue> {
    let address = this.#living()[0];
    for (let tries = 0; address !== undefined && tries < MAX_REDIRECTS; tries++) {
      try {
        return await this.#at(address).call(...command);
      } catch (thrown) {
        const message = thrown instanceof RespError ? thrown.message : "";
        const moved = /^MOVED \d+ .*:(\d+)$/.exec(message);
        if (moved === null) throw thrown;
        address = this.#living().find(({ port }) => port === Number(moved[1]));
      }
    }
    throw new Error(`Cannot ask the cluster: no living node answers ${command[0]}`);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    for (const client of this.#clients.values()) await client[Symbol.asyncDispose]();
  }

  #at(address: RedisAddress): RedisClient {
    const known = this.#clients.get(address.port);
    if (known !== undefined) return known;
    const client = new RedisClient(address);
    this.#clients.set(address.port, client);
    return client;
  }
}
