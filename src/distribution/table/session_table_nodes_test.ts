import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { ManualClock } from "../../base/mod.ts";
import { MemoryRedis } from "./redis/testing/memory_redis.ts";
import { advance, bareJid, domainJid, fullJid, TestTable } from "./testing/table.ts";
import type { ClusterLink } from "./mesh/cluster_bus.ts";

const HERE = "dc1.example.com";
const N1 = `node1@${HERE}`;
const N2 = `node2@${HERE}`;
const N3 = `node3@${HERE}`;
const BOB = bareJid("bob");
const PHONE = fullJid("bob", "phone");
const DESK = fullJid("bob", "desk");

/** Two nodes of dc1 on one Redis. */
class Pair {
  readonly clock = new ManualClock();
  readonly redis = new MemoryRedis(this.clock);
  readonly displaced: string[] = [];
  readonly changed: string[] = [];
  readonly one = this.#node(N1, 1);
  readonly two = this.#node(N2, 2);
  readonly three = this.#node(N3, 3);
  readonly #cuts: (() => void)[] = [];

  #node(node: string, incarnation: number): TestTable {
    return new TestTable(
      {
        host: HERE,
        node,
        incarnation,
        onDisplaced: (fullJid) => void this.displaced.push(`${node} ${fullJid}`),
        onChanged: (keys) => void this.changed.push(...keys.map((key) => `${node} ${key}`)),
      },
      this.clock,
      this.redis,
    );
  }

  static async start(): Promise<Pair> {
    const pair = new Pair();
    for (const [i, { table }] of [pair.one, pair.two].entries()) {
      await table.start();
      await table.publishClusterAddress({ host: "127.0.0.1", port: 7001 + i });
    }
    return pair;
  }

  /** Links the two nodes to each other. */
  link(): void {
    for (const [from, to] of [[this.one, this.two], [this.two, this.one]] as const) {
      const inward: ClusterLink = {
        nodeName: from === this.one ? N1 : N2,
        process: from.incarnation,
        send: () => assert.fail("an acceptor sends no frames"),
      };
      const outward: ClusterLink = {
        nodeName: to === this.one ? N1 : N2,
        process: to.incarnation,
        send: (frame) => to.table.clusterBus.frame(inward, frame[4]!, frame, 0, frame.length),
      };
      to.table.clusterBus.accepted(inward);
      from.table.clusterBus.dialled(outward);
      this.#cuts.push(() => {
        to.table.clusterBus.ended(inward);
        from.table.clusterBus.ended(outward);
      });
    }
  }

  unlink(): void {
    for (const cut of this.#cuts.splice(0)) cut();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.one.table.close();
    await this.two.table.close();
    await this.three.table.close();
  }
}

Deno.test("SessionTable.clusterNodes() returns the other live nodes, whose endpoints are known", async () => {
  await using pair = await Pair.start();
  const { one, two } = pair;
  assert.equal(one.table.hasNeighbours, false);
  assert.deepEqual(await one.table.clusterNodes(), [N2]);
  assert.deepEqual(await two.table.clusterNodes(), [N1]);
  assert.equal(one.table.hasNeighbours, true);
  assert.deepEqual(await one.table.clusterEndpoints(N2), [{ host: "127.0.0.1", port: 7002 }]);
  assert.deepEqual(await one.table.clusterEndpoints("node9@dc1.example.com"), []);
  pair.redis.run(["HSET", `causeway:cluster:${HERE}`, N2, "no address"]);
  assert.deepEqual(await one.table.clusterNodes(), []);
  assert.equal(one.metrics.value("causeway_table_garbage_total"), 1);
  await two.table.close();
  assert.equal(Object.hasOwn(pair.redis.dump(), `causeway:cluster:${HERE}`), true);
  await one.table.close();
  assert.equal(Object.hasOwn(pair.redis.dump(), `causeway:cluster:${HERE}`), false);
});

Deno.test("SessionTable.clusterNodes() keeps the known nodes while Redis is away", async () => {
  await using pair = await Pair.start();
  await pair.one.table.clusterNodes();
  pair.one.commands.setUp(false);
  assert.deepEqual(await pair.one.table.clusterNodes(), [N2]);
});

