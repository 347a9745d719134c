import assert from "node:assert/strict";
import { ManualClock } from "../../../base/mod.ts";
import type { FullJid } from "../../../xmpp/mod.ts";
import { RedisErrorReply } from "../redis/redis_commands.ts";
import { MemoryRedis } from "../redis/testing/memory_redis.ts";
import { fullJid, TestTable } from "../testing/table.ts";

/** Tables of dc1 and dc2 whose Redis is one, as an external replicator makes it look. */
class Pair {
  readonly clock = new ManualClock();
  readonly redis = new MemoryRedis(this.clock);
  readonly one = this.#node("dc1.example.com", 1);
  readonly other = this.#node("dc2.example.com", 2);

  static async start(): Promise<Pair> {
    const pair = new Pair();
    for (const { table } of [pair.one, pair.other]) await table.start();
    return pair;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { table } of [this.one, this.other]) await table.close();
  }

  #node(host: string, incarnation: number): TestTable {
    const options = { host, node: `node1@${host}`, incarnation };
    return new TestTable(options, this.clock, this.redis);
  }
}

Deno.test("SessionTable.sessionsOf() finds the sessions of accounts in all datacenters", async () => {
  await using pair = await Pair.start();
  const { one, other } = pair;
  await one.table.sessionOpened(fullJid("bob", "phone"));
  await other.table.sessionOpened(fullJid("bob", "desk"));
  await other.table.sessionOpened(fullJid("carol", "x"));
  const accounts = ["alice", "bob", "carol"].map((name) => `${name}@example.com`);
  for (const { table } of [one, other]) {
    const found = await table.sessionsOf(accounts);
    assert.deepEqual([...found.keys()], accounts.slice(1));
    assert.deepEqual(
      found.get(accounts[1]!)!.toSorted((a, b) => a.process - b.process)
        .map(({ host, process, resourcepart }) => ({ host, process, resourcepart })),
      [
        { host: "dc1.example.com", process: 1, resourcepart: "phone" },
        { host: "dc2.example.com", process: 2, resourcepart: "desk" },
      ],
    );
  }
  await other.table.sessionClosed(fullJid("bob", "desk"));
  assert.equal((await one.table.sessionsOf(accounts)).get(accounts[1]!)?.length, 1);
  assert.deepEqual(await one.table.sessionsOf([]), new Map());
});

Deno.test("SessionTable.trySessionsOf() cannot tell while Redis is away, or refuses to answer", async () => {
  await using pair = await Pair.start();
  const { one, other } = pair;
  const account = "bob@example.com";
  await other.table.sessionOpened(fullJid("bob", "desk"));
  const found = async () => (await one.table.trySessionsOf([account]))?.get(account)?.length;
  assert.equal(await found(), 1);
  one.commands.setUp(false);
  assert.equal(await found(), undefined);
  assert.deepEqual(await one.table.sessionsOf([account]), new Map());
  one.commands.setUp(true);
  assert.equal(await found(), 1);
  const run = one.commands.run.bind(one.commands);
  one.commands.run = async (commands) =>
    commands.every(([verb]) => verb === "HGETALL")
      ? commands.map(() => new RedisErrorReply("LOADING Redis is loading the dataset in memory"))
      : await run(commands);
  assert.equal(await one.table.trySessionsOf([account]), undefined);
});

Deno.test("SessionTable.sessionsElsewhere() counts what only others have, without asking Redis for it", async () => {
  await using pair = await Pair.start();
  const { one, other } = pair;
  const alice = "alice@example.com";
  const elsewhere = () => [one, other].map(({ table }) => table.sessionsElsewhere(alice));
  await other.table.sessionOpened(fullJid("alice", "desk"));
  await other.table.sessionOpened(fullJid("alice", "phone"));
  assert.deepEqual(elsewhere(), [0, 0], "dc1 has no session of hers");
  await one.table.sessionOpened(fullJid("alice", "tablet"));
  assert.deepEqual(elsewhere(), [2, 0], "dc2 has not looked since");
  await one.table.sessionOpened(fullJid("alice", "phone"));
  assert.deepEqual(elsewhere(), [1, 0], "the phone has moved");
  await other.table.sessionOpened(fullJid("alice", "watch"));
  assert.deepEqual(elsewhere(), [1, 1]);
  let roundTrips = 0;
  const run = one.commands.run.bind(one.commands);
  one.commands.run = (commands) => {
    roundTrips++;
    return run(commands);
  };
  await other.table.sessionClosed(fullJid("alice", "desk"));
  await other.table.sessionClosed(fullJid("alice", "watch"));
  await one.table.sessionOpened(fullJid("alice", "late"));
  assert.deepEqual(elsewhere()[0], 0);
  assert.equal(roundTrips, 2, "one to read, one to write");
});

Deno.test("SessionTable knows 1000 sessions of one account, and forgets each of them", async () => {
  await using pair = await Pair.start();
  const { one, other } = pair;
  const account = "alice@example.com";
  const jids = Array.from({ length: 1000 }, (_, i) => fullJid("alice", `device${i}`));
  const [here, there] = [jids.slice(0, 600), jids.slice(600)];
  const open = (table: TestTable, own: readonly FullJid[]) =>
    Promise.all(own.map((jid) => table.table.sessionOpened(jid)));
  await Promise.all([open(one, here), open(other, there)]);
  const found = async (at: TestTable) =>
    ((await at.table.sessionsOf([account])).get(account) ?? [])
      .map(({ host, resourcepart }) => `${resourcepart} at ${host}`).toSorted();
  const expected = [
    ...here.map(({ resourcepart }) => `${resourcepart} at dc1.example.com`),
    ...there.map(({ resourcepart }) => `${resourcepart} at dc2.example.com`),
  ].toSorted();
  for (const at of [one, other]) assert.deepEqual(await found(at), expected);
  const keys = Object.keys(one.publicKeys()).filter((key) => key.startsWith(account));
  assert.equal(keys.length, 1001);

  await Promise.all(here.map((jid) => one.table.sessionClosed(jid)));
  assert.deepEqual(await found(one), expected.filter((each) => each.endsWith("dc2.example.com")));
  await Promise.all(there.map((jid) => other.table.sessionClosed(jid)));
  assert.deepEqual(await found(one), []);
  assert.deepEqual(Object.keys(one.publicKeys()).filter((key) => key.startsWith(account)), []);
});

Deno.test("SessionTable.liveProcesses() tells who holds a lease", async () => {
  await using pair = await Pair.start();
  const { one, other } = pair;
  const [dc1, dc2, dc3] = ["dc1", "dc2", "dc3"].map((name) => `${name}.example.com`);
  assert.deepEqual(
    await one.table.liveProcesses([dc2!, dc3!]),
    new Map([[dc1, new Set([1])], [dc2, new Set([2])], [dc3, new Set()]]),
  );
  await other.table.close();
  assert.deepEqual((await one.table.liveProcesses([dc2!]))?.get(dc2!), new Set());
});
