import type { RedisClient, RespValue } from "../redis/mod.ts";

/** One key of a Redis as it was found. */
export interface RedisEntry {
  readonly type: string;
  /** A string, the sorted members of a set, or the fields of a hash. */
  readonly value: RespValue | Readonly<Record<string, string>>;
  /** Milliseconds until it expires; −1: never. */
  readonly ttlMs: number;
}

/** Reads everything that a Redis holds, by key. Keys that disappear meanwhile are left out. */
export async function readRedis(redis: RedisClient): Promise<ReadonlyMap<string, RedisEntry>> {
  const keys = await redis.call("KEYS", "*") as string[]; // KEYS returns a list of keys
  const entries = await Promise.all(
    keys.toSorted().map(async (key) => [key, await readEntry(redis, key)] as const),
  );
  return new Map(
    entries.filter((entry): entry is readonly [string, RedisEntry] => entry[1] !== undefined),
  );
}

const GONE = -2;

async function readEntry(redis: RedisClient, key: string): Promise<RedisEntry | undefined> {
  const type = await redis.call("TYPE", key);
  const value = await readValue(redis, key, type);
  const ttlMs = await redis.call("PTTL", key);
  if (typeof type !== "string" || typeof ttlMs !== "number" || ttlMs === GONE) return undefined;
  return { type, value, ttlMs };
}

async function readValue(
  redis: RedisClient,
  key: string,
  type: RespValue,
): Promise<RedisEntry["value"]> {
  switch (type) {
    case "string":
      return await redis.call("GET", key);
    case "set":
      return (await redis.call("SMEMBERS", key) as string[]).toSorted();
    case "hash": {
      const flat = await redis.call("HGETALL", key) as string[];
      const fields: Record<string, string> = {};
      for (let i = 0; i + 1 < flat.length; i += 2) fields[flat[i]!] = flat[i + 1]!;
      return fields;
    }
    default:
      return null;
  }
}
