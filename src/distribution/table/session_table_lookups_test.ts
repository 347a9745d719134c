import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MemoryRedis } from "./redis/testing/memory_redis.ts";
import { advance, bareJid, domainJid, fullJid, TestTable } from "./testing/table.ts";
import { BOB, HERE, PHONE, THERE } from "./testing/people.ts";

Deno.test("SessionTable.locate() finds a newer login here whatever an older write to a key says", async () => {
  const clock = new ManualClock();
  const redis = new MemoryRedis(clock);
  const one = new TestTable({ incarnation: 1 }, clock, redis);
  const beside = new TestTable({ incarnation: 2, node: `node2@${HERE}` }, clock, redis);
  const two = new TestTable({ host: THERE, incarnation: 3 }, clock, redis);
  for (const each of [one, beside, two]) await each.table.start();
  const setKeys = (host: string) => {
    for (const { text } of [PHONE, BOB]) redis.apply(["SET", text, host]);
  };
  const hostsAt = async ({ table }: TestTable) => {
    const hosts: (string | undefined)[] = [];
    for (const jid of [PHONE, BOB]) {
      table.forget(jid);
      hosts.push(await table.locate(jid), table.cached(jid) ?? undefined);
    }
    return hosts;
  };
  const all = (host: string) => [host, host, host, host];
  await one.table.sessionOpened(PHONE);
  setKeys(THERE);
  assert.deepEqual(await hostsAt(one), all(THERE), "a login whose claim is still on its way");
  setKeys(HERE);
  clock.advance(5);
  await two.table.sessionOpened(PHONE);
  assert.deepEqual(await hostsAt(one), all(THERE), "a newer login there");
  assert.deepEqual(await hostsAt(two), all(THERE));
  clock.advance(5);
  await one.table.sessionClosed(PHONE);
  await one.table.sessionOpened(PHONE);
  setKeys(THERE); // an older write of dc2's that comes late
  assert.deepEqual(await hostsAt(one), all(HERE), "a newer login here");
  assert.deepEqual(await hostsAt(beside), all(HERE), "a newer login at another node here");
  assert.deepEqual(await hostsAt(two), all(THERE), "a key is right until its owner has renewed it");
  for (const each of [one, beside, two]) await each.table.close();
});

Deno.test("SessionTable.locate() looks up the full JID, then the bare one, and remembers the result", async () => {
  const test = await TestTable.started();
  test.redis.apply(["SET", "eve@example.com", THERE]);
  test.redis.apply(["SET", "eve@example.com/desk", "dc3.example.com"]);
  const desk = fullJid("eve", "desk");
  const other = fullJid("eve", "other");
  assert.equal(test.table.cached(desk), undefined);
  assert.equal(await test.table.locate(desk), "dc3.example.com");
  assert.equal(await test.table.locate(other), THERE);
  assert.equal(test.table.cached(desk), "dc3.example.com");
  assert.equal(test.table.cached(other), THERE);
  assert.equal(test.table.cached(bareJid("eve")), THERE);
  await test.table.close();
});

Deno.test("SessionTable.sessionOpened() leaves no value in the cache that was read before its write", async () => {
  const test = await TestTable.started({ cache: { jidLifetimeMs: 60_000 } });
  const { table, clock, commands } = test;
  for (const key of [PHONE.text, PHONE.bare.text]) test.redis.apply(["SET", key, THERE]);
  commands.latencyMs = 20;
  const opened = table.sessionOpened(PHONE);
  assert.equal(table.cached(PHONE), HERE);
  table.forget(PHONE); // as routing does while the session cannot be reached yet
  const asked = table.locate(PHONE);
  await advance(clock, 60);
  assert.equal(await asked, THERE);
  await advance(clock, 200);
  await opened;
  for (const jid of [PHONE, PHONE.bare]) {
    assert.notEqual(table.cached(jid), THERE);
    const located = table.locate(jid);
    await advance(clock, 60);
    assert.equal(await located, HERE);
  }
  commands.latencyMs = 0;
  await table.close();
});

Deno.test("SessionTable.sessionOpened() lets no value into the cache later that was read before its write", async () => {
  const test = await TestTable.started({ cache: { jidLifetimeMs: 60_000 } });
  const { table, clock, commands } = test;
  for (const key of [PHONE.text, PHONE.bare.text]) test.redis.apply(["SET", key, THERE]);
  commands.latencyMs = 20;
  const opened = table.sessionOpened(PHONE); // reads at 20 ms, writes at 60 ms
  table.forget(PHONE);
  await advance(clock, 45, 1);
  commands.latencyMs = 10;
  const asked = table.locate(PHONE); // reads at 55 ms…
  await advance(clock, 5, 1);
  commands.latencyMs = 100; // …and gets the reply at 155 ms
  await advance(clock, 8, 1);
  commands.latencyMs = 10;
  await advance(clock, 20, 1);
  await opened;
  await advance(clock, 100, 1);
  assert.equal(await asked, THERE);
  assert.notEqual(table.cached(PHONE), THERE);
  commands.latencyMs = 0;
  assert.equal(await table.locate(PHONE), HERE);
  await table.close();
});

