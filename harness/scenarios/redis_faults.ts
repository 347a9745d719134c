import assert from "node:assert/strict";
import type { ChatClient } from "../clients/mod.ts";
import type { CausewayConfiguration, CausewayNode, Cluster, Datacenter } from "../cluster/mod.ts";
import { LinkProxy } from "../faults/mod.ts";
import { DYNOMITE_CLOSES_ON, RedisClient } from "../redis/mod.ts";
import { REPLICATIONS, type Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { Letters } from "./_letters.ts";
import { expectAll, sendAll } from "./_numbered.ts";
import { untilReady } from "./_readiness.ts";
import { bare, Stage } from "./_stage.ts";
import { TWO_NODES, untilChat } from "./_two_nodes.ts";

const EXPIRE_AFTER_SECONDS = 10;

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
  summary:
    "dc1's Redis is slow, then hangs: order is kept, other users do not wait, nothing is lost",
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
    say(
      "hanging: dc1 replaces the connection and reports it; messages go on; it recovers by itself",
    );
  },
};

const CACHE_MISSES = "mod_global_distrib_mapping_cache_misses_total";
const FETCH_SECONDS = "mod_global_distrib_mapping_fetch_time_seconds_sum";

/** A way to make a Redis refuse writes, and to undo it. */
interface Refusal {
  readonly what: string;
  readonly begins: readonly (readonly string[])[];
  readonly ends: readonly (readonly string[])[];
  /** Reason that `/ready` shows meanwhile. */
  readonly reason: RegExp;
}

const REFUSALS: readonly Refusal[] = [
  {
    what: "read-only",
    // A replica without a primary answers from its data, and refuses writes.
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

/** Redis answers, and refuses writes. */
const UNWRITABLE: Scenario = {
  name: "redis-unwritable",
  summary: "dc1's Redis is read-only, then full: dc1 reports it, goes on, and writes everything " +
    "afterwards",
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
      say(`${what}: dc1 is degraded and says why; a new login works, but is not in the table`);

      await callAll(dc1, ends);
      await untilReady(cluster, dc1);
      for (const who of [alice, carol]) await stage.untilTableSaysOfSession(who, "dc1");
      await stage.untilTableSaysOfSession(bob, "dc2");
      await new Letters(carol).expectOf(bob);
      await new Letters(bob).expectOf(carol);
      for (const who of [alice, carol]) await who.expectNothingElse(bob);
      await bob.expectNothingElse(alice);
      say(`it accepts writes again: every session is in every table, and nothing else arrived`);
    }
  },
};

async function callAll(
  { redisClient }: Datacenter,
  commands: readonly (readonly string[])[],
): Promise<void> {
  for (const command of commands) await redisClient.call(...command);
}

/** Renewals of a claim, one each second, after which its first lifetime is over. */
const RENEWALS = EXPIRE_AFTER_SECONDS + 2;

/** Dynomite closes the connection on an unknown command, and drops pending replies. */
const RESTRICTED: Scenario = {
  name: "redis-proxy-restricted",
  summary:
    "behind a proxy that closes on unknown commands, as Dynomite does, two sessions stay in the " +
    "tables",
  options: { datacenters: 2, configure, replication: "external" },
  async run(cluster, say) {
    const [dc1, dc2] = [cluster.datacenter("dc1"), cluster.datacenter("dc2")];
    for (const datacenter of cluster.datacenters) await expectCloses(datacenter);
    const unknown = countUnknown(cluster);
    for (const { node } of cluster.datacenters) await node.restart();
    for (const datacenter of cluster.datacenters) await untilReady(cluster, datacenter);
    const connections = cluster.datacenters.map(({ replicator }) => replicator.connections);
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    const phone = await stage.enterAvailable("bob", "dc2", { resource: "phone" });
    const laptop = await stage.enterAvailable("bob", "dc2", { resource: "laptop" });
    let seen = 0;
    await cluster.until(async () => (seen = await renewals(dc1, phone)) >= RENEWALS, {
      what: `bob's claims have come to dc1 ${RENEWALS} times`,
      evidence: () => `${seen} times`,
      withinMs: 60_000, // a claim is renewed every second, and on a busy machine less often
    });
    for (const datacenter of cluster.datacenters) await untilReady(cluster, datacenter);
    await stage.untilTableSaysOfSession(alice, "dc1");
    for (const bob of [phone, laptop]) {
      await stage.untilTableSaysOfSession(bob, "dc2");
      await new Letters(alice).expectOf(bob);
      await new Letters(bob).expectOf(alice);
    }
    const now = cluster.datacenters.map(({ replicator }) => replicator.connections);
    assert.deepEqual(now, connections, "no node has lost its Redis");
    say("bob's phone and laptop at one node stay in every table, and its Redis stays connected");

    for (const bob of [phone, laptop]) await bob.disconnect();
    for (const bob of [phone, laptop]) await stage.untilGone(bob.jid);
    assert.equal(countUnknown(cluster), unknown, "nothing that Dynomite does not know was asked");
    say("sessions come and go, and dc2 sent no command that Dynomite does not know");

    const { redis } = dc2.node.configuration.modules.mod_global_distrib;
    redis.password = "open sesame";
    await dc2.node.restart();
    await untilReady(cluster, dc2, /closed at AUTH.*redis\.password/);
    say("dc2 has a password for it: /ready says that the connection is closed at AUTH");
    redis.password = "";
    await dc2.node.restart();
    await untilReady(cluster, dc2);
  },
};

/** A node that starts before the loss is noticed finds a Redis without its datacenter. */
const FLUSHED_BEFORE_A_START: Scenario = {
  name: "redis-flushed-before-a-start",
  summary: "a node that starts on an emptied Redis keeps its datacenter's id",
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
    say("both of dc2's nodes are linked to both of dc1's: everyone reaches everyone");
  },
};

/** Scenarios with a Redis that runs but fails. */
export const REDIS_FAULTS: readonly Scenario[] = [
  SLOW,
  UNWRITABLE,
  RESTRICTED,
  FLUSHED_BEFORE_A_START,
];

/**
 * Checks that the replicator closes the connection on everything that Dynomite does not know.
 * @throws when it does not
 */
async function expectCloses({ replicator }: Datacenter): Promise<void> {
  await using client = new RedisClient(replicator.address);
  for (const command of DYNOMITE_CLOSES_ON) {
    await assert.rejects(client.call(...command), /Lost the connection/, command.join(" "));
  }
}

function countUnknown(cluster: Cluster): number {
  return cluster.datacenters.reduce((sum, { replicator }) => sum + replicator.unknownCommands, 0);
}

/**
 * Returns how often, in this datacenter's Redis, the least renewed claim of the account was
 * written.
 */
async function renewals({ redisClient }: Datacenter, { jid }: ChatClient): Promise<number> {
  const claims = await redisClient.call("HGETALL", `causeway:claims:${bare(jid)}`) as string[];
  const counts = claims.filter((_, i) => i % 2 === 1).map((claim) =>
    JSON.parse(claim)[4] as number
  );
  return counts.length < 2 ? 0 : Math.min(...counts);
}
