import assert from "node:assert/strict";
import { assertTaken } from "./testing/dynomite_forms.ts";
import { MemoryRedis, MemoryRedisCommands } from "./testing/memory_redis.ts";
import { ManualClock } from "../../../base/mod.ts";
import type { RedisCommand, RedisVerb } from "./redis_commands.ts";

/** Every form of every command that the session table may send; a missing verb does not compile. */
const FORMS: Readonly<Record<RedisVerb, readonly RedisCommand[]>> = {
  GET: [["GET", "k"]],
  SET: [
    ["SET", "k", "v"],
    ["SET", "k", "v", "EX", "10"],
    ["SET", "k", "v", "EX", "10", "NX"],
  ],
  DEL: [["DEL", "k"]],
  EXPIRE: [["EXPIRE", "k", "10"]],
  TTL: [["TTL", "k"]],
  HGETALL: [["HGETALL", "k"]],
  HSET: [["HSET", "k", "f", "v"]],
  HDEL: [["HDEL", "k", "f"], ["HDEL", "k", "f", "g"]],
  SADD: [["SADD", "k", "a"], ["SADD", "k", "a", "b"]],
  SREM: [["SREM", "k", "a"], ["SREM", "k", "a", "b"]],
  SCARD: [["SCARD", "k"]],
  SMEMBERS: [["SMEMBERS", "k"]],
  SUNION: [["SUNION", "a#{t}"], ["SUNION", "a#{t}", "b#{t}"]],
};

Deno.test("RedisCommand has only forms that Dynomite takes", () => {
  for (const forms of Object.values(FORMS)) for (const form of forms) assertTaken(form);
});

Deno.test("assertTaken() throws on commands that Dynomite refuses, or answers wrongly", () => {
  const untaken: readonly (readonly string[])[] = [
    ["HSET", "k", "f", "v", "g", "w"],
    ["EXPIRE", "k", "10", "NX"],
    ["UNLINK", "k"],
    ["AUTH", "password"],
    ["GET", ""],
    ["DEL", "a", "b"],
    ["SUNION", "a#{t}", "b#{u}"],
    ["SUNION", "a", "b"],
  ];
  for (const command of untaken) assert.throws(() => assertTaken(command), command.join(" "));
});

Deno.test("MemoryRedisCommands.run() takes only forms that Dynomite takes", async () => {
  const clock = new ManualClock();
  const commands = new MemoryRedisCommands(new MemoryRedis(clock), clock);
  const twoFields = ["HSET", "k", "f", "v", "g", "w"] as unknown as RedisCommand; // does not compile
  await assert.rejects(commands.run([twoFields]), /HSET has 4 arguments/);
});
