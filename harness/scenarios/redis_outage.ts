import assert from "node:assert/strict";
import type { CausewayConfiguration } from "../cluster/mod.ts";
import { REPLICATIONS, type Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { Letters } from "./_letters.ts";
import { untilReady } from "./_readiness.ts";
import { Stage } from "./_stage.ts";

const EXPIRE_AFTER_SECONDS = 10;
const HOURGLASS = "scenario:hourglass";

/** One datacenter's Redis goes, stays away until all that it held has expired, and comes back empty. */
export const REDIS_OUTAGE: Scenario = {
  name: "redis-outage",
  summary: "dc1's Redis is gone for longer than expire_after, and comes back empty",
  replications: REPLICATIONS,
  options: {
    datacenters: 2,
    configure({ modules }: CausewayConfiguration) {
      const distribution = modules.mod_global_distrib;
      Object.assign(distribution.redis, { expire_after: EXPIRE_AFTER_SECONDS, refresh_after: 1 });
      distribution["cache"] = { jid_lifetime_seconds: 1 };
    },
  },
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const [dc1, dc2] = [cluster.datacenter("dc1"), cluster.datacenter("dc2")];
    const alice = await stage.enterAvailable("alice", "dc1");
    const desk = await stage.enterAvailable("alice", "dc1", { resource: "desk" });
    const bob = await stage.enterAvailable("bob", "dc2");
    const carol = await stage.enterAvailable("carol", "dc2");
    for (const who of [alice, desk]) await stage.untilTableSaysOfSession(who, "dc1");
    for (const who of [bob, carol]) await stage.untilTableSaysOfSession(who, "dc2");
    const toBob = new Letters(bob);
    const toAlice = new Letters(alice);
    const toDesk = new Letters(desk);
    await toBob.expectOf(alice);
    await toAlice.expectOf(bob);
    const isExternal = cluster.options.replication === "external";

    await dc1.redis.stop();
    // When this key expires, which lives longer than entries, all entries have expired.
    await dc2.redisClient.call("SET", HOURGLASS, "running", "EX", EXPIRE_AFTER_SECONDS + 1);
    await untilReady(cluster, dc1, /redis/);
    await cluster.until(async () => await dc2.redisClient.call("GET", HOURGLASS) === null, {
      what: "expire_after has passed",
    });
    // With external replication no entry of dc1 reaches dc2's table any more, and its entries
    // expire. With builtin replication the nodes still update each other, whatever happens to
    // either Redis.
    const isHeld = async () => {
      const lease = `causeway:node:${dc1.localHost}#${dc1.node.ready.node}`;
      return await dc2.redisClient.call("GET", lease) !== null;
    };
    if (isExternal) {
      await stage.untilTableSays(desk.jid, null, ["dc2"]);
      await cluster.until(async () => !await isHeld(), { what: "dc2 takes dc1's node for dead" });
      const lost = await carol.sendMessage(desk.jid, "where are you?");
      await carol.expectError(lost, "service-unavailable");
    } else await toDesk.expectOf(carol);
    await toBob.expectOf(alice); // the cache answers, long past its lifetime
    await toAlice.expectOf(bob); // dc2 has just learned her place from her message
    await toDesk.expectOf(alice); // both are here
    const lines = dc1.node.logs.filter((line) => /redis\.down/.test(line)).length;
    assert.equal(lines, 1, "an outage is one line in the log");
    say(
      "dc1's Redis is gone, its entries expired: dc1 reports it, and running conversations go on",
    );

    await dc1.redis.start();
    await untilReady(cluster, dc1);
    for (const who of [alice, desk]) await stage.untilTableSaysOfSession(who, "dc1");
    for (const who of [bob, carol]) await stage.untilTableSays(who.jid, dc2.localHost);
    for (const who of [bob, carol]) {
      await toDesk.expectOf(who);
      await toAlice.expectOf(who);
    }
    await toBob.expectOf(desk);
    assert.equal((await Figures.read(dc1)).sum("causeway_redis_up"), 1);
    for (const who of [alice, desk]) await who.expectNothingElse(bob);
    for (const who of [bob, carol]) await who.expectNothingElse(alice);
    say("it comes back empty: every session is in every table again, and nothing else arrived");
  },
};
