import type { RespValue } from "./resp.ts";

/** A command as it travels: its name and its operands, binary strings. */
export type Command = readonly string[];

const CONNECTION = new Set(["PING", "ECHO", "AUTH", "HELLO", "QUIT", "CLIENT", "INFO", "SELECT"]);

const READS = new Set([
  ...["GET", "STRLEN", "EXISTS", "TYPE", "TTL", "PTTL"],
  ...["SMEMBERS", "SISMEMBER", "SMISMEMBER", "SCARD", "SUNION"],
  ...["HGET", "HMGET", "HGETALL", "HEXISTS", "HLEN", "HKEYS", "HVALS"],
  ...["ZRANGE", "ZRANGEBYSCORE", "ZSCORE", "ZCARD", "ZCOUNT", "LRANGE", "LLEN"],
]);

const WRITES = new Set([
  ...["SET", "SETNX", "SETEX", "PSETEX", "GETSET", "GETDEL", "APPEND"],
  ...["INCR", "INCRBY", "DECR", "DECRBY", "DEL", "UNLINK"],
  ...["EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT", "PERSIST"],
  ...["SADD", "SREM", "HSET", "HMSET", "HSETNX", "HDEL", "HINCRBY"],
  ...["ZADD", "ZREM", "LPUSH", "RPUSH", "LPOP", "RPOP", "LTRIM"],
]);

/** Commands that take several keys elsewhere, and one here. */
const ONE_KEY_ONLY = new Set(["DEL", "UNLINK", "EXISTS"]);

/**
 * Why a replicating proxy does not pass a command, as the error it answers; undefined when it does.
 * It takes single-key commands, and SUNION over keys that share one `{tag}`.
 */
export function refusal(command: Command): string | undefined {
  const name = command[0]!.toUpperCase();
  if (!CONNECTION.has(name) && !READS.has(name) && !WRITES.has(name)) {
    return `ERR the replicating proxy does not support ${name}`;
  }
  const keys = command.slice(1);
  if (ONE_KEY_ONLY.has(name) && keys.length > 1) {
    return `ERR the replicating proxy takes ${name} of one key only`;
  }
  if (name === "SUNION" && keys.length > 1) {
    const tags = new Set(keys.map(hashTag));
    if (tags.has(undefined) || tags.size > 1) {
      return "ERR the replicating proxy takes SUNION only of keys with one tag";
    }
  }
  return undefined;
}

/** What is between the first `{` and the next `}`; undefined when there is none, or nothing. */
export function hashTag(key: string): string | undefined {
  return /\{([^}]+)\}/.exec(key)?.[1];
}

/**
 * The command that brings another Redis to what `command` did, going by its `reply`: without the
 * condition that it depended on. Undefined when it changed nothing.
 */
export function effectOf(command: Command, reply: RespValue): Command | undefined {
  const name = command[0]!.toUpperCase();
  if (!WRITES.has(name) || reply instanceof Error) return undefined;
  switch (name) {
    case "SET":
      return effectOfSet(command, reply);
    case "SETNX":
      return reply === 1 ? ["SET", ...command.slice(1)] : undefined;
    case "HSETNX":
      return reply === 1 ? ["HSET", ...command.slice(1)] : undefined;
    case "EXPIRE":
    case "PEXPIRE":
    case "EXPIREAT":
    case "PEXPIREAT":
      return reply === 1 ? [name, ...command.slice(1, 3)] : undefined;
    case "GETDEL":
      return ["DEL", command[1]!];
    default:
      // The rest does the same wherever it arrives, even where it changed nothing here: a delete of
      // what this datacenter does not have yet may still remove it in one that does.
      return command;
  }
}

function effectOfSet(command: Command, reply: RespValue): Command | undefined {
  const words = command.slice(3).map((word) => word.toUpperCase());
  const givesOld = words.includes("GET");
  // With GET the reply is the old value, so that NX has written when there was none.
  const isWritten = !givesOld
    ? reply !== null
    : words.includes("NX")
    ? reply === null
    : words.includes("XX")
    ? reply !== null
    : true;
  if (!isWritten) return undefined;
  return command.filter((word, index) => index < 3 || !/^(NX|XX|GET)$/i.test(word));
}
