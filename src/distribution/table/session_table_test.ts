import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { ManualClock } from "../../base/mod.ts";
import { REDIS_LAYOUT } from "./redis/layout.ts";
import { MemoryRedis } from "./redis/testing/memory_redis.ts";
import { advance, bareJid, domainJid, fullJid, TestTable } from "./testing/table.ts";

const HERE = "dc1.example.com";
const THERE = "dc2.example.com";
const PHONE = fullJid("bob", "phone");
const BOB = bareJid("bob");
const LAYOUT = "causeway:layout";
const LAPTOP = fullJid("bob", "laptop");

Deno.test("SessionTable.start() publishes node, host, lease and datacenter id", async () => {
  const { table, redis } = await TestTable.started();
  const dump = redis.dump();
  assert.deepEqual(dump["hosts"], [HERE]);
  assert.deepEqual(dump[`${HERE}#{nodes}`], [`node1@${HERE}`]);
  assert.match(String(dump[`causeway:node:${HERE}#node1@${HERE}`]), /^\[161,\d+\]$/);
  assert.equal(dump[`causeway:dc:${HERE}`], table.datacenterId);
  await table.close();
});

Deno.test("SessionTable.start() writes the number of the layout, and later beats mend it", async () => {
  const { table, redis, clock } = await TestTable.started();
  const written = () => redis.dump()["causeway:layout"];
  assert.equal(written(), String(REDIS_LAYOUT));
  const garbage = [["DEL", LAYOUT], ["SET", LAYOUT, "0"], ["SADD", LAYOUT, "nonsense"]] as const;
  for (const spoil of garbage) {
    redis.apply(["DEL", LAYOUT]);
    redis.apply(spoil);
    await advance(clock, 16_000, 500);
    assert.equal(written(), String(REDIS_LAYOUT), spoil.join(" "));
  }
  await table.close();
});

Deno.test("SessionTable.start() refuses a layout that is newer than it knows, and writes nothing", async () => {
  const clock = new ManualClock();
  const redis = new MemoryRedis(clock);
  const newer = String(REDIS_LAYOUT + 1);
  redis.apply(["SET", LAYOUT, newer]);
  const { table } = new TestTable({}, clock, redis);
  await assert.rejects(table.start(), {
    code: "table/redis-layout",
    message: "Cannot use the session table in Redis at 127.0.0.1:8102: " +
      `its layout is ${newer}, and this version knows ${REDIS_LAYOUT} at most`,
  });
  assert.deepEqual(redis.dump(), { [LAYOUT]: newer });
  assert.equal(clock.pendingTimers, 0);
});

Deno.test("SessionTable stays degraded when a Redis that comes late has a newer layout", async () => {
  const test = new TestTable();
  test.commands.setUp(false);
  await test.table.start();
  test.redis.apply(["SET", LAYOUT, "999"]);
  test.commands.setUp(true);
  await advance(test.clock, 5_000, 500);
  assert.match(test.table.snapshot().reason!, /its layout is 999/);
  assert.deepEqual(test.redis.dump(), { [LAYOUT]: "999" });
  await test.table.close();
});

Deno.test("A running SessionTable goes on when another node raises the layout, and does not lower it", async () => {
  const test = await TestTable.started();
  test.redis.apply(["SET", LAYOUT, "999"]);
  await advance(test.clock, 61_000, 500);
  assert.equal(test.table.status, "up");
  assert.equal(test.redis.dump()[LAYOUT], "999");
  await test.table.close();
});

Deno.test("SessionTable.sessionOpened() writes full and bare JID, which expire", async () => {
  const test = await TestTable.started();
  await test.table.sessionOpened(PHONE);
  assert.equal(test.redis.dump()["bob@example.com/phone"], HERE);
  assert.equal(test.redis.dump()["bob@example.com"], HERE);
  for (const key of Object.keys(test.redis.dump())) {
    const ttlMs = test.redis.ttlMs(key)!;
    assert.ok(ttlMs >= 119_000, key);
    assert.ok(ttlMs <= (/^causeway:(dc:|layout$)/.test(key) ? 7 * 86_400_000 : 120_000), key);
  }
  await test.table.close();
});

