import assert from "node:assert/strict";
import type { CausewayConfiguration, CausewayNode, Cluster, Datacenter } from "../cluster/mod.ts";
import { LinkProxy } from "../faults/mod.ts";
import { DYNOMITE_REFUSES, RedisClient } from "../redis/mod.ts";
import { REPLICATIONS, type Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { Letters } from "./_letters.ts";
import { expectAll, sendAll } from "./_numbered.ts";
import { untilReady } from "./_readiness.ts";
import { Stage } from "./_stage.ts";
import { TWO_NODES, untilChat } from "./_two_nodes.ts";

const EXPIRE_AFTER_SECONDS = 3;

function configure({ modules }: CausewayConfiguration): void {
  const distribution = modules.mod_global_distrib;
  Object.assign(distribution.redis, { expire_after: EXPIRE_AFTER_SECONDS, refresh_after: 1 });
  distribution["cache"] = { jid_lifetime_seconds: 1 };
}

const LATENCY_MS = 250;
const MESSAGES = 20;

/** Every lookup and every write takes long; and then Redis does not answer at all for a while. */
const SLOW: Scenario = {
  name: "redis-slow",
  summary: "dc1's Redis is slow, then hangs: order is kept, nobody else waits, nothing is lost",
  options: { datacenters: 2, configure },
  async run(cluster, say) {
    await using proxy = new LinkProxy("dc1→redis");
    await proxy.start();
    const dc1 = cluster.datacenter("dc1");
    const { redis } = dc1.node.configuration.modules.mod_global_distrib;
    proxy.setTarget({ host: redis.server, port: redis.port });
    Object.assign(redis, { server: proxy.address.host, port: proxy.address.port });
    await dc1.node.restart();
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    const carol = await stage.enterAvailable("carol", "dc1");
    const bob = await stage.enterAvailable("bob", "dc2");
    for (const who of [alice, carol]) await stage.untilTableSaysOfSession(who, "dc1");
    await stage.untilTableSaysOfSession(bob, "dc2");
    proxy.delay(LATENCY_MS);
    const before = await Figures.read(dc1);
    await sendAll([alice], bob, { from: 0, to: MESSAGES });
    await new Letters(carol).expectOf(carol); // alice waits for a lookup, carol does not
    await expectAll([alice], bob, MESSAGES);
    const after = await Figures.read(dc1);
    const lookups = after.sum(CACHE_MISSES) - before.sum(CACHE_MISSES);
    const seconds = after.sum(FETCH_SECONDS) - before.sum(FETCH_SECONDS);
    if (lookups === 0 || seconds < lookups * LATENCY_MS / 1000) {
      throw new Error(`Expected slow lookups: ${lookups} took ${seconds} s`);
    }
    await untilReady(cluster, dc1);
    say(`slow (${LATENCY_MS} ms each way): ${MESSAGES} messages arrive in order; dc1 stays ready`);

    proxy.blackHole();
    await untilReady(cluster, dc1, /redis/);
    await new Letters(bob).expectOf(alice);
    await new Letters(carol).expectOf(alice);
    proxy.heal();
    await untilReady(cluster, dc1);
    await stage.untilTableSaysOfSession(alice, "dc1");
    await new Letters(alice).expectOf(bob);
    await alice.expectNothingElse(bob);
    await bob.expectNothingElse(alice);
    await carol.expectNothingElse(bob);
    say("hanging: dc1 gives up waiting and says so; messages go on; it recovers by itself");
  },
};

const CACHE_MISSES = "mod_global_distrib_mapping_cache_misses_total";
const FETCH_SECONDS = "mod_global_distrib_mapping_fetch_time_seconds_sum";

/** A way in which a Redis takes no writes, and the end of it. */
interface Refusal {
  readonly what: string;
  readonly begins: readonly (readonly string[])[];
  readonly ends: readonly (readonly string[])[];
  /** What `/ready` says meanwhile. */
  readonly reason: RegExp;
}

const REFUSALS: readonly Refusal[] = [
  {
    what: "read-only",
    // A replica of nobody: it answers from what it has, and takes no writes.
    begins: [["REPLICAOF", "127.0.0.1", "1"]],
    ends: [["REPLICAOF", "NO", "ONE"]],
    reason: /READONLY/,
  },
  {
    what: "full",
    begins: [["CONFIG", "SET", "maxmemory-policy", "noeviction"], [
      "CONFIG",
      "SET",
      "maxmemory",
      "1",
    ]],
    ends: [["CONFIG", "SET", "maxmemory", "0"]],
    reason: /OOM/,
  },
];

/** Redis answers, and refuses what is to be written. */
const UNWRITABLE: Scenario = {
  name: "redis-unwritable",
  summary: "dc1's Redis is read-only, then full: dc1 says so, serves on, and writes all afterwards",
  replications: REPLICATIONS,
  options: { datacenters: 2, configure },
  async run(cluster, say) {
    const dc1 = cluster.datacenter("dc1");
    for (const { what, begins, ends, reason } of REFUSALS) {
      await using stage = new Stage(cluster);
      const alice = await stage.enterAvailable("alice", "dc1");
      const bob = await stage.enterAvailable("bob", "dc2");
      await stage.untilTableSaysOfSession(alice, "dc1");
      await stage.untilTableSaysOfSession(bob, "dc2");
      await new Letters(bob).expectOf(alice);
      await callAll(dc1, begins);
      await untilReady(cluster, dc1, reason);
      const carol = await stage.enterAvailable("carol", "dc1");
      await new Letters(alice).expectOf(carol);
      await new Letters(carol).expectOf(alice);
      await new Letters(bob).expectOf(alice);
      await new Letters(alice).expectOf(bob);
      assert.equal(await dc1.redisClient.call("GET", carol.jid), null);
      say(`${what}: dc1 is degraded and says why; who logs in is served, and not in the table`);

      await callAll(dc1, ends);
      await untilReady(cluster, dc1);
      for (const who of [alice, carol]) await stage.untilTableSaysOfSession(who, "dc1");
      await stage.untilTableSaysOfSession(bob, "dc2");
      await new Letters(carol).expectOf(bob);
      await new Letters(bob).expectOf(carol);
      for (const who of [alice, carol]) await who.expectNothingElse(bob);
      await bob.expectNothingElse(alice);
      say(`it takes writes again: everybody is in every table, and nothing else arrived`);
    }
  },
};

async function callAll(
  { redisClient }: Datacenter,
  commands: readonly (readonly string[])[],
): Promise<void> {
  for (const command of commands) await redisClient.call(...command);
}

/** A replicator such as Dynomite refuses what clients say about themselves. */
const RESTRICTED: Scenario = {
  name: "redis-proxy-restricted",
  summary: "a proxy in front of Redis refuses CLIENT, INFO, SELECT and HELLO: all works",
  options: { datacenters: 2, configure, redisPassword: "open sesame", replication: "external" },
  async run(cluster, say) {
    for (const datacenter of cluster.datacenters) {
      datacenter.replicator.refuse(DYNOMITE_REFUSES);
      await expectRefused(datacenter);
    }
    const refused = countRefused(cluster);
    for (const { node } of cluster.datacenters) await node.restart();
    for (const datacenter of cluster.datacenters) await untilReady(cluster, datacenter);
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    const bob = await stage.enterAvailable("bob", "dc2");
    await stage.untilTableSaysOfSession(alice, "dc1");
    await stage.untilTableSaysOfSession(bob, "dc2");
    await new Letters(bob).expectOf(alice);
    await new Letters(alice).expectOf(bob);
    await alice.expectNothingElse(bob);
    await bob.expectNothingElse(alice);
    await bob.disconnect();
    await stage.untilGone(bob.jid);
    assert.equal(countRefused(cluster), refused, "nothing that a proxy refuses was asked for");
    say("connected with a password, sessions come and go in every table, nothing was refused");
  },
};

/** Whoever starts while nobody has noticed yet finds a Redis in which its datacenter never was. */
const FLUSHED_BEFORE_A_START: Scenario = {
  name: "redis-flushed-before-a-start",
  summary: "Redis has lost everything when a node starts: its datacenter stays who it was",
  replications: REPLICATIONS,
  options: TWO_NODES,
  async run(cluster, say) {
    const dc2 = cluster.datacenter("dc2");
    const [witness, late] = dc2.nodes as [CausewayNode, CausewayNode];
    const id = () => dc2.redisClient.call("GET", `causeway:dc:${dc2.localHost}`);
    const before = await id();
    await late.kill();
    witness.pause();
    await dc2.redisClient.call("FLUSHALL");
    await late.start();
    assert.notEqual(await id(), before, "it has found none, and made one up");
    witness.resume();
    await cluster.until(async () => await id() === before, { what: "dc2 has the id that it had" });
    say("a node has started on an empty Redis, and dc2 has the id that it had");

    await using stage = new Stage(cluster);
    const inDc2 = [
      await stage.enterAvailable("bob", "dc2"),
      await stage.enterAvailable("carol", "dc2", { node: 1 }),
    ];
    for (const node of [0, 1]) {
      const resource = `at-${node}`;
      const client = await stage.enterAvailable("alice", "dc1", { node, resource });
      for (const other of inDc2) {
        await untilChat(cluster, client, other);
        await untilChat(cluster, other, client);
      }
    }
    say("both of its nodes are linked to both of dc1's: everybody reaches everybody");
  },
};

/** What Redis may do wrong while it is there. */
export const REDIS_FAULTS: readonly Scenario[] = [
  SLOW,
  UNWRITABLE,
  RESTRICTED,
  FLUSHED_BEFORE_A_START,
];

/** @throws unless the replicator answers an error to everything that it is to refuse */
async function expectRefused({ replicator }: Datacenter): Promise<void> {
  await using client = new RedisClient(replicator.address);
  for (const name of DYNOMITE_REFUSES) {
    await assert.rejects(client.call(name, "1"), /unknown command|does not support/);
  }
}

function countRefused(cluster: Cluster): number {
  return cluster.datacenters.reduce((sum, { replicator }) => sum + replicator.refusedCommands, 0);
}
