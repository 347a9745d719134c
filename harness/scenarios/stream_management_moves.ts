import assert from "node:assert/strict";
import type { Scenario } from "../scenario.ts";
import { REPLICATIONS } from "../scenario.ts";
import { Figures } from "./_figures.ts";
import { bodiesOf, enterManaged, errorsOf, numbered, proxyBefore } from "./_managed_client.ts";
import { bare, becomeAvailable, Stage } from "./_stage.ts";
import { PATIENCE_MS } from "../until.ts";

const MESSAGES = 60;

/** A dead socket at one datacenter, and the same resource logged in at another. */
export const STREAM_MANAGEMENT_MOVE: Scenario = {
  name: "stream-management-move",
  summary:
    "bob's network dies at dc2 and he logs in at dc3: messages that dc2 holds for him arrive " +
    "there",
  replications: REPLICATIONS,
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    await using proxy = await proxyBefore(cluster, "dc2");
    const entrance = { library: "@xmpp", resource: "phone" } as const;
    await using atDc2 = await enterManaged(cluster, "bob", { ...entrance, at: "dc2", proxy });
    await becomeAvailable(atDc2);
    await stage.untilTableSaysOfSession(atDc2, "dc2");
    await alice.sendMessage(atDc2.jid, "hello");
    await atDc2.expectMessage("hello");

    const dc2 = cluster.datacenter("dc2");
    const before = await Figures.read(dc2);
    // Nothing passes, and neither side notices.
    proxy.blackHole();
    const bodies = numbered("held", 1, MESSAGES);
    for (const [index, body] of bodies.entries()) {
      await alice.sendMessage(index % 2 === 0 ? atDc2.jid : bare(atDc2.jid), body);
    }
    // Wait first: messages on their way during his login would take other routes, depending on the
    // address.
    const sent = "xmpp_stanzas_sent_total";
    await cluster.until(
      async () => (await Figures.read(dc2)).sum(sent) - before.sum(sent) >= MESSAGES,
      { what: `dc2 has sent ${MESSAGES} messages` },
    );
    assert.deepEqual(bodiesOf(atDc2, "held"), []);
    say(`${MESSAGES} messages went to a dead socket at dc2`);

    await using atDc3 = await enterManaged(cluster, "bob", { ...entrance, at: "dc3" });
    assert.equal(atDc3.jid, atDc2.jid);
    await becomeAvailable(atDc3);
    await stage.untilTableSaysOfSession(atDc3, "dc3");
    await cluster.until(() => bodiesOf(atDc3, "held").length >= MESSAGES, {
      what: `bob receives at dc3 what dc2 held`,
      withinMs: 2 * PATIENCE_MS,
      evidence: () => `he has ${bodiesOf(atDc3, "held").length}`,
    });
    await alice.sendMessage(atDc3.jid, "last");
    await atDc3.expectMessage("last");
    assert.deepEqual(bodiesOf(atDc3, "held"), bodies);
    assert.deepEqual(errorsOf(alice), []);
    say("he logs in at dc3 as the same resource, and gets them all there, once and in order");
    await atDc3.disconnect();
  },
};

/** The client never comes back, and kept messages go to another resource of the account. */
export const STREAM_MANAGEMENT_TIMEOUT: Scenario = {
  name: "stream-management-timeout",
  summary: "bob's phone at dc2 never comes back: its messages reach his tablet at dc3 in the end",
  options: {
    configure: (configuration) => {
      // Enough time for the tablet to log in: without a session, messages to bob wait by address.
      configuration.modules["mod_stream_management"] = { resume_timeout: 15 };
    },
  },
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc1");
    await using phone = await enterManaged(cluster, "bob", {
      library: "slixmpp",
      at: "dc2",
      resource: "phone",
    });
    await becomeAvailable(phone);
    await stage.untilTableSaysOfSession(phone, "dc2");
    await phone.kill();
    const bodies = numbered("kept", 1, MESSAGES);
    for (const [index, body] of bodies.entries()) {
      await alice.sendMessage(index % 2 === 0 ? phone.jid : bare(phone.jid), body);
    }
    const tablet = await stage.enterAvailable("bob", "dc3", { resource: "tablet" });
    say("bob's phone is dead at dc2, and his tablet is there at dc3");
    await cluster.until(() => bodiesOf(tablet, "kept").length >= MESSAGES, {
      what: "bob's tablet receives what his phone did not",
      withinMs: 2 * PATIENCE_MS,
      evidence: () => `it has ${bodiesOf(tablet, "kept").length}`,
    });
    await stage.untilGone(phone.jid);
    await alice.sendMessage(tablet.jid, "last");
    await tablet.expectMessage("last");
    const received = bodiesOf(tablet, "kept");
    assert.equal(received.length, MESSAGES);
    // Order is promised for each address. The tablet may be there before the last ones to the bare
    // JID, and gets them at once.
    for (const remainder of [0, 1]) {
      const sent = bodies.filter((_, index) => index % 2 === remainder);
      assert.deepEqual(received.filter((body) => sent.includes(body)), sent);
    }
    assert.deepEqual(errorsOf(alice), []);
    say(`after the time to resume, all ${MESSAGES} messages are on the tablet`);
  },
};
