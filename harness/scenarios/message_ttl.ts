import assert from "node:assert/strict";
import type { Cluster } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { becomeAvailable, Stage } from "./_stage.ts";

/** `message_ttl` by datacenter: dc1 keeps the default, 4. */
const TTLS: Readonly<Record<string, number>> = { dc2: 1, dc3: 0 };

/**
 * Stanzas go no further than their TTL allows. Wrong entries are written directly into the Redis of
 * a datacenter, bypassing its replicator. No node has a claim on the addresses.
 */
export const MESSAGE_TTL: Scenario = {
  name: "message-ttl",
  summary: "a message between tables that point at each other stops at its TTL, and is counted",
  options: {
    configure({ modules }, { name }) {
      const ttl = TTLS[name];
      if (ttl !== undefined) modules.mod_global_distrib["message_ttl"] = ttl;
    },
  },
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    const bob = await stage.enterAvailable("bob", "dc2");
    const carol = await stage.enterAvailable("carol", "dc3");
    for (const [client, at] of [[alice, "dc1"], [bob, "dc2"], [carol, "dc3"]] as const) {
      await stage.untilTableSaysOfSession(client, at);
    }

    // dc1 believes that she is at dc2, and dc2 that she is at dc1.
    const ghost = `carol@${cluster.globalHost}/ghost`;
    await plant(cluster, { at: "dc1", jid: ghost, host: "dc2" });
    await plant(cluster, { at: "dc2", jid: ghost, host: "dc1" });
    let counted = await countAll(cluster);
    const looped = await alice.sendMessage(ghost, "round and round");
    const error = await alice.expectError(looped, "service-unavailable");
    assert.deepEqual([error.from, error.to], [ghost, alice.jid]);
    assert.deepEqual(moved(counted, counted = await countAll(cluster)), {
      "dc1 stop_ttl_zero": 1,
      "dc1 → dc2": 2,
      "dc2 → dc1": 2,
    });
    say("TTL 4: four hops between dc1 and dc2, then the error; counted where it stopped");

    const near = await bob.sendMessage(alice.jid, "one hop");
    assert.equal((await alice.expectMessage("one hop")).id, near);
    counted = await countAll(cluster);
    const second = `carol@${cluster.globalHost}/second`;
    await plant(cluster, { at: "dc2", jid: second, host: "dc1" });
    await plant(cluster, { at: "dc1", jid: second, host: "dc3" });
    const far = await bob.sendMessage(second, "two hops");
    await bob.expectError(far, "service-unavailable");
    assert.deepEqual(moved(counted, counted = await countAll(cluster)), {
      "dc1 stop_ttl_zero": 1,
      "dc2 → dc1": 1,
      "dc1 → dc2": 1, // the error
    });
    say("TTL 1: one hop is made, a second one is not");

    const stays = await carol.sendMessage(alice.jid, "no hop");
    await carol.expectError(stays, "service-unavailable");
    assert.deepEqual(moved(counted, counted = await countAll(cluster)), { "dc3 stop_ttl_zero": 1 });
    say("TTL 0: nothing leaves dc3");

    const desk = await stage.enter("alice", "dc3", { resource: "desk" });
    await becomeAvailable(desk);
    const elsewhere = `alice@${cluster.globalHost}/elsewhere`;
    await plant(cluster, { at: "dc3", jid: elsewhere, host: "dc1" });
    counted = await countAll(cluster);
    await carol.sendMessage(elsewhere, "you are here after all");
    await desk.expectMessage("you are here after all");
    assert.deepEqual(moved(counted, counted = await countAll(cluster)), { "dc3 stop_ttl_zero": 1 });
    say(
      "when no hops are left, local delivery is tried: alice's other client at dc3 gets the " +
        "message",
    );

    await alice.expectNothingElse(bob);
    await bob.expectNothingElse(alice);
    await carol.expectNothingElse(bob);
    await carol.expectNothingElse(desk);
    await desk.expectNothingElse(carol);
    say("nothing else arrived anywhere");
  },
};

/** Puts an entry into one datacenter's Redis and no other. */
async function plant(
  cluster: Cluster,
  { at, jid, host }: { readonly at: string; readonly jid: string; readonly host: string },
): Promise<void> {
  const { redisClient } = cluster.datacenter(at);
  await redisClient.call("SET", jid, cluster.datacenter(host).localHost, "EX", 120);
}

/** Everything in `counted` that has changed, and by how much. */
function moved(before: Counts, after: Counts): Counts {
  return Object.fromEntries(
    Object.entries(after)
      .map(([name, count]) => [name, count - (before[name] ?? 0)] as const)
      .filter(([, difference]) => difference !== 0),
  );
}

type Counts = Readonly<Record<string, number>>;

async function countAll(cluster: Cluster): Promise<Counts> {
  const counts: Record<string, number> = {};
  for (const from of cluster.datacenters) {
    const figures = await Figures.read(from);
    counts[`${from.name} stop_ttl_zero`] = figures.classic("stop_ttl_zero");
    for (const to of cluster.datacenters) {
      if (to === from) continue;
      counts[`${from.name} → ${to.name}`] = figures.classic(`outgoing.messages.${to.localHost}`);
    }
  }
  return counts;
}