Deno.test("SessionTable.placements() returns the other nodes where an account has sessions", async () => {
  await using pair = await Pair.start();
  const { one, two } = pair;
  pair.link();
  await one.table.sessionOpened(PHONE);
  await two.table.sessionOpened(DESK);
  await two.table.sessionPriority(DESK, 5);
  assert.equal(await one.table.locate(DESK), HERE);
  assert.deepEqual(one.table.placements(DESK), [
    { node: N2, resourcepart: "desk", priority: 5 },
  ]);
  await two.table.locate(BOB);
  assert.deepEqual(two.table.placements(BOB), [
    { node: N1, resourcepart: "phone", priority: undefined },
  ]);
  await two.table.domainAdded("echo.example.com", { hidden: false });
  assert.equal(await one.table.locate(domainJid("echo.example.com")), HERE);
  assert.deepEqual(one.table.placements(domainJid("echo.example.com")), [
    { node: N2, resourcepart: "", priority: undefined },
  ]);
});

Deno.test("SessionTable.placements() keeps what a lookup has read when our own session changes meanwhile", async () => {
  await using pair = await Pair.start();
  const { one, two } = pair;
  pair.link();
  await one.table.sessionOpened(PHONE);
  await one.table.sessionPriority(PHONE, 0);
  await two.table.sessionOpened(DESK);
  assert.equal(await two.table.locate(BOB), HERE);
  await two.table.sessionPriority(DESK, 5); // its presence waits for the lookup above
  assert.equal(two.table.isUnplaced(BOB), true);
  assert.deepEqual(two.table.placements(BOB).map(({ node }) => node), [N1]);
});

Deno.test("SessionTable keeps no placements while it is the only node", async () => {
  const test = await TestTable.started();
  const before = test.redis.commands;
  assert.equal(test.table.isUnplaced(BOB), true, "the account may be in other datacenters too");
  assert.equal(test.table.isUnplaced(PHONE), false);
  await test.table.locate(PHONE);
  assert.equal(test.redis.commands - before, 3, "full JID, bare JID and claims");
  assert.deepEqual(test.table.placements(PHONE), []);
  assert.equal(test.table.isUnplaced(BOB), false);
  await test.table.close();
});

Deno.test("SessionTable drops keys that a session or component changed from every node's cache", async () => {
  await using pair = await Pair.start();
  const { one, two } = pair;
  pair.link();
  const echo = domainJid("echo.example.com");
  for (const jid of [PHONE, BOB, echo]) {
    assert.equal(await one.table.locate(jid), undefined);
    assert.equal(one.table.cached(jid), null);
  }
  await two.table.sessionOpened(PHONE);
  await two.table.domainAdded("echo.example.com", { hidden: false });
  await setImmediate();
  assert.deepEqual(pair.changed, [
    `${N1} bob@example.com/phone`,
    `${N1} bob@example.com`,
    `${N1} echo.example.com`,
  ]);
  for (const jid of [PHONE, BOB, echo]) assert.equal(one.table.cached(jid), undefined);
  for (const jid of [PHONE, BOB, echo]) {
    assert.equal(await one.table.locate(jid), HERE);
    assert.equal(one.table.cached(jid), HERE);
  }
  await two.table.sessionPriority(PHONE, -3);
  await setImmediate();
  await one.table.locate(BOB);
  assert.equal(one.table.placements(BOB)[0]!.priority, -3);
  await two.table.sessionClosed(PHONE);
  await two.table.domainRemoved("echo.example.com");
  await setImmediate();
  for (const jid of [PHONE, BOB, echo]) assert.equal(await one.table.locate(jid), undefined);
});

Deno.test("SessionTable keeps no answer that Redis gave before another node changed the key", async () => {
  await using pair = await Pair.start();
  const { one, two, clock } = pair;
  pair.link();
  one.commands.latencyMs = 100;
  const asked = one.table.locate(PHONE);
  await advance(clock, 150); // Redis has answered, and the answer is on its way
  await two.table.sessionOpened(PHONE);
  await setImmediate();
  const askedAgain = one.table.locate(PHONE);
  await advance(clock, 100);
  assert.equal(await asked, undefined);
  assert.equal(one.table.cached(PHONE), undefined);
  await advance(clock, 200);
  assert.equal(await askedAgain, HERE);
  assert.equal(one.table.cached(PHONE), HERE);
  assert.deepEqual(one.table.placements(PHONE).map(({ node }) => node), [N2]);
  one.commands.latencyMs = 0;
});

