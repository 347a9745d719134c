import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { ManualClock } from "../../base/mod.ts";
import { REDIS_LAYOUT } from "./redis/layout.ts";
import { MemoryRedis } from "./redis/testing/memory_redis.ts";
import { advance, bareJid, fullJid, TestTable } from "./testing/table.ts";
import { BOB, HERE, LAPTOP, PHONE, THERE } from "./testing/people.ts";

const LAYOUT = "causeway:layout";

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