Deno.test("SessionTable.sessionClosed() removes that session's keys and gives the bare JID back", async () => {
  const test = await TestTable.started();
  await test.table.sessionOpened(PHONE);
  await test.table.sessionOpened(LAPTOP);
  await test.table.sessionClosed(LAPTOP);
  assert.equal(test.redis.dump()["bob@example.com/laptop"], undefined);
  assert.equal(test.redis.dump()["bob@example.com/phone"], HERE);
  assert.equal(test.redis.dump()["bob@example.com"], HERE);
  await test.table.sessionClosed(PHONE);
  const left = Object.keys(test.redis.dump()).filter((key) => key.includes("bob"));
  assert.deepEqual(left, []);
  await test.table.close();
});

Deno.test("SessionTable writes several claims of one account with a command each, when renewing too", async () => {
  const test = await TestTable.started();
  const written: (readonly string[])[] = [];
  test.redis.onWrite = (command) => void (command[0] === "HSET" && written.push(command));
  await Promise.all([test.table.sessionOpened(PHONE), test.table.sessionOpened(LAPTOP)]);
  const key = "causeway:claims:bob@example.com";
  const fields = () => written.splice(0).map(([, name, field]) => [name, field]);
  const expected = [[key, "a1-1"], [key, "a1-2"]];
  assert.deepEqual(fields(), expected);
  await advance(test.clock, 60_000);
  const renewed = fields().slice(-2);
  assert.deepEqual(renewed, expected);
  assert.equal(test.table.status, "up");
  await test.table.close();
});

Deno.test("SessionTable.sessionClosed() gives the bare JID to the newest login of another datacenter", async () => {
  const clock = new ManualClock();
  const redis = new MemoryRedis(clock);
  const [one, two, three] = ["dc1", "dc2", "dc3"].map((dc, i) =>
    new TestTable({ host: `${dc}.example.com`, incarnation: i + 1 }, clock, redis)
  ) as [TestTable, TestTable, TestTable];
  for (const each of [one, two, three]) await each.table.start();
  await two.table.sessionOpened(fullJid("bob", "old"));
  clock.advance(5);
  await three.table.sessionOpened(fullJid("bob", "middle"));
  clock.advance(5);
  await one.table.sessionOpened(PHONE);
  assert.equal(redis.dump()["bob@example.com"], HERE);
  await one.table.sessionClosed(PHONE);
  assert.equal(redis.dump()["bob@example.com"], "dc3.example.com");
  assert.equal(redis.dump()["bob@example.com/phone"], undefined);
  assert.equal(redis.dump()["bob@example.com/old"], THERE);
  for (const each of [one, two, three]) await each.table.close();
});

Deno.test("SessionTable.sessionClosed() of an old login leaves a full JID alone that moved away", async () => {
  const clock = new ManualClock();
  const redis = new MemoryRedis(clock);
  const one = new TestTable({ incarnation: 1 }, clock, redis);
  const two = new TestTable({ host: THERE, incarnation: 2 }, clock, redis);
  await one.table.start();
  await two.table.start();
  await one.table.sessionOpened(PHONE);
  clock.advance(5);
  await two.table.sessionOpened(PHONE);
  await one.table.sessionClosed(PHONE);
  assert.equal(redis.dump()["bob@example.com/phone"], THERE);
  assert.equal(redis.dump()["bob@example.com"], THERE);
  await one.table.close();
  await two.table.close();
});

Deno.test("SessionTable.hasMoved() is true of the older of two logins alone, whatever the key says", async () => {
  const clock = new ManualClock();
  const redis = new MemoryRedis(clock);
  const one = new TestTable({ incarnation: 1 }, clock, redis);
  const two = new TestTable({ host: THERE, incarnation: 2 }, clock, redis);
  await one.table.start();
  await two.table.start();
  await one.table.sessionOpened(PHONE);
  assert.equal(await one.table.hasMoved(PHONE), false);
  clock.advance(5);
  await two.table.sessionOpened(PHONE);
  assert.equal(await one.table.hasMoved(PHONE), true);
  assert.equal(await two.table.hasMoved(PHONE), false);
  redis.apply(["SET", PHONE.text, HERE]); // an older write of dc1's that came late
  assert.equal(await two.table.hasMoved(PHONE), false);
  redis.apply(["SET", PHONE.text, THERE]);
  await one.table.sessionClosed(PHONE);
  assert.equal(await one.table.hasMoved(PHONE), true);
  one.commands.setUp(false);
  assert.equal(await one.table.hasMoved(PHONE), false, "without Redis nobody can tell");
  one.commands.setUp(true);
  await one.table.close();
  await two.table.close();
});

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

