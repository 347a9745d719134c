import assert from "node:assert/strict";
import type { ChatClient, ReceivedStanza } from "../clients/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { PING } from "./_ping.ts";
import { isPresence, Stage } from "./_stage.ts";

const MAX_RETRIES = 4;

/** Stanzas to an account without a session wait for a login, and then come back. */
export const NOBODY_HOME: Scenario = {
  name: "nobody-home",
  summary: "stanzas to an account without a session bounce, and come back as the right error",
  options: {
    configure({ modules }, { name }) {
      const distribution = modules.mod_global_distrib;
      // 15 s at dc2, in which people talk while a message waits; 1.5 s at the others.
      const resendAfterMs = name === "dc2" ? 1000 : 100;
      distribution["bounce"] = { resend_after_ms: resendAfterMs, max_retries: MAX_RETRIES };
      // Other lookups happen once, so every further question to Redis is a retry.
      distribution["cache"] = { jid_lifetime_seconds: 600 };
    },
  },
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const dc1 = cluster.datacenter("dc1");
    const bob = `bob@${cluster.globalHost}`;
    const alice = await stage.enterAvailable("alice", "dc1");
    const carol = await stage.enterAvailable("carol", "dc3");
    await carol.expectNothingElse(alice);
    await alice.expectNothingElse(carol);

    const dc2 = cluster.datacenter("dc2");
    const tablet = await stage.enterAvailable("alice", "dc2", { resource: "tablet" });
    await carol.expectNothingElse(tablet);
    await tablet.expectNothingElse(carol);
    // Her other client's presence is from dc1, which dc2 learns by a lookup of its own.
    await tablet.expectStanza(isPresence({ from: alice.jid, type: undefined }));
    const before = await Figures.read(dc2);
    const kept = await tablet.sendMessage(bob, "are you there?");
    await cluster.until(async () => (await Figures.read(dc2)).classic("bounce_queue_size") === 1, {
      what: "dc2 holds the message",
      everyMs: 5,
    });
    // While it waits, stanzas to other recipients do not wait behind it.
    await tablet.sendMessage(carol.jid, "is bob there?");
    await carol.expectMessage("is bob there?");
    await carol.sendMessage(tablet.jid, "no");
    await tablet.expectMessage("no");
    const late = await tablet.expectError(kept, "service-unavailable");
    assert.deepEqual([late.from, late.to], [bob, tablet.jid]);
    assertOrder(tablet, [(stanza) => stanza.body === "no", (stanza) => stanza.id === kept]);
    const after = await Figures.read(dc2);
    assert.equal(after.classic("bounce_queue_size"), 0);
    assert.equal(after.sum(HELD) - before.sum(HELD), 1);
    assert.equal(
      after.classic("mapping_cache_misses") - before.classic("mapping_cache_misses"),
      1 + MAX_RETRIES,
      "it is looked up once, and again at each retry",
    );
    await tablet.expectNothingElse();
    await tablet.disconnect();
    await stage.untilGone(tablet.jid);
    say(`a message to bob is held, looked up again ${MAX_RETRIES} times, and comes back`);

    const id = await alice.sendMessage(bob, "are you there?");
    const error = await alice.expectError(id, "service-unavailable");
    assert.deepEqual([error.from, error.to], [bob, alice.jid]);

    const ids: string[] = [];
    for (let n = 0; n < 20; n++) ids.push(await alice.sendMessage(bob, `message ${n}`));
    for (const each of ids) await alice.expectError(each, "service-unavailable");
    assertOrder(alice, ids.map((each) => (stanza) => stanza.id === each));
    say("twenty more come back in the order in which they were sent");

    const stranger = `nobody-of-this-name@${cluster.globalHost}`;
    const strangerId = await alice.sendMessage(stranger, "are you there?");
    const strangerError = await alice.expectError(strangerId, "service-unavailable");
    assert.equal(
      strangerError.xml.replaceAll(stranger, bob).replaceAll(strangerId, id),
      error.xml,
    );
    say("a nonexistent account gives the same errors as one without a session");

    const answer = await alice.iq({ type: "get", to: bob, payload: PING });
    assert.deepEqual([answer.from, answer.errorCondition], [bob, "service-unavailable"]);
    say("a request comes back too");

    const subscribed = await Figures.read(dc1);
    await alice.presence({ to: stranger, type: "subscribe" });
    await cluster.until(
      async () => (await Figures.read(dc1)).sum(SUBSCRIPTIONS, { outcome: "ignored" }) === 1,
      { what: "the request is ignored" },
    );
    assert.equal((await Figures.read(dc1)).sum(HELD), subscribed.sum(HELD));
    say("a request for a subscription to nobody is ignored, and does not bounce");
    await alice.presence({ to: bob, type: "unsubscribe" });
    await cluster.until(
      async () => (await Figures.read(dc1)).sum(SUBSCRIPTIONS, { outcome: "unchanged" }) === 2,
      { what: "both rosters have seen the end of no subscription" },
    );
    const unsubscribed = await Figures.read(dc1);
    assert.equal(unsubscribed.sum(HELD), subscribed.sum(HELD));
    say("an unsubscribe changes the rosters of both, or not, and does not bounce");

    await alice.presence({ to: bob });
    await alice.presence({ to: bob, type: "unavailable" });
    await cluster.until(
      async () => movedSum(unsubscribed, await Figures.read(dc1), DROPPED, "no-route") === 2,
      { what: "presence for nobody is counted as dropped" },
    );
    say("presence to him is dropped, and counted");

    const held = (await Figures.read(dc1)).sum(HELD);
    await expectRefusal(alice, "somebody@elsewhere.example", "remote-server-not-found");
    await expectRefusal(alice, "dc1.example.com", "service-unavailable");
    await expectRefusal(alice, "dc2.example.com", "service-unavailable");
    assert.equal((await Figures.read(dc1)).sum(HELD), held, "none of them was held");
    say("stanzas to foreign domains, or to local hosts, are answered without bouncing");

    await expectRefusal(alice, "somebody@dc2.example.com", "service-unavailable");
    assert.equal((await Figures.read(dc1)).sum(HELD), held, "dc2 looks for its own people");
    await expectRefusal(alice, "somebody@dc1.example.com", "service-unavailable");
    assert.equal((await Figures.read(dc1)).sum(HELD), held + 1);
    say("a stanza to an unknown account at a local host bounces at that host, and comes back");

    const silent = await stage.enter("bob", "dc2");
    await stage.untilTableSaysOfSession(silent, "dc2");
    const unheard = await alice.sendMessage(bob, "are you there now?");
    const unheardError = await alice.expectError(unheard, "service-unavailable");
    assert.equal(unheardError.xml.replaceAll(unheard, id), error.xml);
    await silent.expectNothingElse(alice);
    await silent.disconnect();
    await stage.untilGone(bob);
    say("a client without presence does not count for his bare JID");

    await carol.expectNothingElse(alice);
    await alice.expectNothingElse(carol);
    await alice.expectNothingElse();
    say("nothing else arrived");
  },
};

const HELD = "causeway_bounce_held_total";
const SUBSCRIPTIONS = "causeway_subscriptions_total";
const DROPPED = "causeway_stanzas_dropped_total";

/** Returns the increase of the counter `name` with this reason. */
function movedSum(before: Figures, after: Figures, name: string, reason: string): number {
  return after.sum(name, { reason }) - before.sum(name, { reason });
}

async function expectRefusal(alice: ChatClient, to: string, condition: string): Promise<void> {
  const id = await alice.sendMessage(to, "is anybody there?");
  const error = await alice.expectError(id, condition);
  assert.deepEqual([error.from, error.to], [to, alice.jid]);
}

/** Checks that `client` received stanzas that match the predicates, in their order. */
function assertOrder(
  client: ChatClient,
  predicates: readonly ((stanza: ReceivedStanza) => boolean)[],
): void {
  const places = predicates.map((predicate) => client.received.findIndex(predicate));
  assert.ok(!places.includes(-1));
  assert.deepEqual(places, places.toSorted((left, right) => left - right));
}
