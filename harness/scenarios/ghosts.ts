import assert from "node:assert/strict";
import type { Cluster, ClusterOptions, Datacenter } from "../cluster/mod.ts";
import { REPLICATIONS, type Scenario } from "../scenario.ts";
import {
  accountOf,
  befriend,
  expectMark,
  expectPresence,
  expectPush,
  logInFully,
  presencesFrom,
} from "./_contacts.ts";
import { Figures } from "./_figures.ts";
import { Stage } from "./_stage.ts";
import { PATIENCE_MS } from "../until.ts";

/** Seconds that the lease of a node lives at most. */
const EXPIRE_AFTER = 4;
/** Looks without a lease after which presence is withdrawn, and one that began with the lease. */
const LOOKS = 3;

const THREE: ClusterOptions = {
  datacenters: 3,
  configure: ({ modules }) => {
    const { redis } = modules.mod_global_distrib;
    redis["expire_after"] = EXPIRE_AFTER;
    redis["refresh_after"] = 1;
  },
};

/** Presence of people whose node or datacenter is gone (no ghosts). */
export const GHOSTS: Scenario = {
  name: "ghosts",
  summary:
    "people at a datacenter that is killed or cut off go offline for their contacts, once and in " +
    "time, and come back with it, also by directed presence; a login elsewhere with the same " +
    "resource stays",
  options: THREE,
  replications: REPLICATIONS,
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const alice = await logInFully(await stage.enter("alice", "dc1"));
    const bob = await logInFully(await stage.enter("bob", "dc2"));
    const carol = await logInFully(await stage.enter("carol", "dc3"));
    await befriend(alice, bob);
    await befriend(alice, carol);
    await carol.presence({ to: bob.jid, priority: 7 });
    await expectPresence(bob, carol.jid);
    say("alice, bob and carol are at three datacenters; carol has sent bob directed presence");

    const cutOff = await lookAt(cluster, { from: "dc2", at: "dc1" });
    cluster.isolate("dc2");
    await expectWithdrawal(cluster, cutOff);
    await expectPresence(alice, bob.jid, "unavailable");
    await expectPresence(bob, alice.jid, "unavailable");
    await expectPresence(bob, carol.jid, "unavailable");
    say("dc2 is cut off: both sides see the others go");
    await carol.presence({ to: accountOf(bob), type: "subscribe" });
    await expectPush(carol, accountOf(bob), { ask: "subscribe" });
    const late = await logInFully(await stage.enter("bob", "dc2", { resource: "late" }));
    cluster.rejoin("dc2");
    await expectPresence(alice, bob.jid);
    await expectPresence(alice, late.jid);
    for (const client of [bob, late]) await expectPresence(client, alice.jid);
    await expectMark(alice, bob);
    await expectMark(bob, alice);
    assert.deepEqual(presencesFrom(alice, bob.jid), [undefined, "unavailable", undefined], "once");
    assert.deepEqual(presencesFrom(alice, late.jid), [undefined], "once");
    assert.match((await expectPresence(bob, carol.jid)).xml, /<priority>7</, "as she has sent it");
    await expectPresence(bob, accountOf(carol), "subscribe");
    say(
      "it is back, and bob gets carol's request: everybody sees everybody again, once, and who has logged in meanwhile",
    );

    const { node } = cluster.datacenter("dc3");
    const killed = await lookAt(cluster, { from: "dc3", at: "dc1" });
    await node.kill();
    await expectWithdrawal(cluster, killed);
    await expectPresence(alice, carol.jid, "unavailable");
    await expectPresence(bob, carol.jid, "unavailable");
    const toBob = presencesFrom(bob, carol.jid);
    assert.deepEqual(toBob, [undefined, "unavailable", undefined, "unavailable"], "once each");
    assert.deepEqual(presencesFrom(alice, carol.jid), [undefined, "unavailable"], "once");
    await node.start();
    const again = await logInFully(await stage.enter("carol", "dc3"));
    await expectPresence(alice, again.jid);
    await expectPresence(again, alice.jid);
    assert.equal(accountOf(again), accountOf(carol));
    say("dc3 is killed, and carol goes; she comes back with it");

    const [, resource] = again.jid.split("/");
    const newer = await logInFully(await stage.enter("carol", "dc1", { resource: resource! }));
    assert.equal(newer.jid, again.jid);
    await expectPresence(alice, newer.jid);
    const known = presencesFrom(alice, newer.jid).length;
    const dropped = await outdatedAt(cluster.datacenter("dc1"));
    await again.kill();
    await cluster.until(
      async () => await outdatedAt(cluster.datacenter("dc1")) > dropped,
      { what: "dc1 drops the end of carol's older session", withinMs: PATIENCE_MS },
    );
    await expectMark(alice, newer);
    assert.deepEqual(presencesFrom(alice, newer.jid).slice(known), []);
    say("carol logs in at dc1 as the same resource: the end of her session at dc3 removes nothing");
  },
};

/** A datacenter that is about to lose another one. */
interface Loss {
  readonly from: string;
  readonly at: string;
  /** Key of the lease of the other one's node. */
  readonly lease: string;
  /** Resources whose presence the node has withdrawn before. */
  readonly before: number;
}

async function lookAt(
  cluster: Cluster,
  { from, at }: Pick<Loss, "from" | "at">,
): Promise<Loss> {
  const pattern = `causeway:node:${cluster.datacenter(from).localHost}#*`;
  const datacenter = cluster.datacenter(at);
  // KEYS returns a list of keys.
  const keys = await datacenter.redisClient.call("KEYS", pattern) as string[];
  assert.equal(keys.length, 1, `${at} has the lease of ${from}`);
  return { from, at, lease: keys[0]!, before: await withdrawnAt(datacenter) };
}

/**
 * Waits until dc1, or another datacenter, has withdrawn the presence from one that is gone. The time is
 * counted as its node does: by the life of the lease in Redis, and by looks at who lives, one a second.
 */
async function expectWithdrawal(
  cluster: Cluster,
  { from, at, lease, before }: Loss,
): Promise<void> {
  const datacenter = cluster.datacenter(at);
  const { redisClient } = datacenter;
  let lifeMs = 0;
  const looks: number[] = [];
  await cluster.until(async () => {
    const leftMs = Number(await redisClient.call("PTTL", lease));
    lifeMs = Math.max(lifeMs, leftMs);
    const figures = await Figures.read(datacenter);
    if (figures.sum(WITHDRAWN) > before) return true;
    if (leftMs < 0) looks.push(figures.sum("causeway_presence_looks_total"));
    return false;
  }, { what: `${at} withdraws the presence from ${from}`, withinMs: PATIENCE_MS });
  assert.ok(lifeMs <= EXPIRE_AFTER * 1_000, `the lease of ${from} lives for ${lifeMs} ms`);
  const waited = (looks.at(-1) ?? 0) - (looks[0] ?? 0);
  assert.ok(waited <= LOOKS, `${at} has looked ${waited} times after the end of the lease`);
}

const WITHDRAWN = "causeway_presence_withdrawn_total";

/** Returns how many resources' presence a datacenter's node has withdrawn. */
async function withdrawnAt(datacenter: Datacenter): Promise<number> {
  return (await Figures.read(datacenter)).sum(WITHDRAWN);
}

/** Returns how many outdated presences a datacenter's node has dropped. */
async function outdatedAt(datacenter: Datacenter): Promise<number> {
  return (await Figures.read(datacenter)).sum("causeway_presence_outdated_total");
}
