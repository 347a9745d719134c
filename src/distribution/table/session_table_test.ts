import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MemoryRedis } from "./redis/testing/memory_redis.ts";
import { advance, fullJid, TestTable } from "./testing/table.ts";
import { BOB, HERE, LAPTOP, PHONE, THERE } from "./testing/people.ts";

Deno.test("SessionTable.start() publishes node, host, lease and datacenter id", async () => {
  const { table, redis } = await TestTable.started();
  const dump = redis.dump();
  assert.deepEqual(dump["hosts"], [HERE]);
  assert.deepEqual(dump[`${HERE}#{nodes}`], [`node1@${HERE}`]);
  assert.match(String(dump[`causeway:node:${HERE}#node1@${HERE}`]), /^\[161,\d+\]$/);
  assert.equal(dump[`causeway:dc:${HERE}`], table.datacenterId);
  await table.close();
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

Deno.test("SessionTable.hasMoved() is true of a session from another node that a login elsewhere has passed over", async () => {
  const clock = new ManualClock();
  const redis = new MemoryRedis(clock);
  const one = new TestTable({ node: `node1@${HERE}`, incarnation: 1 }, clock, redis);
  const two = new TestTable({ node: `node2@${HERE}`, incarnation: 2 }, clock, redis);
  const slow = new ManualClock(); // a second behind
  const far = new TestTable({ host: THERE, incarnation: 3 }, slow, redis);
  await one.table.start();
  await two.table.start();
  await one.table.sessionOpened(PHONE);
  clock.advance(1_000);
  await far.table.start();
  const origin = { process: one.incarnation, askedMs: clock.monotonicMs() };
  clock.advance(5);
  await far.table.sessionOpened(PHONE);
  await two.table.sessionOpened(PHONE, origin);
  await one.table.sessionClosed(PHONE);
  assert.equal(await two.table.hasMoved(PHONE), true);
  assert.equal(await far.table.hasMoved(PHONE), false);
  for (const each of [one, two, far]) await each.table.close();
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

Deno.test("SessionTable.close() withdraws all its own entries", async () => {
  const test = await TestTable.started();
  await test.table.publishEndpoints([{ host: "127.0.0.1", port: 2 }]);
  await test.table.domainAdded("echo.example.com", { hidden: false });
  for (let i = 0; i < 300; i++) await test.table.sessionOpened(fullJid(`user${i}`, "r"));
  await test.table.close();
  assert.deepEqual(Object.keys(test.redis.dump()).sort(), [
    `causeway:dc:${HERE}`,
    "causeway:layout",
  ]);
  assert.equal(test.clock.pendingTimers, 0);
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
