import assert from "node:assert/strict";
import { ManualClock } from "../../../base/mod.ts";
import { MemoryRedis, MemoryRedisCommands } from "./testing/memory_redis.ts";
import { ask, askEach, RedisRefusal } from "./ask.ts";
import { RedisErrorReply } from "./redis_commands.ts";

function setup() {
  const clock = new ManualClock();
  const memory = new MemoryRedis(clock);
  return { memory, redis: new MemoryRedisCommands(memory, clock) };
}

Deno.test("ask() returns the answers in order, each of the type of its verb", async () => {
  const { memory, redis } = setup();
  memory.run(["HSET", "hash", "field", "value"]);
  const [ok, text, added, fields, nothing] = await ask(redis, [
    ["SET", "key", "text"],
    ["GET", "key"],
    ["SADD", "set", "one", "two"],
    ["HGETALL", "hash"],
    ["GET", "none"],
  ]);
  assert.deepEqual([ok, text, added, fields, nothing], ["OK", "text", 2, ["field", "value"], null]);
  // compiles only if the answers have the types of their verbs
  assert.equal(`${text?.length} ${added + 1} ${fields.length}`, "4 3 2");
});

Deno.test("ask() counts a key of a wrong type as empty, and reports each command that met it", async () => {
  const { memory, redis } = setup();
  memory.run(["SADD", "set", "member"]);
  memory.run(["SET", "text", "value"]);
  let found = 0;
  const answers = await ask(redis, [
    ["GET", "set"],
    ["HGETALL", "text"],
    ["SMEMBERS", "text"],
    ["SCARD", "text"],
    ["SREM", "text", "member"],
    ["GET", "text"],
  ], () => found++);
  assert.deepEqual(answers, ["", [], [], 0, 0, "value"]);
  assert.equal(found, 5);
});

Deno.test("ask() throws what Redis refuses, and askEach() leaves it in its place", async () => {
  const { memory, redis } = setup();
  memory.run(["SET", "key", "value"]);
  memory.run(["SADD", "set", "member"]);
  memory.writeError = "OOM command not allowed";
  const commands = [["GET", "key"], ["SET", "key", "other"], ["GET", "set"]] as const;
  await assert.rejects(ask(redis, commands), (thrown) => {
    assert.ok(thrown instanceof RedisRefusal);
    assert.equal(thrown.kind, "OOM");
    assert.equal(thrown.message, "OOM command not allowed");
    return true;
  });
  assert.deepEqual(await askEach(redis, commands), [
    "value",
    new RedisErrorReply("OOM command not allowed"),
    "",
  ]);
});

Deno.test("ask() sends nothing for no commands", async () => {
  const { memory, redis } = setup();
  redis.setUp(false);
  assert.deepEqual(await ask(redis, []), []);
  assert.equal(memory.commands, 0);
});
