import assert from "node:assert/strict";
import type { ChatClient } from "../clients/mod.ts";
import type { CausewayConfiguration } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { CLASSIC_NAMES, ClassicMetrics } from "./_classic_metrics.ts";
import { Letters } from "./_letters.ts";
import { untilAllLinked } from "./_linked.ts";
import { renewCertificate } from "./_renewed_certificate.ts";
import { Stage } from "./_stage.ts";

/** Long enough to count messages that bounce before they are looked up again. */
const RESEND_AFTER_MS = 10_000;
const [DC1, DC2, DC3] = ["dc1.example.com", "dc2.example.com", "dc3.example.com"] as const;

/** Each metric of the contract is driven to an exact value; at each step, every other stands still. */
export const CLASSIC_METRICS: Scenario = {
  name: "classic-metrics",
  summary: "every metric counts its events at once, for each remote host, in both forms",
  replications: ["builtin"],
  options: {
    configure({ modules }: CausewayConfiguration, { name }) {
      const distribution = modules.mod_global_distrib;
      modules["mod_carboncopy"] = false; // it looks the sender's own account up
      // A lookup's result stays cached, unless the scenario wants otherwise.
      distribution["cache"] = { jid_lifetime_seconds: 600 };
      distribution["bounce"] = { resend_after_ms: RESEND_AFTER_MS, max_retries: 1 };
      if (name === "dc2") distribution["message_ttl"] = 0; // no stanza may leave dc2
    },
  },
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    const bob = await stage.enterAvailable("bob", "dc2");
    const carol = await stage.enterAvailable("carol", "dc3");
    for (const [who, at] of [[alice, "dc1"], [bob, "dc2"], [carol, "dc3"]] as const) {
      await stage.untilTableSaysOfSession(who, at);
    }
    await untilAllLinked(cluster);
    // These messages fill the caches with both users' locations.
    await oneByOne(alice, bob, 1);
    await oneByOne(carol, alice, 1);
    await bob.sendMessage(alice.jid, "this goes nowhere");
    await bob.expectStanza(({ type }) => type === "error");
    const metrics = await ClassicMetrics.of(cluster);

    await oneByOne(alice, bob, 7);
    await metrics.expect({
      dc1: {
        [`outgoing.messages.${DC2}`]: 7,
        [`outgoing.queue_time.${DC2}[us]`]: 7,
        mapping_fetches: 7,
        "mapping_fetch_time[us]": 7,
      },
      dc2: {
        [`incoming.messages.${DC1}`]: 7,
        [`incoming.transfer_time.${DC1}[us]`]: 7,
        "incoming.queue_time[us]": 7,
        mapping_fetches: 7,
        "mapping_fetch_time[us]": 7,
        delivered_with_ttl: 7,
      },
    });
    say("7 messages from dc1 to dc2: sent, received, timed, looked up and delivered 7 times");

    await oneByOne(carol, alice, 3);
    await metrics.expect({
      dc3: {
        [`outgoing.messages.${DC1}`]: 3,
        [`outgoing.queue_time.${DC1}[us]`]: 3,
        mapping_fetches: 3,
        "mapping_fetch_time[us]": 3,
      },
      dc1: {
        [`incoming.messages.${DC3}`]: 3,
        [`incoming.transfer_time.${DC3}[us]`]: 3,
        "incoming.queue_time[us]": 3,
        mapping_fetches: 3,
        "mapping_fetch_time[us]": 3,
        delivered_with_ttl: 3,
      },
    });
    say("3 messages from dc3 to dc1 are counted under dc3");

    const desk = await stage.enterAvailable("bob", "dc2", { resource: "desk" });
    await stage.untilTableSays(desk.jid, DC2);
    await metrics.settle(); // presence to bob's other client is looked up too
    await oneByOne(alice, desk, 1);
    await metrics.expect({
      dc1: {
        [`outgoing.messages.${DC2}`]: 1,
        [`outgoing.queue_time.${DC2}[us]`]: 1,
        mapping_fetches: 1,
        mapping_cache_misses: 1,
        "mapping_fetch_time[us]": 1,
      },
      dc2: {
        [`incoming.messages.${DC1}`]: 1,
        [`incoming.transfer_time.${DC1}[us]`]: 1,
        "incoming.queue_time[us]": 1,
        mapping_fetches: 1,
        "mapping_fetch_time[us]": 1,
        delivered_with_ttl: 1,
      },
    });
    say("a recipient not looked up before: one miss, one question to Redis, timed");

    const ids: string[] = [];
    for (const nobody of ["nobody", "noone", "nemo"]) {
      ids.push(await alice.sendMessage(`${nobody}@${cluster.globalHost}`, "anybody?"));
    }
    const asked = (times: number) => ({
      mapping_fetches: times,
      mapping_cache_misses: times,
      "mapping_fetch_time[us]": times,
    });
    await metrics.expect({ dc1: { ...asked(3), bounce_queue_size: 3 } });
    for (const id of ids) await alice.expectError(id, "service-unavailable");
    const questions = asked(3);
    await metrics.expect({
      dc1: {
        ...questions,
        mapping_fetches: questions.mapping_fetches + 3, // lookups of the errors' recipient
        "mapping_fetch_time[us]": questions.mapping_fetches + 3,
        delivered_with_ttl: 3,
        bounce_queue_size: -3,
      },
    });
    say(
      "3 messages for an unknown user: all bounce, are looked up once more each, and leave the " +
        "bounce store",
    );

    const stays = await bob.sendMessage(alice.jid, "no further");
    await bob.expectError(stays, "service-unavailable");
    await metrics.expect({
      dc2: { mapping_fetches: 2, "mapping_fetch_time[us]": 2, stop_ttl_zero: 1 },
    });
    say("a message without hops left stops, once");

    for (const proxy of cluster.links("dc1", "dc2")) proxy.cut();
    await metrics.expect({
      dc1: { [`outgoing.errored.${DC2}`]: 1, [`outgoing.established.${DC2}`]: 1 },
      dc2: {
        [`incoming.errored.${DC1}`]: 1,
        "incoming.established": 1,
        [`incoming.first_packet.${DC1}`]: 1,
      },
    });
    say("a cut link: an error on both sides, and a new link on both");

    const dc1 = cluster.datacenter("dc1");
    await renewCertificate(cluster, dc1);
    dc1.node.signal("SIGHUP"); // it connects anew, one link after the other
    const again = {
      [`incoming.closed.${DC1}`]: 1,
      "incoming.established": 1,
      [`incoming.first_packet.${DC1}`]: 1,
    };
    await metrics.expect({
      dc1: {
        [`outgoing.closed.${DC2}`]: 1,
        [`outgoing.established.${DC2}`]: 1,
        [`outgoing.closed.${DC3}`]: 1,
        [`outgoing.established.${DC3}`]: 1,
      },
      dc2: again,
      dc3: again,
    });
    say("links renewed in order: closed and established, no error");

    expectUsable(metrics);
    for (const who of [bob, desk]) await who.expectNothingElse(alice);
    for (const who of [alice, carol]) await who.expectNothingElse(carol);
    say("histograms have all their figures, and buckets from microseconds to seconds");
  },
};

