import type { CausewayConfiguration, Cluster, Datacenter } from "../cluster/mod.ts";
import { REPLICATIONS, type Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { expectAll, sendAll } from "./_numbered.ts";
import { bare, Stage } from "./_stage.ts";
import { putEntries, takeEntries } from "./_table_entries.ts";

const ROUNDS = 10;
/** Messages of a round that go straight through. As many bounce. */
const HALF = 10;

/** Entries come and go under a stream of messages: each second batch has to wait. */
const HALF_BOUNCING: Scenario = {
  name: "order-half-bouncing",
  summary: "every second batch of ten out of 200 messages bounces, and all arrive in order",
  options: {
    datacenters: 2,
    configure({ modules }: CausewayConfiguration) {
      const distribution = modules.mod_global_distrib;
      distribution["cache"] = { jid_lifetime_seconds: 0 }; // every message asks Redis
      distribution["bounce"] = { resend_after_ms: 100, max_retries: 8 };
    },
  },
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const dc1 = cluster.datacenter("dc1");
    const alice = await stage.enterAvailable("alice", "dc1");
    const bob = await stage.enterAvailable("bob", "dc2");
    await stage.untilTableSaysOfSession(bob, "dc2");
    cluster.replication("dc2", "dc1").part(); // so that replication does not restore the deleted entries
    const before = await Figures.read(dc1);
    let sent = 0;
    for (let round = 0; round < ROUNDS; round++) {
      await sendAll([alice], bob, { from: sent, to: sent += HALF });
      await untilSent(cluster, before, sent);
      const entries = await takeEntries(cluster, bob.jid);
      await sendAll([alice], bob, { from: sent, to: sent += HALF });
      await untilBouncing(cluster, dc1, HALF);
      await putEntries(cluster, entries);
      await untilSent(cluster, before, sent);
    }
    await expectAll([alice], bob, sent);
    const held = (await Figures.read(dc1)).sum(HELD) - before.sum(HELD);
    if (held !== sent / 2) throw new Error(`Expected ${sent / 2} to have bounced: ${held} did`);
    say(`${held} of ${sent} messages had to wait; all arrived in order, once`);
  },
};

const CROWD = 99;

/** Bouncing messages go at once when their recipient is located, long before the next retry. */
const NINETY_NINE: Scenario = {
  name: "order-ninety-nine-released",
  summary: "99 messages wait for a user without a session, and arrive in order after his login",
  replications: REPLICATIONS,
  options: {
    datacenters: 3,
    configure({ modules }: CausewayConfiguration) {
      // No retry comes within the scenario, so only the login can release the messages.
      modules.mod_global_distrib["bounce"] = { resend_after_ms: 120_000, max_retries: 2 };
    },
  },
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const dc1 = cluster.datacenter("dc1");
    const alice = await stage.enterAvailable("alice", "dc1");
    const carol = await stage.enterAvailable("carol", "dc1");
    const address = `bob@${cluster.globalHost}`;
    for (let number = 0; number < CROWD; number++) {
      await alice.sendMessage(address, String(number));
    }
    await untilBouncing(cluster, dc1, CROWD);
    say(`${CROWD} messages to bob, who has no session, wait at dc1`);

    const bob = await stage.enterAvailable("bob", "dc2");
    await stage.untilTableSaysOfSession(bob, "dc2");
    if (cluster.options.replication === "external") {
      await untilBouncing(cluster, dc1, CROWD); // no lookup has found him yet
      await bob.sendMessage(carol.jid, "good morning");
      await carol.expectMessage("good morning");
    } // with builtin replication, his login itself reaches dc1
    for (let number = 0; number < CROWD; number++) {
      const { body, from, to } = await bob.expectMessage(() => true);
      if (body !== String(number) || from !== alice.jid || to !== bare(bob.jid)) {
        throw new Error(`Expected message ${number} of ${alice.jid}: "${body}" of ${from} came`);
      }
    }
    await untilBouncing(cluster, dc1, 0);
    await bob.expectNothingElse(alice);
    await alice.expectNothingElse(bob);
    await carol.expectNothingElse(bob);
    say("bob logs in at dc2, and dc1 learns of it: all messages go to him at once, in order, once");
  },
};

export const BOUNCE_ORDER: readonly Scenario[] = [HALF_BOUNCING, NINETY_NINE];

const HELD = "causeway_bounce_held_total";

async function untilBouncing(
  cluster: Cluster,
  datacenter: Datacenter,
  count: number,
): Promise<void> {
  await cluster.until(
    async () => (await Figures.read(datacenter)).classic("bounce_queue_size") === count,
    { what: `${count} stanzas bounce at ${datacenter.name}`, everyMs: 10 },
  );
}

/** Waits until dc1 has sent `count` stanzas to dc2 since `before`, and holds none. */
async function untilSent(cluster: Cluster, before: Figures, count: number): Promise<void> {
  const name = `outgoing.messages.${cluster.datacenter("dc2").localHost}`;
  await cluster.until(async () => {
    const now = await Figures.read(cluster.datacenter("dc1"));
    return now.classic(name) - before.classic(name) === count &&
      now.classic("bounce_queue_size") === 0;
  }, { what: `dc1 has sent ${count} messages on`, everyMs: 10 });
}