Deno.test("SessionTable renews its entries within refreshAfterMs and loses none while time passes", async () => {
  const redis = { refreshAfterMs: 1_000, expireAfterMs: 3_000 };
  const test = await TestTable.started({ redis });
  for (let i = 0; i < 50; i++) await test.table.sessionOpened(fullJid(`user${i}`, "r"));
  let least = Infinity;
  for (let round = 0; round < 50; round++) {
    await advance(test.clock, 200);
    for (let i = 0; i < 50; i++) {
      least = Math.min(least, test.redis.ttlMs(`user${i}@example.com/r`) ?? 0);
    }
  }
  assert.ok(least >= 1_900, `an entry had only ${least} ms`);
  await test.table.close();
});

Deno.test("SessionTable spreads the renewal of sessions that came in a burst", async () => {
  const test = await TestTable.started({ redis: { readBackMs: [] } });
  await Promise.all(
    Array.from({ length: 6_000 }, (_, i) => test.table.sessionOpened(fullJid(`user${i}`, "r"))),
  );
  const perSecond: number[] = [];
  for (let second = 0; second < 60; second++) {
    const before = test.redis.commands;
    await advance(test.clock, 1_000, 100);
    perSecond.push(test.redis.commands - before);
  }
  // 100 accounts a second at 7 commands, and a heartbeat now and then
  assert.ok(Math.min(...perSecond) >= 600, `least ${Math.min(...perSecond)}`);
  assert.ok(Math.max(...perSecond) <= 800, `most ${Math.max(...perSecond)}`);
  await test.table.close();
});

Deno.test("SessionTable writes entries that vanished again, within one refresh", async () => {
  const test = await TestTable.started();
  await test.table.sessionOpened(PHONE);
  test.redis.flush();
  await advance(test.clock, 60_200, 100);
  assert.equal(test.redis.dump()["bob@example.com"], HERE);
  assert.equal(test.redis.dump()["bob@example.com/phone"], HERE);
  assert.deepEqual(test.redis.dump()["hosts"], [HERE]);
  await test.table.close();
});

Deno.test("SessionTable leaves another datacenter's entry alone when it renews", async () => {
  const clock = new ManualClock();
  const redis = new MemoryRedis(clock);
  const one = new TestTable({ incarnation: 1 }, clock, redis);
  const two = new TestTable({ host: THERE, incarnation: 2 }, clock, redis);
  await one.table.start();
  await two.table.start();
  await one.table.sessionOpened(PHONE);
  clock.advance(5);
  await two.table.sessionOpened(PHONE);
  for (let i = 0; i < 13; i++) {
    await advance(clock, 10_000, 100);
    assert.equal(redis.dump()["bob@example.com/phone"], THERE);
    assert.equal(redis.dump()["bob@example.com"], THERE);
  }
  await one.table.close();
  await two.table.close();
});

Deno.test("SessionTable takes over from a datacenter whose lease is gone", async () => {
  const clock = new ManualClock();
  const redis = new MemoryRedis(clock);
  const one = new TestTable({ incarnation: 1 }, clock, redis);
  const two = new TestTable({ host: THERE, incarnation: 2 }, clock, redis);
  await one.table.start();
  await two.table.start();
  await one.table.sessionOpened(PHONE);
  clock.advance(5);
  await two.table.sessionOpened(LAPTOP);
  two.commands.setUp(false); // as if it were killed: no entry is withdrawn
  await advance(clock, 181_000, 100);
  assert.equal(redis.dump()["bob@example.com"], HERE);
  assert.deepEqual(await one.table.hosts(), [HERE]);
  await one.table.close();
  await two.table.close();
});