Deno.test("SessionTable ends the older of two sessions with one full JID on two nodes", async () => {
  await using pair = await Pair.start();
  const { one, two } = pair;
  pair.link();
  await one.table.sessionOpened(PHONE);
  pair.clock.advance(5);
  await two.table.sessionOpened(PHONE);
  await setImmediate();
  await setImmediate();
  assert.deepEqual([...new Set(pair.displaced)], [`${N1} bob@example.com/phone`]);
  await one.table.sessionClosed(PHONE); // as the end of the session does
  await advance(pair.clock, 6_000, 100);
  for (const { table } of [one, two]) assert.equal(await table.locate(PHONE), HERE);
  assert.deepEqual(one.table.placements(PHONE), [
    { node: N2, resourcepart: "phone", priority: undefined },
  ]);
  assert.equal(pair.displaced.some((each) => each.startsWith(N2)), false);
});

for (const isKnown of [true, false]) {
  const which = isKnown ? "known" : "written at the same time";
  Deno.test(`SessionTable.sessionOpened() lets a login win that is ${which} over a session that was asked for before`, async () => {
    await using pair = await Pair.start();
    const { one, two, three, clock } = pair;
    await three.table.start();
    await one.table.sessionOpened(PHONE);
    clock.advance(5);
    const origin = { process: one.incarnation, askedMs: clock.monotonicMs() };
    clock.advance(5);
    if (!isKnown) { for (const { commands } of [two, three]) commands.latencyMs = 20; }
    const login = three.table.sessionOpened(PHONE);
    if (isKnown) await login;
    clock.advance(5);
    const arrival = two.table.sessionOpened(PHONE, origin);
    await advance(clock, 100, 5);
    await Promise.all([login, arrival]);
    for (const { commands } of [two, three]) commands.latencyMs = 0;
    await one.table.sessionClosed(PHONE);
    await advance(clock, 1_100, 100);
    assert.ok(pair.displaced.includes(`${N2} bob@example.com/phone`));
    assert.equal(pair.displaced.some((each) => each.startsWith(N3)), false);
  });
}

for (const isAtGiver of [true, false]) {
  const where = isAtGiver ? "at the node that gave it" : "though the claim of that node is gone";
  Deno.test(`SessionTable.sessionOpened() lets a login win over a session that was given before, ${where}`, async () => {
    await using pair = await Pair.start();
    const { one, two, three, clock } = pair;
    await three.table.start();
    await one.table.sessionOpened(PHONE);
    clock.advance(5);
    const askedMs = clock.monotonicMs();
    const epoch = await two.table.claimedEpoch(PHONE, one.incarnation);
    clock.advance(5);
    if (isAtGiver) await one.table.sessionClosed(PHONE); // as the registry does before the login
    const login = isAtGiver ? one : three;
    await login.table.sessionOpened(PHONE);
    if (!isAtGiver) await one.table.sessionClosed(PHONE);
    await two.table.sessionOpened(PHONE, { process: one.incarnation, askedMs, epoch });
    await advance(clock, 1_100, 100);
    assert.deepEqual([...new Set(pair.displaced)], [`${N2} bob@example.com/phone`]);
  });
}

Deno.test("SessionTable.claimedEpoch() knows the newest claim, of the named process alone", async () => {
  await using pair = await Pair.start();
  const { one, two, clock } = pair;
  assert.equal(await two.table.claimedEpoch(PHONE, one.incarnation), undefined);
  await one.table.sessionOpened(PHONE);
  const epoch = await two.table.claimedEpoch(PHONE, one.incarnation);
  assert.ok(epoch !== undefined);
  assert.equal(await two.table.claimedEpoch(DESK, one.incarnation), undefined);
  clock.advance(5);
  await two.table.sessionOpened(PHONE);
  assert.equal(await two.table.claimedEpoch(PHONE, one.incarnation), undefined);
  assert.ok((await one.table.claimedEpoch(PHONE, two.incarnation))! > epoch);
});

Deno.test("SessionTable.sessionOpened() has a session that comes win over the node that gave it", async () => {
  await using pair = await Pair.start();
  const { one, two, three, clock } = pair;
  await three.table.start();
  await one.table.sessionOpened(DESK);
  await three.table.sessionOpened(PHONE);
  const origin = { process: three.incarnation, askedMs: clock.monotonicMs() - 60_000 };
  await two.table.sessionOpened(PHONE, origin); // the clock of the other node is ahead
  await advance(clock, 1_100, 100);
  assert.deepEqual([...new Set(pair.displaced)], [`${N3} bob@example.com/phone`]);
});