Deno.test("SessionTable.locate() asks Redis once for many concurrent lookups", async () => {
  const test = await TestTable.started();
  test.redis.apply(["SET", "eve@example.com", THERE]);
  const before = test.redis.commands;
  const answers = await Promise.all(
    Array.from({ length: 100 }, () => test.table.locate(fullJid("eve", "x"))),
  );
  assert.deepEqual(new Set(answers), new Set([THERE]));
  assert.equal(test.redis.commands - before, 3);
  assert.equal(test.metrics.value("mod_global_distrib_mapping_cache_misses_total"), 1);
  assert.equal(test.metrics.value("mod_global_distrib_mapping_fetches_total"), 1);
  await test.table.locate(fullJid("eve", "x"));
  assert.equal(test.metrics.value("mod_global_distrib_mapping_cache_misses_total"), 1);
  assert.equal(test.metrics.value("mod_global_distrib_mapping_fetches_total"), 2);
  const [asked, ...cached] = test.metrics.observed.get(
    "mod_global_distrib_mapping_fetch_time_seconds",
  )!;
  assert.ok(asked! >= 0);
  assert.deepEqual(cached, [0], "every fetch is timed, cached or not");
  await test.table.close();
});

Deno.test("SessionTable.cached() keeps JIDs and misses for jidLifetimeMs and domains for domainLifetimeMs", async () => {
  const test = await TestTable.started();
  test.redis.apply(["SET", "eve@example.com", THERE]);
  test.redis.apply(["SET", "echo.example.com", THERE]);
  const nobody = bareJid("nobody");
  for (
    const jid of [bareJid("eve"), nobody, domainJid("echo.example.com"), domainJid("no.example")]
  ) {
    await test.table.locate(jid);
  }
  await advance(test.clock, 4_999, 4_999);
  assert.equal(test.table.cached(bareJid("eve")), THERE);
  assert.equal(test.table.cached(nobody), null);
  assert.equal(test.table.cached(domainJid("no.example")), null);
  await advance(test.clock, 1);
  assert.equal(test.table.cached(bareJid("eve")), undefined);
  assert.equal(test.table.cached(nobody), undefined);
  assert.equal(test.table.cached(domainJid("no.example")), undefined);
  assert.equal(test.table.cached(domainJid("echo.example.com")), THERE);
  await advance(test.clock, 595_000, 5_000);
  assert.equal(test.table.cached(domainJid("echo.example.com")), undefined);
  await test.table.close();
});

Deno.test("SessionTable.cached() remembers no misses when cacheMissed is false", async () => {
  const test = await TestTable.started({ cache: { cacheMissed: false } });
  assert.equal(await test.table.locate(bareJid("nobody")), undefined);
  assert.equal(test.table.cached(bareJid("nobody")), undefined);
  await test.table.close();
});

Deno.test("SessionTable keeps maxJids in its cache and not one more", async () => {
  const test = await TestTable.started({ cache: { maxJids: 3 } });
  for (let i = 0; i < 4; i++) {
    test.redis.apply(["SET", `user${i}@example.com`, THERE]);
    await test.table.locate(bareJid(`user${i}`));
  }
  assert.equal(test.table.snapshot().cached, 3);
  assert.equal(test.table.cached(bareJid("user0")), undefined);
  assert.equal(test.table.cached(bareJid("user1")), THERE);
  await test.table.close();
});

Deno.test("SessionTable.learn() fills the cache only if cache and table have no entry", async () => {
  const test = await TestTable.started();
  test.redis.apply(["SET", "eve@example.com/desk", "dc3.example.com"]);
  const before = JSON.stringify(test.redis.dump());
  test.table.learn(fullJid("eve", "desk"), THERE);
  test.table.learn(fullJid("new", "desk"), THERE);
  // a lookup during another joins it, and gets the learned host
  assert.equal(await test.table.locate(fullJid("new", "desk")), THERE);
  assert.equal(test.table.cached(fullJid("new", "desk")), THERE);
  assert.equal(test.table.cached(fullJid("eve", "desk")), "dc3.example.com");
  test.table.learn(fullJid("eve", "desk"), THERE);
  assert.equal(test.table.cached(fullJid("eve", "desk")), "dc3.example.com");
  assert.equal(await test.table.locate(bareJid("nobody")), undefined);
  test.table.learn(bareJid("nobody"), THERE);
  assert.equal(test.table.cached(bareJid("nobody")), THERE);
  assert.equal(JSON.stringify(test.redis.dump()), before);
  await test.table.close();
});

