import type { Answer } from "../redis/ask.ts";
import { askEach, listIn, textIn } from "../redis/ask.ts";
import { claimsKey } from "../redis/keys.ts";
import type { RedisCommand, RedisCommands } from "../redis/redis_commands.ts";
import { RedisErrorReply } from "../redis/redis_commands.ts";

/** Keys and claims that one pipeline reads, each once. */
export class LocationReads {
  readonly #commands: RedisCommand[] = [];
  readonly #keys = new Map<string, number>();
  readonly #hashes = new Map<string, number>();
  #answers: readonly (Answer | RedisErrorReply)[] = [];

  /** Adds a read of `key`; returns the place of its value. */
  addKey(key: string): number {
    return this.#add("GET", key, this.#keys);
  }

  /** Adds a read of the claims of `name`, a bare JID or a domain; returns their place. */
  addClaims(name: string): number {
    return this.#add("HGETALL", claimsKey(name), this.#hashes);
  }

  /** Reads all that was added. Rejects as `RedisCommands.run`. */
  async run(redis: RedisCommands): Promise<void> {
    this.#answers = await askEach(redis, this.#commands);
  }

  /** The value of a key, or the error in its place. */
  value(at: number): string | null | RedisErrorReply {
    const answer = this.#answers[at];
    return answer instanceof RedisErrorReply ? answer : textIn(answer);
  }

  /** Claims as id, text, id, text, or the error in their place. */
  claims(at: number): readonly string[] | RedisErrorReply {
    const answer = this.#answers[at];
    return answer instanceof RedisErrorReply ? answer : listIn(answer);
  }

  #add(verb: "GET" | "HGETALL", key: string, places: Map<string, number>): number {
    const known = places.get(key);
    if (known !== undefined) return known;
    places.set(key, this.#commands.length);
    return this.#commands.push([verb, key]) - 1;
  }
}