/** Sends each message after the one before has arrived, so that each is a batch of its own. */
async function oneByOne(from: ChatClient, to: ChatClient, count: number): Promise<void> {
  const letters = new Letters(to);
  for (let number = 0; number < count; number++) await letters.expectOf(from);
}

/** Checks the figures of the histograms besides their counts. */
function expectUsable(metrics: ClassicMetrics): void {
  const { ratePerSec: _rate, count: _count, ...ttls } = metrics.page("dc2")
    .summary("delivered_with_ttl");
  const three = { min: 3, mean: 3, p50: 3, p95: 3, p99: 3, "p99.9": 3, max: 3 };
  assert.deepEqual(ttls, three, "dc1 starts with 4, and one hop was made");
  for (const { classic, prometheus, kind } of CLASSIC_NAMES) {
    if (!classic.endsWith("[us]")) continue;
    assert.equal(kind, "histogram");
    const { min, mean, p50, p95, p99, "p99.9": p999, max } = metrics.page("dc1")
      .summary(classic.replace("<host>", classic.startsWith("incoming") ? DC3 : DC2));
    const rising = [min, p50, p95, p99, p999, max];
    assert.deepEqual(rising, rising.toSorted((one, other) => one - other), classic);
    assert.ok(min <= mean && mean <= max, classic);
    assert.ok(max < 60_000_000, `${classic} is in microseconds: ${max}`);
    const bounds = metrics.page("dc1").bounds(prometheus);
    assert.ok(bounds[0]! <= 0.000_01, `${prometheus} tells microseconds apart: ${bounds}`);
    assert.ok(bounds.at(-2)! >= 5, `${prometheus} reaches to seconds: ${bounds}`);
    assert.equal(bounds.at(-1), Infinity);
  }
}
