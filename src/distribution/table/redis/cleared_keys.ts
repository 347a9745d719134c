import type { RedisCommand, RedisCommands, RedisEvents, RedisReply } from "./redis_commands.ts";
import { RedisErrorReply } from "./redis_commands.ts";

/**
 * Verbs that need the key's type to be the table's. GET is left to its caller, and SET replaces any
 * type.
 */
const TYPED: ReadonlySet<string> = new Set([
  "HGETALL",
  "HSET",
  "HDEL",
  "SADD",
  "SREM",
  "SCARD",
  "SMEMBERS",
  "SUNION",
]);

/**
 * Redis without keys of a wrong type. Only the table uses its sets and hashes: a list in place of
 * one would make its commands fail for ever, while its expiry is renewed. A node that finds such a
 * key deletes it, and runs the failed commands again.
 */
export class ClearedKeys implements RedisCommands {
  readonly #redis: RedisCommands;
  readonly #cleared: (key: string) => void;

  /** @param cleared called with each deleted key */
  constructor(redis: RedisCommands, cleared: (key: string) => void) {
    this.#redis = redis;
    this.#cleared = cleared;
  }

  get refusal(): string | undefined {
    return this.#redis.refusal;
  }

  connect(events: RedisEvents): void {
    this.#redis.connect(events);
  }

  async run(commands: readonly RedisCommand[]): Promise<readonly RedisReply[]> {
    const replies = await this.#redis.run(commands);
    for (let i = 0; i < replies.length; i++) {
      if (isOfWrongType(commands[i]!, replies[i]!)) return await this.#again(commands, replies);
    }
    return replies;
  }

  close(): Promise<void> {
    return this.#redis.close();
  }

  async #again(
    commands: readonly RedisCommand[],
    replies: readonly RedisReply[],
  ): Promise<readonly RedisReply[]> {
    const wrong = commands.filter((command, i) => isOfWrongType(command, replies[i]!));
    const keys = new Set<string>();
    const unions = new Set<string>();
    for (const [verb, key, ...others] of wrong) {
      if (verb === "SUNION") { for (const each of [key, ...others]) unions.add(each); }
      else keys.add(key);
    }
    for (const key of await this.#wrongAmong([...unions])) keys.add(key);
    // All commands on those keys run again in order: an expiry belongs to the command before it.
    const at = commands.flatMap((command, i) =>
      keys.has(command[1]) || wrong.includes(command) ? [i] : []
    );
    const removals = [...keys].map((key): RedisCommand => ["DEL", key]);
    const answers = await this.#redis.run([...removals, ...at.map((i) => commands[i]!)]);
    removals.forEach(([, key], i) => {
      if (answers[i] === 1) this.#cleared(key);
    });
    const mended = [...replies];
    at.forEach((i, k) => mended[i] = answers[removals.length + k]!);
    return mended;
  }

  /** Finds the keys of a union that are no sets, as SUNION's error does not name them. */
  async #wrongAmong(keys: readonly string[]): Promise<readonly string[]> {
    if (keys.length === 0) return [];
    const reads = keys.map((key): RedisCommand => ["SMEMBERS", key]);
    const replies = await this.#redis.run(reads);
    return keys.filter((_, i) => isOfWrongType(reads[i]!, replies[i]!));
  }
}

function isOfWrongType([verb]: RedisCommand, reply: RedisReply): boolean {
  return reply instanceof RedisErrorReply && reply.kind === "WRONGTYPE" && TYPED.has(verb);
}
