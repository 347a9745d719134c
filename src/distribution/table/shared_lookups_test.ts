import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MemoryRedis } from "./redis/testing/memory_redis.ts";
import { bareJid, fullJid, TestTable } from "./testing/table.ts";
import { claimsKey } from "./redis/keys.ts";

const HERE = "dc1.example.com";
const THERE = "dc2.example.com";
const BOB = bareJid("bob");
/** Addresses without a session. */
const GONE = Array.from({ length: 20 }, (_, n) => fullJid("bob", `gone${n}`));

/** Counts the commands that Redis runs for `looking`. */
async function commandsOf(test: TestTable, looking: () => Promise<unknown>): Promise<number> {
  const before = test.redis.commands;
  await looking();
  return test.redis.commands - before;
}

for (
  const [replication, first, again] of [
    // One for each full JID, one for the bare JID, and one for the claims.
    ["external", 22, 22],
    ["builtin", 22, 1],
  ] as const
) {
  Deno.test(`SessionTable shares reads of an account between lookups, replication ${replication}`, async () => {
    const test = await TestTable.started({ replication });
    const locate = () => Promise.all(GONE.map((jid) => test.table.locate(jid)));
    assert.equal(await commandsOf(test, locate), first);
    const locateAgain = () => test.table.locateAgain(GONE);
    assert.equal(await commandsOf(test, locateAgain), again);
    assert.equal(test.table.cached(GONE[0]!), null, "a miss is remembered");
    await test.table.close();
  });

  Deno.test(`SessionTable needs few commands for a message's retries, replication ${replication}`, async () => {
    const test = await TestTable.started({ replication });
    const looking = async () => {
      await test.table.locate(GONE[0]!);
      for (let retry = 0; retry < 4; retry++) await test.table.locateAgain([GONE[0]!]);
    };
    assert.equal(await commandsOf(test, looking), replication === "builtin" ? 7 : 15);
    await test.table.close();
  });
}

Deno.test("SessionTable.locateAgain() finds a new login, by the resource or else the account", async () => {
  for (const replication of ["external", "builtin"] as const) {
    const clock = new ManualClock();
    const redis = new MemoryRedis(clock);
    const ours = new TestTable({ replication, incarnation: 1 }, clock, redis);
    const theirs = new TestTable(
      { replication, incarnation: 2, host: HERE, node: "node2@dc1.example.com" },
      clock,
      redis,
    );
    await ours.table.start();
    await theirs.table.start();
    const phone = fullJid("bob", "phone");
    assert.deepEqual(await ours.table.locateAgain([phone, BOB]), [undefined, undefined]);
    await theirs.table.sessionOpened(phone);
    const found = await ours.table.locateAgain([BOB, phone, GONE[0]!]);
    assert.deepEqual(found, [HERE, HERE, HERE]);
    assert.equal(ours.table.cached(phone), HERE);
    await theirs.table.sessionClosed(phone);
    assert.deepEqual(await ours.table.locateAgain([phone, BOB]), [undefined, undefined]);
    await theirs.table.close();
    await ours.table.close();
  }
});

Deno.test("SessionTable.locateAgain() reads sessions of a datacenter's other nodes along with the claims", async () => {
  const clock = new ManualClock();
  const redis = new MemoryRedis(clock);
  const node = (number: number) =>
    new TestTable(
      { replication: "builtin", incarnation: number, node: `node${number}@dc1.example.com` },
      clock,
      redis,
    );
  const [one, two] = [node(1), node(2)];
  for (const { table } of [one, two]) {
    await table.start();
    await table.publishClusterAddress({ host: "127.0.0.1", port: 7001 });
  }
  await one.table.clusterNodes();
  assert.ok(one.table.hasNeighbours);
  await two.table.sessionOpened(fullJid("bob", "phone"));
  assert.equal(await commandsOf(one, () => one.table.locateAgain([BOB, ...GONE])), 1);
  assert.deepEqual(one.table.placements(BOB).map(({ node }) => node), ["node2@dc1.example.com"]);
  assert.equal(one.table.isUnplaced(BOB), false);
  // A lookup of an unknown account reads the claims once, for the placements and for its answer.
  assert.equal(await commandsOf(one, () => one.table.locate(fullJid("eve", "x"))), 3);
  for (const { table } of [one, two]) await table.close();
});

Deno.test("SessionTable.locateAgain() answers from memory when Redis fails, and is then degraded", async () => {
  const test = await TestTable.started({ replication: "builtin" });
  await test.table.sessionOpened(fullJid("bob", "phone"));
  test.commands.setUp(false);
  assert.deepEqual(await test.table.locateAgain([fullJid("bob", "phone"), bareJid("eve")]), [
    HERE,
    undefined,
  ]);
  assert.equal(test.table.status, "degraded");
  await test.table.close();
});

Deno.test("SessionTable.locateAgain() takes garbage in the place of claims for no claims", async () => {
  const test = await TestTable.started({ replication: "builtin" });
  test.redis.apply(["SET", claimsKey(BOB.text), THERE]);
  assert.deepEqual(await test.table.locateAgain([BOB]), [undefined]);
  assert.equal(test.table.status, "up");
  await test.table.close();
});

Deno.test("SessionTable.learn() returns whether the host was news", async () => {
  const test = await TestTable.started();
  const phone = fullJid("bob", "phone");
  assert.equal(test.table.learn(phone, THERE), true);
  assert.equal(await test.table.locate(phone), THERE);
  assert.equal(test.table.learn(phone, THERE), false);
  test.table.forget(phone);
  assert.equal(await test.table.locate(phone), undefined);
  assert.equal(test.table.learn(phone, THERE), true, "the address was a remembered miss");
  assert.equal(test.table.cached(phone), THERE);
  await test.table.close();
});
