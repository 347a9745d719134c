import assert from "node:assert/strict";
import { ManualClock } from "../../../base/mod.ts";
import { MemoryRedis } from "../redis/testing/memory_redis.ts";
import { bareJid, fullJid, TestTable } from "../testing/table.ts";

const ALICE = fullJid("alice", "phone");

/** Two datacenters on one Redis, which stands for a replicated one. */
async function fixture() {
  const clock = new ManualClock();
  const redis = new MemoryRedis(clock);
  const dc1 = new TestTable({ incarnation: 0xa1 }, clock, redis);
  const dc2 = new TestTable({ host: "dc2.example.com", incarnation: 0xa2 }, clock, redis);
  await dc1.table.start();
  await dc2.table.start();
  return {
    clock,
    redis,
    dc1,
    dc2,
    close: () => Promise.all([dc1.table.close(), dc2.table.close()]),
  };
}

Deno.test("SessionTable.inspect() tells what cache and Redis say of an address, and how old it is", async () => {
  const { clock, dc1, dc2, close } = await fixture();
  await dc2.table.sessionOpened(ALICE);
  clock.advance(1500);
  assert.deepEqual((await dc1.table.inspect(ALICE)).cache, [], "looking caches nothing");
  assert.equal(await dc1.table.locate(ALICE), "dc2.example.com");
  clock.advance(1000);
  const { cache, redis } = await dc1.table.inspect(ALICE);
  assert.deepEqual(cache.map(({ address, host, ageMs }) => [address, host, ageMs]), [
    ["alice@example.com/phone", "dc2.example.com", 1000],
    ["alice@example.com", "dc2.example.com", 1000],
  ]);
  assert.ok(redis.isReachable);
  assert.deepEqual(redis.keys, [
    { key: "alice@example.com/phone", host: "dc2.example.com", expiresInMs: 120_000 },
    { key: "alice@example.com", host: "dc2.example.com", expiresInMs: 120_000 },
  ]);
  const [claim] = redis.claims;
  assert.deepEqual(
    [claim!.host, claim!.node, claim!.resourcepart, claim!.isLive],
    ["dc2.example.com", "node1@dc2.example.com", "phone", true],
  );
  assert.ok(claim!.ageMs >= 2000, `${claim!.ageMs} ms`);
  const nobody = await dc1.table.inspect(bareJid("nobody"));
  assert.ok(nobody.redis.isReachable);
  assert.deepEqual(nobody.redis.keys, [
    { key: "nobody@example.com", host: null, expiresInMs: undefined },
  ]);
  await close();
});

Deno.test("SessionTable.inspect() takes a value that is no host for none, as lookups do", async () => {
  const { redis, dc1, close } = await fixture();
  redis.apply(["SET", "bob@example.com", '{"not":"a host"}']);
  const inspected = (await dc1.table.inspect(bareJid("bob"))).redis;
  assert.ok(inspected.isReachable);
  assert.deepEqual(inspected.keys.map(({ host }) => host), [null]);
  assert.equal(await dc1.table.locate(bareJid("bob")), undefined);
  await close();
});

Deno.test("SessionTable.inspect() still shows the cache while Redis is away, and the reason", async () => {
  const { dc1, dc2, close } = await fixture();
  await dc2.table.sessionOpened(ALICE);
  await dc1.table.locate(ALICE);
  dc1.commands.setUp(false);
  const { cache, redis } = await dc1.table.inspect(ALICE);
  assert.equal(cache.length, 2);
  assert.ok(!redis.isReachable);
  assert.match(redis.reason, /cut/);
  assert.equal(dc1.table.forgetAll(), false, "only memory answers");
  assert.equal(await dc1.table.refreshOwn(), undefined);
  dc1.commands.setUp(true);
  await close();
});

Deno.test("SessionTable.refreshOwn() writes entries anew that somebody has deleted", async () => {
  const { redis, dc1, close } = await fixture();
  await dc1.table.sessionOpened(ALICE);
  const before = dc1.publicKeys();
  redis.flush();
  assert.equal(await dc1.table.refreshOwn(), 1);
  assert.deepEqual(dc1.publicKeys()["alice@example.com/phone"], before["alice@example.com/phone"]);
  assert.equal(dc1.table.forgetAll(), true);
  assert.equal(dc1.table.snapshot().cached, 0);
  await close();
});