for (const replication of ["external", "builtin"] as const) {
  Deno.test(`SessionTable.learn() tells where a session is that the table does not have yet, and not where its account is, replication ${replication}`, async () => {
    const test = await TestTable.started({ replication });
    const desk = fullJid("eve", "desk");
    await test.table.sessionOpened(fullJid("eve", "phone"));
    test.table.learn(desk, THERE);
    assert.equal(await test.table.locate(desk), THERE);
    assert.equal(test.table.cached(desk), THERE);
    assert.equal(await test.table.locate(bareJid("eve")), "dc1.example.com");
    await test.table.close();
  });
}

Deno.test("SessionTable.forget() makes the next lookup ask Redis", async () => {
  const test = await TestTable.started();
  test.redis.apply(["SET", "eve@example.com", THERE]);
  await test.table.locate(fullJid("eve", "x"));
  test.redis.apply(["SET", "eve@example.com", "dc3.example.com"]);
  test.table.forget(fullJid("eve", "x"));
  assert.equal(test.table.cached(fullJid("eve", "x")), undefined);
  assert.equal(await test.table.locate(fullJid("eve", "x")), "dc3.example.com");
  await test.table.close();
});

Deno.test("SessionTable.expire() makes the next lookup ask Redis, but memory answers while Redis is away or slow", async () => {
  const test = await TestTable.started();
  const eve = fullJid("eve", "x");
  test.redis.apply(["SET", "eve@example.com", THERE]);
  await test.table.locate(eve);
  test.redis.apply(["SET", "eve@example.com", "dc3.example.com"]);
  test.table.expire(eve);
  assert.equal(test.table.cached(eve), undefined);
  assert.equal(test.table.cached(eve.bare), undefined);
  assert.equal(test.table.lastKnown(eve), THERE);
  assert.equal(test.table.lastKnown(domainJid("nobody.example.com")), undefined);
  assert.equal(await test.table.locate(eve), "dc3.example.com");
  test.table.expire(eve);
  test.commands.latencyMs = 2_000;
  const slow = test.table.locate(eve);
  await advance(test.clock, 300, 50);
  assert.equal(await slow, "dc3.example.com");
  test.commands.latencyMs = 0;
  await advance(test.clock, 8_000);
  test.table.expire(eve);
  test.commands.setUp(false);
  assert.equal(test.table.cached(eve), "dc3.example.com");
  test.table.expire(domainJid("nobody.example.com")); // it has no entry
  await test.table.close();
});

Deno.test("SessionTable.locate() prefers the component of its own datacenter", async () => {
  const clock = new ManualClock();
  const redis = new MemoryRedis(clock);
  const one = new TestTable({ incarnation: 1 }, clock, redis);
  const sibling = new TestTable({ incarnation: 2, node: "node2" }, clock, redis);
  const two = new TestTable({ host: THERE, incarnation: 3 }, clock, redis);
  const three = new TestTable({ host: "dc3.example.com", incarnation: 4 }, clock, redis);
  const all = [one, sibling, two, three];
  for (const each of all) await each.table.start();
  const echo = domainJid("echo.example.com");
  await one.table.domainAdded("echo.example.com", { hidden: false });
  clock.advance(5);
  await two.table.domainAdded("echo.example.com", { hidden: false });
  assert.equal(await one.table.locate(echo), HERE);
  assert.equal(await sibling.table.locate(echo), HERE);
  assert.equal(await two.table.locate(echo), THERE);
  assert.equal(await three.table.locate(echo), THERE);
  await two.table.domainRemoved("echo.example.com");
  three.table.forget(echo);
  assert.equal(await three.table.locate(echo), HERE);
  for (const each of all) await each.table.close();
});

Deno.test("SessionTable.endpoints() returns endpoints of nodes with a lease, and none for a host without nodes", async () => {
  const clock = new ManualClock();
  const redis = new MemoryRedis(clock);
  const one = new TestTable({ incarnation: 1 }, clock, redis);
  const two = new TestTable({ incarnation: 2, node: "node2" }, clock, redis);
  await one.table.start();
  await two.table.start();
  await one.table.publishEndpoints([{ host: "127.0.0.1", port: 5555 }]);
  await two.table.publishEndpoints([{ host: "::1", port: 5556 }, { host: "a.example", port: 1 }]);
  assert.deepEqual(await one.table.endpoints(HERE), [
    { host: "127.0.0.1", port: 5555 },
    { host: "::1", port: 5556 },
    { host: "a.example", port: 1 },
  ]);
  assert.deepEqual(await one.table.endpoints("dc9.example.com"), []);
  redis.apply(["DEL", `causeway:node:${HERE}#node2`]);
  two.commands.setUp(false);
  await advance(clock, 6_000, 500);
  assert.deepEqual(await one.table.endpoints(HERE), [{ host: "127.0.0.1", port: 5555 }]);
  await advance(clock, 20_000, 500);
  assert.deepEqual(redis.dump()[`${HERE}#{nodes}`], [`node1@${HERE}`]);
  one.commands.setUp(false);
  assert.deepEqual(await one.table.endpoints(HERE), [{ host: "127.0.0.1", port: 5555 }]);
  await one.table.close();
  await two.table.close();
});