Deno.test("SessionTable counts read-backs that are still to come after a login", async () => {
  const test = await TestTable.started({ redis: { readBackMs: [1_000, 5_000] } });
  const waiting = () => test.metrics.value("causeway_table_read_backs_waiting");
  assert.equal(waiting(), 0);
  await test.table.sessionOpened(PHONE);
  assert.equal(waiting(), 2);
  await advance(test.clock, 1_500, 100);
  assert.equal(waiting(), 1);
  await advance(test.clock, 5_000, 100);
  assert.equal(waiting(), 0);
  await test.table.close();
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

Deno.test("SessionTable answers from old entries and its own sessions while Redis is away", async () => {
  const test = await TestTable.started();
  test.redis.apply(["SET", "eve@example.com", THERE]);
  await test.table.locate(bareJid("eve"));
  await test.table.locate(bareJid("nobody"));
  await test.table.sessionOpened(PHONE);
  test.commands.setUp(false);
  assert.equal(test.table.status, "degraded");
  await advance(test.clock, 20_000, 1_000);
  assert.equal(test.table.cached(bareJid("eve")), THERE);
  assert.equal(await test.table.locate(bareJid("eve")), THERE);
  assert.equal(await test.table.locate(fullJid("eve", "any")), THERE);
  assert.equal(await test.table.locate(bareJid("nobody")), undefined);
  assert.equal(await test.table.locate(bareJid("bob")), HERE);
  assert.equal(await test.table.locate(PHONE), HERE);
  assert.equal(await test.table.locate(bareJid("stranger")), undefined);
  assert.equal(test.logger.named("redis.down").length, 1);
  await test.table.close();
});

Deno.test("SessionTable.locate() finds its own sessions while Redis has lost their keys", async () => {
  const test = await TestTable.started();
  await test.table.sessionOpened(PHONE);
  test.redis.flush();
  for (const jid of [PHONE, BOB]) {
    test.table.forget(jid);
    assert.equal(await test.table.locate(jid), HERE, jid.text);
    assert.equal(test.table.cached(jid), HERE, jid.text);
  }
  assert.equal(await test.table.locate(LAPTOP), undefined, "it may be elsewhere");
  await test.table.sessionClosed(PHONE);
  assert.equal(await test.table.locate(PHONE), undefined);
  await test.table.close();
});

Deno.test("SessionTable writes all its own entries at once when Redis is back", async () => {
  const test = await TestTable.started();
  for (let i = 0; i < 600; i++) await test.table.sessionOpened(fullJid(`user${i}`, "r"));
  test.commands.setUp(false);
  test.redis.flush();
  await test.table.sessionOpened(PHONE); // ends without Redis, and does not hang
  await test.table.sessionClosed(fullJid("user0", "r"));
  test.commands.setUp(true);
  for (let i = 0; i < 20; i++) await setImmediate();
  assert.equal(test.table.status, "up");
  const users = Object.entries(test.redis.dump()).filter(([key]) => key.endsWith("/r"));
  assert.equal(users.length, 599);
  assert.equal(test.redis.dump()["bob@example.com/phone"], HERE);
  assert.equal(test.logger.named("redis.up").length, 2);
  await test.table.close();
});

Deno.test("SessionTable withdraws who logged out while Redis was away for longer than entries live", async () => {
  for (const replication of ["builtin", "external"] as const) {
    const test = await TestTable.started({ replication });
    const { table, clock, commands } = test;
    await table.sessionOpened(PHONE);
    commands.setUp(false);
    await table.sessionClosed(PHONE);
    await advance(clock, 600_000, 1_000);
    commands.setUp(true);
    await advance(clock, 10_000, 1_000);
    assert.equal(table.status, "up");
    assert.deepEqual(await table.trySessionsOf([BOB.text]), new Map());
    await table.close();
  }
});

Deno.test("SessionTable.locate() answers from memory while Redis is slow, and waits for unknown addresses", async () => {
  const test = await TestTable.started({ cache: { jidLifetimeMs: 1_000 } });
  const { table, clock, commands } = test;
  await table.sessionOpened(PHONE);
  test.redis.run(["SET", "carol@example.com", THERE]);
  assert.equal(await table.locate(bareJid("carol")), THERE);
  await advance(clock, 1_500);
  commands.latencyMs = 2_000;
  const answers: string[] = [];
  const ask = (what: string, jid: Parameters<typeof table.locate>[0]): Promise<void> =>
    table.locate(jid).then((host) => void answers.push(`${what} ${host}`));
  const asked = [
    ask("own", PHONE),
    ask("known", bareJid("carol")),
    ask("unknown", bareJid("dan")),
  ];
  await advance(clock, 200);
  assert.deepEqual(answers, []);
  await advance(clock, 100);
  assert.deepEqual(answers, [`own ${HERE}`, `known ${THERE}`]);
  await advance(clock, 4_000);
  await Promise.all(asked);
  assert.equal(answers[2], "unknown undefined");
  commands.latencyMs = 0;
  await advance(clock, 8_000);
  await table.close();
});

Deno.test("SessionTable is degraded while Redis refuses writes, and heals by itself", async () => {
  for (const error of ["OOM command not allowed", "READONLY You can't write", "LOADING Redis"]) {
    const test = await TestTable.started();
    test.redis.writeError = error;
    await test.table.sessionOpened(PHONE);
    assert.equal(test.table.status, "degraded");
    assert.equal(test.table.snapshot().reason, error);
    assert.equal(test.metrics.value("causeway_redis_up"), 0);
    test.redis.writeError = undefined;
    await advance(test.clock, 1_200, 100);
    assert.equal(test.table.status, "up");
    assert.equal(test.redis.dump()["bob@example.com"], HERE);
    await test.table.close();
  }
});

Deno.test("SessionTable.domainAdded() publishes the domain, unless it is hidden", async () => {
  const test = await TestTable.started();
  await test.table.domainAdded("echo.example.com", { hidden: false });
  await test.table.domainAdded("secret.example.com", { hidden: true });
  const dump = test.redis.dump();
  assert.equal(dump["echo.example.com"], HERE);
  assert.equal(dump["secret.example.com"], HERE);
  assert.deepEqual(dump[`${HERE}#node1@${HERE}#{domains}`], [
    "echo.example.com",
    "secret.example.com",
  ]);
  assert.deepEqual(dump[`${HERE}#node1@${HERE}#{public_domains}`], ["echo.example.com"]);
  assert.deepEqual(await test.table.publicDomains(), [{ domain: "echo.example.com", host: HERE }]);
  assert.deepEqual((await test.table.allDomains()).map(({ domain }) => domain), [
    "echo.example.com",
    "secret.example.com",
  ]);
  await test.table.domainRemoved("echo.example.com");
  assert.equal(test.redis.dump()["echo.example.com"], undefined);
  assert.deepEqual(await test.table.publicDomains(), []);
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

Deno.test("SessionTable removes entries that a former process of its name left in its sets", async () => {
  const clock = new ManualClock();
  const redis = new MemoryRedis(clock);
  redis.apply(["SADD", `${HERE}#node1@${HERE}#{endpoints}`, "127.0.0.1#1"]);
  redis.apply(["SADD", `${HERE}#node1@${HERE}#{domains}`, "old.example.com"]);
  const test = new TestTable({}, clock, redis);
  await test.table.start();
  await test.table.publishEndpoints([{ host: "127.0.0.1", port: 2 }]);
  assert.deepEqual(redis.dump()[`${HERE}#node1@${HERE}#{endpoints}`], ["127.0.0.1#2"]);
  assert.equal(redis.dump()[`${HERE}#node1@${HERE}#{domains}`], undefined);
  await test.table.close();
});

Deno.test("SessionTable reports to the older of two processes with one name that it is superseded", async () => {
  const clock = new ManualClock();
  const redis = new MemoryRedis(clock);
  const told: string[] = [];
  const older = new TestTable(
    { incarnation: 9, onSuperseded: () => told.push("older") },
    clock,
    redis,
  );
  await older.table.start();
  await advance(clock, 1_000);
  const newer = new TestTable(
    { incarnation: 3, onSuperseded: () => told.push("newer") },
    clock,
    redis,
  );
  await newer.table.start();
  await newer.table.publishEndpoints([{ host: "127.0.0.1", port: 7 }]);
  await advance(clock, 40_000, 100);
  assert.deepEqual(told, ["older"]);
  await older.table.close();
  assert.match(String(redis.dump()[`causeway:node:${HERE}#node1@${HERE}`]), /^\[3,/);
  assert.deepEqual(await newer.table.endpoints(HERE), [{ host: "127.0.0.1", port: 7 }]);
  await newer.table.close();
});

Deno.test("SessionTable keeps its datacenter's id when Redis loses it, and a node that started since takes it", async () => {
  const clock = new ManualClock();
  const redis = new MemoryRedis(clock);
  const renamed: string[] = [];
  const onRenamed = (node: string) => () => void renamed.push(node);
  const [one, two, late] = [0xa1, 0xa2, 0xa3].map((incarnation, i) =>
    new TestTable(
      { node: `node${i + 1}@${HERE}`, incarnation, onRenamed: onRenamed(`node${i + 1}`) },
      clock,
      redis,
    )
  ) as [TestTable, TestTable, TestTable];
  assert.equal(one.table.datacenterId, "", "the id is not known yet");
  await one.table.start();
  await two.table.start();
  const id = one.table.datacenterId;
  assert.match(id, /^[0-9a-f]{32}$/);
  assert.equal(two.table.datacenterId, id);
  redis.flush();
  await late.table.start();
  assert.notEqual(late.table.datacenterId, id, "the late node found no id");
  one.table.reviewIdentity();
  await advance(clock, 100, 10);
  assert.equal(redis.dump()[`causeway:dc:${HERE}`], id);
  for (const { table } of [late, two]) table.reviewIdentity();
  await advance(clock, 100, 10);
  assert.deepEqual([one, two, late].map(({ table }) => table.datacenterId), [id, id, id]);
  assert.deepEqual(renamed, ["node3"]);
  await advance(clock, 60_000, 1_000);
  assert.deepEqual([one, two, late].map(({ table }) => table.datacenterId), [id, id, id]);
  assert.deepEqual(renamed, ["node3"]);
  for (const { table } of [one, two, late]) await table.close();
});

Deno.test("SessionTable.close() withdraws all its own entries", async () => {
  const test = await TestTable.started();
  await test.table.publishEndpoints([{ host: "127.0.0.1", port: 2 }]);
  await test.table.domainAdded("echo.example.com", { hidden: false });
  for (let i = 0; i < 300; i++) await test.table.sessionOpened(fullJid(`user${i}`, "r"));
  await test.table.close();
  assert.deepEqual(Object.keys(test.redis.dump()).sort(), [`causeway:dc:${HERE}`, LAYOUT]);
  assert.equal(test.clock.pendingTimers, 0);
});

Deno.test("SessionTable ignores and counts garbage in Redis, and overwrites garbage in place of its own entries", async () => {
  const test = await TestTable.started();
  const garbage = () => test.metrics.value("causeway_table_garbage_total");
  test.redis.apply(["SET", "eve@example.com", "not a host"]);
  test.redis.apply(["SADD", "list@example.com", "x"]);
  test.redis.apply(["SET", "causeway:claims:bob@example.com", "a string"]);
  test.redis.apply(["SADD", "bob@example.com", "a set"]);
  for (
    const [id, value] of [
      ["b1-7", "{"],
      ["zz", "[1]"],
      ["a2-1", '[9e15,"dc2.example.com","n","r",1]'],
      ["a3-1", '["5","dc2.example.com","n","r",1]'],
      ["a4-1", '[5,"two words","n","r",1]'],
    ] as const
  ) test.redis.apply(["HSET", "causeway:claims:eve@example.com", id, value]);
  assert.equal(await test.table.locate(bareJid("eve")), undefined);
  assert.equal(await test.table.locate(bareJid("list")), undefined);
  assert.equal(garbage(), 2);
  await test.table.sessionOpened(fullJid("eve", "r"));
  assert.equal(test.redis.dump()["eve@example.com"], HERE);
  assert.ok(garbage() >= 7, `${garbage()}`);
  await test.table.sessionOpened(PHONE);
  assert.equal(test.redis.dump()["bob@example.com"], HERE);
  test.redis.apply(["SADD", "hosts", "two words", "dc2.example.com"]);
  test.redis.apply(["SADD", "dc2.example.com#{nodes}", "n"]);
  test.redis.apply(["SET", "causeway:node:dc2.example.com#n", "[1]"]);
  assert.deepEqual(await test.table.hosts(), [HERE]);
  assert.equal(test.table.status, "up");
  await test.table.close();
});

Deno.test("SessionTable: a node whose clock is five minutes ahead wins against no later login", async () => {
  const redisClock = new ManualClock();
  const redis = new MemoryRedis(redisClock);
  const fast = new TestTable({ incarnation: 1 }, new ManualClock(1_700_000_300_000), redis);
  const right = new TestTable({ host: THERE, incarnation: 2 }, new ManualClock(), redis);
  await fast.table.start();
  await right.table.start();
  await fast.table.sessionOpened(PHONE);
  await right.table.sessionOpened(LAPTOP);
  assert.equal(redis.dump()["bob@example.com"], THERE);
  // its far epoch has not moved the other's clock: a third login there has an ordinary epoch
  await right.table.sessionOpened(fullJid("eve", "r"));
  const eve = JSON.parse((redis.dump()["causeway:claims:eve@example.com"] as string[])[0]!);
  assert.ok(eve[0] < 1_700_000_001_000_000, `${eve[0]}`);
  await fast.table.close();
  await right.table.close();
});

/** Makes a live node of dc2 with a claim that is newer than ours and is never renewed. */
function plantNewerClaim({ clock, redis }: TestTable): void {
  const farUs = clock.wallUs() + 1_000_000;
  redis.apply(["SET", `causeway:node:${THERE}#n`, "[5,1]"]);
  const claim = JSON.stringify([farUs, THERE, "n", "desk", 1]);
  redis.apply(["HSET", "causeway:claims:bob@example.com", "5-1", claim]);
}

Deno.test("SessionTable ignores a claim that was not renewed for expireAfterMs", async () => {
  const test = await TestTable.started();
  await test.table.sessionOpened(PHONE);
  // a living node, and a claim whose removal was lost on the way here
  plantNewerClaim(test);
  test.redis.apply(["SET", "bob@example.com", THERE, "EX", "600"]);
  await advance(test.clock, 115_000, 100);
  assert.equal(test.redis.dump()["bob@example.com"], THERE);
  await advance(test.clock, 130_000, 100);
  assert.equal(test.redis.dump()["bob@example.com"], HERE);
  await test.table.close();
});

Deno.test("SessionTable does not count the time while Redis is away against others' claims", async () => {
  const test = await TestTable.started();
  await test.table.sessionOpened(PHONE);
  plantNewerClaim(test);
  test.redis.apply(["SET", "bob@example.com", THERE]);
  await advance(test.clock, 61_000, 100); // read once
  test.commands.setUp(false);
  test.redis.apply(["EXPIRE", "causeway:claims:bob@example.com", "9000"]);
  test.redis.apply(["EXPIRE", `causeway:node:${THERE}#n`, "9000"]);
  await advance(test.clock, 300_000, 1_000);
  test.commands.setUp(true);
  await advance(test.clock, 70_000, 100);
  assert.equal(test.redis.dump()["bob@example.com"], THERE);
  await test.table.close();
});

Deno.test("SessionTable leaves a key that names a host without a claim at the first check, but not for ever", async () => {
  const test = await TestTable.started();
  await test.table.sessionOpened(PHONE);
  await advance(test.clock, 6_000, 100); // read back twice
  test.redis.apply(["SET", "bob@example.com", THERE]);
  let passes = 0;
  test.redis.onWrite = ([verb, key]) => {
    if (verb === "HSET" && key === "causeway:claims:bob@example.com") passes++;
  };
  for (let i = 0; i < 700 && passes === 0; i++) await advance(test.clock, 100);
  assert.equal(passes, 1);
  assert.equal(test.redis.dump()["bob@example.com"], THERE);
  await advance(test.clock, 1_200, 100);
  assert.equal(passes, 2);
  assert.equal(test.redis.dump()["bob@example.com"], HERE);
  await test.table.close();
});

Deno.test("SessionTable tells in which datacenters an account is, while it is in several", async () => {
  for (const replication of ["external", "builtin"] as const) {
    const clock = new ManualClock();
    const redis = new MemoryRedis(clock);
    const ours = new TestTable({ replication, incarnation: 1 }, clock, redis);
    const theirs = new TestTable(
      { replication, incarnation: 2, host: THERE, node: `node1@${THERE}` },
      clock,
      redis,
    );
    await ours.table.start();
    await theirs.table.start();
    const hosts = async () => {
      await ours.table.locate(BOB);
      return ours.table.spread(BOB).map(({ host, resourcepart }) => `${host} ${resourcepart}`);
    };
    await ours.table.sessionOpened(PHONE);
    assert.deepEqual(await hosts(), []);
    await theirs.table.sessionOpened(fullJid("bob", "desk"));
    ours.table.forget(BOB);
    assert.deepEqual((await hosts()).toSorted(), [`${HERE} phone`, `${THERE} desk`]);
    ours.table.forget(fullJid("bob", "gone"));
    assert.equal(ours.table.spread(BOB).length, 2, "for a stanza whose lookup has just ended");
    assert.ok(ours.table.isUnplaced(BOB), "and a later one asks again");
    await theirs.table.sessionClosed(fullJid("bob", "desk"));
    ours.table.forget(BOB);
    assert.deepEqual(await hosts(), []);
    await theirs.table.close();
    await ours.table.close();
  }
});
