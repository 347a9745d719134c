import assert from "node:assert/strict";
import type { FailoverRedis, RedisForm } from "../redis/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Correspondence } from "./_correspondence.ts";
import { Figures } from "./_figures.ts";
import { Letters } from "./_letters.ts";
import { untilReady } from "./_readiness.ts";
import { Stage } from "./_stage.ts";

/**
 * Milliseconds allowed for a failover. It takes some seconds. Sentinels do nothing for half a minute
 * after each standstill of the machine (TILT mode).
 */
const FAILOVER_MS = 180_000;
/** Messages that everyone writes to everyone in each phase. */
const MESSAGES = 30;

/** A master of one datacenter's Redis dies while users talk, and another server replaces it. */
export const REDIS_FAILOVERS: readonly Scenario[] = [
  failover("sentinel", "the master that three Sentinels watch"),
  failover("cluster", "one of the three masters of a Redis Cluster"),
];

function failover(form: Exclude<RedisForm, "single">, what: string): Scenario {
  return {
    name: `redis-${form}-failover`,
    summary:
      `${what} dies: users keep talking, dc1 reports it, and its table becomes complete again`,
    replications: ["builtin"],
    options: {
      datacenters: 2,
      redisForm: form,
      configure({ modules }) {
        modules.mod_global_distrib["cache"] = { jid_lifetime_seconds: 1 };
      },
    },
    async run(cluster, say) {
      await using stage = new Stage(cluster);
      const [dc1, dc2] = [cluster.datacenter("dc1"), cluster.datacenter("dc2")];
      const redis = dc1.redis as FailoverRedis; // `redisForm` makes one
      const people = [
        { at: "dc1", client: await stage.enterAvailable("alice", "dc1") },
        { at: "dc1", client: await stage.enterAvailable("carol", "dc1") },
        { at: "dc2", client: await stage.enterAvailable("bob", "dc2") },
        { at: "dc2", client: await stage.enterAvailable("carol", "dc2", { resource: "tablet" }) },
      ];
      const untilComplete = async () => {
        for (const { at, client } of people) {
          await stage.untilTableSays(client.jid, cluster.datacenter(at).localHost);
        }
      };
      await untilComplete();
      await using talk = new Correspondence(cluster, people.map(({ client }) => client));
      talk.start();
      await talk.goesOnFor(MESSAGES);

      await redis.killMaster();
      await untilReady(cluster, dc1, /redis/);
      await talk.goesOnFor(MESSAGES);
      const desk = await stage.enterAvailable("alice", "dc1", { resource: "desk" });
      await new Letters(desk).expectOf(desk);
      people.push({ at: "dc1", client: desk });
      await untilReady(cluster, dc2);
      say(
        "a master has died: dc1 reports it, dc2 is ready; users keep talking, and alice logs in " +
          "again",
      );

      await untilReady(cluster, dc1, undefined, { withinMs: FAILOVER_MS });
      await untilComplete();
      assert.equal((await Figures.read(dc1)).sum("causeway_redis_up"), 1);
      await talk.goesOnFor(MESSAGES);
      await redis.restore();
      await talk.goesOnFor(MESSAGES);
      await untilComplete();
      await untilReady(cluster, dc1);
      say("another server has taken over: dc1 is ready, and every session is in every table");

      const { sent, returned } = await talk.check();
      assert.equal(returned, 0, "messages that came back");
      say(`${sent} messages: each has arrived, once and in order`);
    },
  };
}
