import assert from "node:assert/strict";
import { ManualClock } from "../../../base/mod.ts";
import { MemoryRedis, MemoryRedisCommands } from "../redis/testing/memory_redis.ts";
import { leaseKey } from "../redis/keys.ts";
import type { RedisCommands } from "../redis/redis_commands.ts";
import { RedisErrorReply } from "../redis/redis_commands.ts";
import { formatLease, NodeLeases } from "./node_leases.ts";

const HOST = "dc2.example.com";

function nodeOf(number: number) {
  return { host: HOST, node: `node${number}@${HOST}` };
}

function scene() {
  const clock = new ManualClock();
  const memory = new MemoryRedis(clock);
  const leases = new NodeLeases(new MemoryRedisCommands(memory, clock), clock, 5_000);
  return { clock, memory, leases };
}

Deno.test("NodeLeases.note() knows 10000 nodes, and begins anew with one more", () => {
  const { leases } = scene();
  for (let i = 1; i <= 10_000; i++) leases.note(nodeOf(i), i);
  assert.deepEqual([1, 10_000].map((i) => leases.incarnation(nodeOf(i))), [1, 10_000]);
  leases.note(nodeOf(10_001), 10_001);
  assert.deepEqual([1, 10_000, 10_001].map((i) => leases.incarnation(nodeOf(i))), [
    undefined,
    undefined,
    10_001,
  ]);
});

Deno.test("NodeLeases.read() knows 10000 nodes, and begins anew with one more", async () => {
  for (const [noted, isKept] of [[9_999, true], [10_000, false]] as const) {
    const { memory, leases } = scene();
    for (let i = 1; i <= noted; i++) leases.note(nodeOf(i), i);
    const { host, node } = nodeOf(20_000);
    const lease = formatLease({ incarnation: 7, startedUs: 7 });
    memory.run(["SET", leaseKey(host, node), lease]);
    await leases.read([{ host, node }]);
    assert.equal(leases.incarnation({ host, node }), 7);
    assert.equal(leases.incarnation(nodeOf(1)), isKept ? 1 : undefined);
  }
});

Deno.test("NodeLeases.read() remembers a missing lease for half a second, and a lease for its lifetime", async () => {
  const { clock, memory, leases } = scene();
  const node = nodeOf(1);
  const key = leaseKey(node.host, node.node);
  const read = async () => {
    await leases.read([node]);
    return leases.incarnation(node);
  };
  leases.note(node, undefined);
  memory.run(["SET", key, formatLease({ incarnation: 7, startedUs: 7 })]);
  clock.advance(499);
  assert.equal(await read(), undefined);
  clock.advance(1);
  assert.equal(await read(), 7);
  memory.run(["DEL", key]);
  clock.advance(4_999);
  assert.equal(await read(), 7);
  clock.advance(1);
  assert.equal(await read(), undefined);
});

Deno.test("NodeLeases.read() takes a refusal of Redis for no answer, not for a dead node", async () => {
  const node = nodeOf(1);
  const loading: RedisCommands = {
    refusal: undefined,
    connect: () => {},
    run: (asked) => Promise.resolve(asked.map(() => new RedisErrorReply("LOADING Redis"))),
    close: () => Promise.resolve(),
  };
  const leases = new NodeLeases(loading, new ManualClock(), 5_000);
  leases.note(node, 7);
  await assert.rejects(leases.read([node], true), /^Error: LOADING Redis$/);
  assert.equal(leases.incarnation(node), 7);
});
