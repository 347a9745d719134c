import type { Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { readiness } from "./_readiness.ts";
import { Stage } from "./_stage.ts";

export const LATE_REDIS: Scenario = {
  name: "late-redis",
  summary: "a node starts degraded without Redis, says so, and recovers when Redis comes",
  options: { datacenters: 2 },
  async run(cluster, say) {
    const [dc1, dc2] = [cluster.datacenter("dc1"), cluster.datacenter("dc2")];
    await dc1.node.stop();
    await dc1.redis.stop();
    await dc1.node.start();
    const early = await readiness(dc1);
    if (early.status !== 503 || !early.reasons.some((reason) => /^redis\b/.test(reason))) {
      throw new Error(`Expected 503 because of Redis: got ${JSON.stringify(early)}`);
    }
    const health = await fetch(dc1.adminUrl("/health"));
    await health.body?.cancel();
    if (health.status !== 200) throw new Error(`Expected it to be alive: got ${health.status}`);
    say(`dc1 started without Redis; /ready says 503: ${early.reasons.join(", ")}`);

    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    const carol = await stage.enterAvailable("carol", "dc1");
    await alice.sendMessage(carol.jid, "just us two");
    await carol.expectMessage("just us two");
    const bob = await stage.enterAvailable("bob", "dc2");
    const unknown = await alice.sendMessage(bob.jid, "can you hear me?");
    await alice.expectError(unknown, "service-unavailable");
    say("users at dc1 talk to each other; a message to another datacenter comes back as an error");

    await dc1.redis.start();
    await cluster.until(async () => (await readiness(dc1)).status === 200, {
      what: "/ready says 200",
    });
    for (const client of [alice, carol]) await stage.untilTableSays(client.jid, dc1.localHost);
    // Entries that dc2 wrote while dc1's Redis was away arrive with dc2's next renewal. A new login
    // arrives at once.
    const again = await stage.enterAvailable("bob", "dc2");
    await stage.untilTableSays(again.jid, dc2.localHost);
    await again.sendMessage(alice.jid, "now I can");
    await alice.expectMessage("now I can");
    await alice.sendMessage(again.jid, "so can I");
    await again.expectMessage("so can I");
    if ((await Figures.read(dc1)).sum("causeway_redis_up") !== 1) {
      throw new Error("Expected dc1 to count its Redis as up");
    }
    for (const client of [alice, bob, carol, again]) await client.expectNothingElse();
    say("Redis came: dc1 is ready, its sessions are in every table, and both sides talk");
  },
};
