import { orderingPart } from "./keys.ts";
import type { RedisOptions } from "../options.ts";
import { downError } from "./redis_batch.ts";
import type { RedisCommand, RedisCommands, RedisEvents, RedisReply } from "./redis_commands.ts";
import type { ConnectionDeps } from "./redis_connection.ts";
import { connectionDeps, RedisConnection } from "./redis_connection.ts";

/** One Redis, or the master that Sentinels name, through ioredis: a pool of connections. */
export class IoredisCommands implements RedisCommands {
  readonly #deps: ConnectionDeps;
  #pool: readonly RedisConnection[] = [];
  #events: RedisEvents | undefined;
  #isUp = false;
  /** True when a connection leads to another server than it did when Redis was up last. */
  #isOther = false;

  /** @throws CausewayError `table/redis-tls` for a file that cannot be used */
  constructor(options: Required<RedisOptions>) {
    this.#deps = connectionDeps(options);
  }

  get refusal(): string | undefined {
    return this.#pool.find(({ refusal }) => refusal !== undefined)?.refusal;
  }

  connect(events: RedisEvents): void {
    this.#events = events;
    const { poolSize } = this.#deps.options;
    this.#pool = Array.from({ length: poolSize }, () =>
      new RedisConnection(this.#deps, {
        ready: (isOther) => this.#found(isOther),
        lost: (reason) => this.#lost(reason),
        left: (reason) => {
          for (const connection of this.#pool) connection.leave(reason);
        },
      }));
  }

  async run(commands: readonly RedisCommand[]): Promise<readonly RedisReply[]> {
    if (commands.length === 0) return [];
    if (!this.#isUp) throw downError("there is no connection");
    if (this.#pool.length === 1) return await this.#pool[0]!.run(commands);
    return await this.#runOnPool(commands);
  }

  async close(): Promise<void> {
    this.#events = undefined;
    this.#isUp = false;
    const pool = this.#pool;
    this.#pool = [];
    await Promise.all(pool.map((connection) => connection.close()));
  }

  /** Splits by key, so that the commands on one key stay on one connection and in order. */
  async #runOnPool(commands: readonly RedisCommand[]): Promise<readonly RedisReply[]> {
    const parts = this.#pool.map((): { at: number[]; commands: RedisCommand[] } => ({
      at: [],
      commands: [],
    }));
    commands.forEach((command, at) => {
      const part = parts[hash(orderingPart(command[1])) % parts.length]!;
      part.at.push(at);
      part.commands.push(command);
    });
    const replies: RedisReply[] = new Array(commands.length).fill(null);
    await Promise.all(parts.map(async (part, i) => {
      if (part.commands.length === 0) return;
      const answers = await this.#pool[i]!.run(part.commands);
      answers.forEach((answer, k) => replies[part.at[k]!] = answer);
    }));
    return replies;
  }

  #found(isOther: boolean): void {
    this.#isOther ||= isOther;
    if (this.#isUp || this.#pool.some(({ isReady }) => !isReady)) return;
    this.#isUp = true;
    const mayHaveLost = this.#isOther;
    this.#isOther = false;
    this.#events?.connected(mayHaveLost);
  }

  #lost(reason: string): void {
    this.#isUp = false;
    this.#events?.disconnected(reason);
  }
}

/** FNV-1a over UTF-16 units: spreads keys over connections. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}
