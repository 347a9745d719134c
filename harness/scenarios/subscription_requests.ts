import assert from "node:assert/strict";
import type { ChatClient, ReceivedStanza } from "../clients/mod.ts";
import type { Cluster, Datacenter } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { expectPresence } from "./_contacts.ts";
import { Figures } from "./_figures.ts";
import { bare, becomeAvailable, Stage } from "./_stage.ts";
import { TWO_NODES } from "./_two_nodes.ts";

const SUBSCRIPTIONS = "causeway_subscriptions_total";

/** Subscription requests to users who are offline (RFC 6121 §3.1.3). */
export const SUBSCRIPTION_REQUESTS: Scenario = {
  name: "subscription-requests",
  summary: "a subscription request to an offline user arrives at each login, at any datacenter, " +
    "until it is answered",
  options: TWO_NODES,
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const [dc1, dc2] = ["dc1", "dc2"].map((each) => cluster.datacenter(each)) as [
      Datacenter,
      Datacenter,
    ];
    const account = (who: string) => `${who}@${cluster.globalHost}`;
    const alice = await stage.enterAvailable("alice", "dc1");

    await alice.presence({ to: account("bob"), type: "subscribe" });
    await untilCounted(cluster, "applied", 2); // in her roster, and in his
    const first = await stage.enter("bob", "dc2", { node: 1 });
    await stage.untilTableSaysOfSession(first, "dc2");
    assert.deepEqual(requestsAt(first), [], "he has not said that he is there");
    await becomeAvailable(first);
    await first.expectStanza(isRequest(account("alice")));
    say(
      "alice sends bob a request while he is offline; he logs in at dc2, and gets it after his " +
        "presence",
    );

    await first.disconnect();
    await stage.untilGone(first.jid);
    const second = await stage.enterAvailable("bob", "dc1", { node: 1 });
    await second.expectStanza(isRequest(account("alice")));
    say("bob has not answered: he gets it again when he logs in at dc1");

    await second.presence({ to: account("alice"), type: "subscribed" });
    await alice.expectStanza(({ kind, type, from }) =>
      kind === "presence" && type === "subscribed" && from === account("bob")
    );
    await second.disconnect();
    await stage.untilGone(second.jid);
    for (const at of ["dc2", "dc1"]) {
      const bob = await stage.enterAvailable("bob", at);
      await stage.untilTableSaysOfSession(bob, at);
      await bob.expectNothingElse(alice);
      assert.deepEqual(requestsAt(bob), []);
      await bob.disconnect();
      await stage.untilGone(bob.jid);
      await expectPresence(alice, bob.jid, "unavailable"); // what comes later is counted below
    }
    say("he answers, and does not get the request again");

    const received = alice.received.length;
    const applied = await counted(cluster, "applied");
    await alice.presence({ to: account("nobody"), type: "subscribe" });
    await alice.presence({ to: account("carol"), type: "subscribe" });
    await alice.presence({ to: account("bob"), type: "subscribe" });
    await alice.presence({ to: account("bob"), type: "unsubscribe" });
    await untilCounted(cluster, "ignored", 1);
    // What she asks carol, and the end of what she asked bob, in the rosters of both sides.
    await untilCounted(cluster, "applied", applied + 4);
    assert.equal(alice.received.length, received, "nobody tells who exists");
    say("a request to a nonexistent account is ignored and counted; alice sees no difference");

    await dc1.node.kill();
    await dc1.node.start();
    const carol = await stage.enterAvailable("carol", "dc2");
    await carol.expectStanza(isRequest(account("alice")));
    const bob = await stage.enterAvailable("bob", "dc2");
    await bob.expectNothingElse(carol);
    assert.deepEqual(requestsAt(bob), []);
    say(
      "alice's node is killed: carol still gets her request, and bob does not get the cancelled one",
    );

    await stage.addAccount(`dave@${dc1.localHost}`, "dc1");
    await bob.presence({ to: `dave@${dc1.localHost}`, type: "subscribe" });
    await cluster.until(async () => {
      const applied = await Promise.all(dc1.nodes.map((node) => Figures.read(dc1, node)));
      return applied.some((each) => each.sum(SUBSCRIPTIONS, { outcome: "applied" }) > 0);
    }, { what: "dc1, which was started anew, applies what is for its own host" });
    const dave = await stage.enterAvailable("dave", "dc1", { domain: dc1.localHost, node: 1 });
    await dave.expectStanza(isRequest(bare(bob.jid)));
    say(`dave@${dc1.localHost} gets what ${bob.jid} asked from ${dc2.localHost}`);
  },
};

function isRequest(from: string): (stanza: ReceivedStanza) => boolean {
  return (stanza) =>
    stanza.kind === "presence" && stanza.type === "subscribe" && stanza.from === from;
}

function requestsAt(client: ChatClient): readonly string[] {
  return client.received.filter(({ type }) => type === "subscribe").map(({ xml }) => xml);
}

/** Waits until the nodes have together counted so many. */
async function untilCounted(cluster: Cluster, outcome: string, least: number): Promise<void> {
  await cluster.until(async () => await counted(cluster, outcome) >= least, {
    what: `${least} stanzas are counted as ${outcome}`,
  });
}

/** Returns the number of stanzas that the nodes have together counted so. */
async function counted(cluster: Cluster, outcome: string): Promise<number> {
  let sum = 0;
  for (const datacenter of cluster.datacenters) {
    for (const node of datacenter.nodes) {
      sum += (await Figures.read(datacenter, node)).sum(SUBSCRIPTIONS, { outcome });
    }
  }
  return sum;
}
