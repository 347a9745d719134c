import type { RedisCommand, RedisCommands, RedisEvents, RedisReply } from "./redis_commands.ts";
import { RedisErrorReply } from "./redis_commands.ts";

/** Verbs that only work on what the table makes of a key; GET is left to who asks, SET replaces. */
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
 * Redis without keys of a wrong type. The table's sets and hashes are nobody else's: a list in the
 * place of one would be refused for ever, and its expiry renewed. Whoever meets such a key deletes
 * it, and what was refused is asked again.
 */
export class ClearedKeys implements RedisCommands {
  readonly #redis: RedisCommands;
  readonly #cleared: (key: string) => void;

  /** @param cleared told of each key that was deleted */
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
    // all that was meant for them, in its order: an expiry belongs to what stands before it
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

  /** A union does not say which of its keys is no set. */
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
