import assert from "node:assert/strict";
import { ManualClock } from "../../../base/mod.ts";
import { MemoryRedis, MemoryRedisCommands } from "./testing/memory_redis.ts";
import { advance, fullJid, TestTable } from "../testing/table.ts";
import { ClearedKeys } from "./cleared_keys.ts";
import { RedisErrorReply } from "./redis_commands.ts";

function fixture() {
  const clock = new ManualClock();
  const memory = new MemoryRedis(clock);
  const commands = new MemoryRedisCommands(memory, clock);
  const cleared: string[] = [];
  const redis = new ClearedKeys(commands, (key) => cleared.push(key));
  redis.connect({ connected() {}, disconnected() {} });
  return { clock, memory, redis, cleared };
}

Deno.test("ClearedKeys deletes a key of a wrong type, and runs the refused commands again", async () => {
  const { memory, redis, cleared } = fixture();
  for (const key of ["hosts", "hash", "read", "{u}2"]) memory.apply(["SET", key, "nonsense"]);
  memory.apply(["SADD", "fine", "a"]);
  memory.apply(["SADD", "{u}1", "a"]);
  memory.apply(["SADD", "{u}3", "b"]);
  const replies = await redis.run([
    ["SADD", "hosts", "dc1"],
    ["SADD", "fine", "b"],
    ["EXPIRE", "hosts", "60"],
    ["HSET", "hash", "f", "v"],
    ["SMEMBERS", "read"],
    ["SADD", "hosts", "dc2"],
    ["SUNION", "{u}1", "{u}2", "{u}3"],
  ]);
  assert.ok(replies.every((reply) => !(reply instanceof RedisErrorReply)), JSON.stringify(replies));
  assert.deepEqual([replies[4], replies[6]], [[], ["a", "b"]]);
  assert.deepEqual(cleared, ["hosts", "hash", "read", "{u}2"]);
  assert.deepEqual(memory.dump(), {
    fine: ["a", "b"],
    hash: ["v"],
    hosts: ["dc1", "dc2"],
    "{u}1": ["a"],
    "{u}3": ["b"],
  });
});

Deno.test("ClearedKeys leaves a GET of a wrong type, and every other error, as they are", async () => {
  const { memory, redis, cleared } = fixture();
  memory.apply(["SADD", "alice@example.com", "nonsense"]);
  const [reply] = await redis.run([["GET", "alice@example.com"]]);
  assert.equal((reply as RedisErrorReply).kind, "WRONGTYPE");
  memory.writeError = "READONLY You can't write against a read only replica.";
  memory.apply(["SET", "hosts", "nonsense"]);
  const [refused] = await redis.run([["SADD", "hosts", "dc1"]]);
  assert.equal((refused as RedisErrorReply).kind, "READONLY");
  assert.deepEqual(cleared, []);
});

for (const replication of ["external", "builtin"] as const) {
  Deno.test(`SessionTable corrects its ${replication} keys when all of them have a wrong type`, async () => {
    const test = await TestTable.started({ replication });
    await test.table.publishEndpoints([{ host: "127.0.0.1", port: 5555 }]);
    await test.table.publishClusterAddress({ host: "127.0.0.1", port: 5556 });
    await test.table.domainAdded("echo.example.com", { hidden: false });
    await test.table.sessionOpened(fullJid("alice", "r"));
    const before = Object.keys(test.redis.dump());
    const isString = (key: string) => test.redis.apply(["GET", key]) instanceof RedisErrorReply;
    const typed = before.filter(isString);
    assert.ok(typed.length >= 7, typed.join());
    for (const key of typed) {
      test.redis.apply(["DEL", key]);
      test.redis.apply(["SET", key, "nonsense"]);
    }
    await advance(test.clock, 61_000, 500);
    assert.deepEqual(Object.keys(test.redis.dump()).filter(isString), typed);
    assert.equal(test.table.status, "up");
    assert.deepEqual(test.logger.named("redis.down"), []);
    const cleared = test.logger.named("redis.garbage").map(({ fields }) => fields["key"]);
    assert.deepEqual(cleared.toSorted(), typed.toSorted());
    assert.equal(test.metrics.value("causeway_table_garbage_total"), typed.length);
    assert.deepEqual(await test.table.publicDomains(), [
      { domain: "echo.example.com", host: "dc1.example.com" },
    ]);
    await test.table.close();
  });
}

Deno.test("SessionTable replaces garbage in the place of its datacenter's id by the common id", async () => {
  const one = await TestTable.started({ node: "node1@dc1.example.com" });
  const two = new TestTable(
    { node: "node2@dc1.example.com", incarnation: 0xa2 },
    one.clock,
    one.redis,
  );
  await two.table.start();
  const { datacenterId } = one.table;
  assert.equal(two.table.datacenterId, datacenterId);
  const key = "causeway:dc:dc1.example.com";
  for (const garbage of [["SET", key, "nonsense!"], ["SADD", key, "nonsense"]] as const) {
    one.redis.apply(["DEL", key]);
    one.redis.apply(garbage);
    await advance(one.clock, 16_000, 500);
    assert.equal(one.redis.apply(["GET", key]), datacenterId);
    assert.deepEqual([one.table.datacenterId, two.table.datacenterId], [
      datacenterId,
      datacenterId,
    ]);
  }
  await Promise.all([one.table.close(), two.table.close()]);
});