Deno.test("SessionTable finds a full JID taken by another node even without INVALIDATE", async () => {
  await using pair = await Pair.start();
  await pair.one.table.sessionOpened(PHONE);
  pair.clock.advance(5);
  await pair.two.table.sessionOpened(PHONE);
  assert.equal(pair.displaced.length, 0);
  await advance(pair.clock, 1_100, 100);
  assert.ok(pair.displaced.includes(`${N1} bob@example.com/phone`));
});

Deno.test("SessionTable writes priorities once another node can read them", async () => {
  await using pair = await Pair.start();
  const { one, two } = pair;
  await one.table.sessionOpened(PHONE);
  await one.table.sessionPriority(PHONE, 7);
  const claim = () => JSON.stringify(pair.redis.dump()["causeway:claims:bob@example.com"]);
  assert.doesNotMatch(claim(), /7\]/);
  pair.link();
  await setImmediate();
  await setImmediate();
  assert.match(claim(), /7\]/);
  await two.table.locate(BOB);
  assert.equal(two.table.placements(BOB)[0]!.priority, 7);
});

Deno.test("SessionTable clears its cache when a node links to it or is gone", async () => {
  await using pair = await Pair.start();
  const { one } = pair;
  await one.table.locate(PHONE);
  assert.equal(one.table.cached(PHONE), null);
  pair.link();
  assert.equal(one.table.cached(PHONE), undefined);
  await one.table.clusterNodes();
  await one.table.locate(PHONE);
  assert.equal(one.table.cached(PHONE), null);
  pair.unlink();
  await pair.two.table.close();
  await advance(pair.clock, 16_000, 500); // a lease that was read counts for a while
  await one.table.clusterNodes();
  assert.equal(one.table.hasNeighbours, false);
});

Deno.test("SessionTable counts a node that links to it as alive at once", async () => {
  await using pair = await Pair.start();
  const { one, two } = pair;
  await two.table.close();
  await one.table.clusterNodes();
  assert.equal(one.table.hasNeighbours, false);
  const again = new TestTable({ host: HERE, node: N2, incarnation: 3 }, pair.clock, pair.redis);
  await again.table.start();
  await again.table.publishClusterAddress({ host: "127.0.0.1", port: 7003 });
  await again.table.sessionOpened(PHONE);
  const link: ClusterLink = { nodeName: N2, process: 3, send: () => {} };
  one.table.clusterBus.accepted(link);
  assert.equal(await one.table.locate(PHONE), HERE);
  assert.deepEqual(one.table.placements(PHONE).map(({ node }) => node), [N2]);
  assert.deepEqual(await one.table.clusterNodes(), [N2]);
  one.table.clusterBus.ended(link);
  await again.table.close();
});

Deno.test("SessionTable.isOwnProcess() knows living and ended processes of the datacenter, and no other", async () => {
  await using pair = await Pair.start();
  const { one, two } = pair;
  const known = () => [1, 2, 3, 4].filter((process) => one.table.isOwnProcess(process));
  assert.deepEqual(known(), [1]);
  await one.table.clusterNodes();
  assert.deepEqual(known(), [1, 2]);
  const link: ClusterLink = { nodeName: N2, process: 3, send: () => {} };
  one.table.clusterBus.accepted(link);
  one.table.clusterBus.ended(link);
  await two.table.close();
  await one.table.clusterNodes();
  assert.deepEqual(known(), [1, 2, 3]);
});

Deno.test("SessionTable.isOwnProcess() knows the process that had the node's name before", async () => {
  const clock = new ManualClock();
  const redis = new MemoryRedis(clock);
  const killed = new TestTable({ incarnation: 1 }, clock, redis);
  await killed.table.start();
  const again = new TestTable({ incarnation: 2 }, clock, redis);
  await again.table.start();
  await advance(clock, 60_000, 1_000);
  assert.deepEqual([1, 2, 3].map((process) => again.table.isOwnProcess(process)), [
    true,
    true,
    false,
  ]);
  await killed.table.close();
  await again.table.close();
});
