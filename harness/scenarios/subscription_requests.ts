import assert from "node:assert/strict";
import type { ChatClient, ReceivedStanza } from "../clients/mod.ts";
import type { Cluster, Datacenter } from "../cluster/mod.ts";
import { REPLICATIONS, type Scenario } from "../scenario.ts";
import { PATIENCE_MS } from "../until.ts";
import { Figures } from "./_figures.ts";
import { bare, becomeAvailable, Stage } from "./_stage.ts";
import { TWO_NODES } from "./_two_nodes.ts";

const REQUESTS = "causeway_subscription_requests_total";

/** A node looks every 10 s where the contacts are for whom it keeps requests. */
const FOUND_WITHIN_MS = 2 * PATIENCE_MS;

/** Subscription requests to users who are offline (RFC 6121 §3.1.3). */
export const SUBSCRIPTION_REQUESTS: Scenario = {
  name: "subscription-requests",
  summary: "a subscription request to an offline user arrives at each login, at any datacenter, " +
    "until it is answered",
  // Requests lie in the store of the node that keeps them, and that store is not shared.
  options: { ...TWO_NODES, database: "postgresql" },
  replications: REPLICATIONS,
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const [dc1, dc2] = ["dc1", "dc2"].map((each) => cluster.datacenter(each)) as [
      Datacenter,
      Datacenter,
    ];
    const account = (who: string) => `${who}@${cluster.globalHost}`;
    const alice = await stage.enterAvailable("alice", "dc1");

    await alice.presence({ to: account("bob"), type: "subscribe" });
    await untilCounted(cluster, "kept", 1);
    const first = await stage.enter("bob", "dc2", { node: 1 });
    await stage.untilTableSaysOfSession(first, "dc2");
    await untilCounted(cluster, "passed-on", 1);
    assert.deepEqual(requestsAt(first), [], "he has not said that he is there");
    await becomeAvailable(first);
    await first.expectStanza(isRequest(account("alice")), FOUND_WITHIN_MS);
    say(
      "alice sends bob a request while he is offline; he logs in at dc2, and gets it after his " +
        "presence",
    );

    await first.disconnect();
    await stage.untilGone(first.jid);
    const second = await stage.enterAvailable("bob", "dc1", { node: 1 });
    await second.expectStanza(isRequest(account("alice")), FOUND_WITHIN_MS);
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
    }
    say("he answers, and does not get the request again");

    const received = alice.received.length;
    await alice.presence({ to: account("nobody"), type: "subscribe" });
    await alice.presence({ to: account("carol"), type: "subscribe" });
    await alice.presence({ to: account("bob"), type: "subscribe" });
    await alice.presence({ to: account("bob"), type: "unsubscribe" });
    await untilCounted(cluster, "ignored", 1);
    assert.equal(alice.received.length, received, "nobody tells who exists");
    say("a request to a nonexistent account is ignored and counted; alice sees no difference");

    await dc1.node.kill();
    await dc1.node.start();
    const carol = await stage.enterAvailable("carol", "dc2");
    await carol.expectStanza(isRequest(account("alice")), FOUND_WITHIN_MS);
    const bob = await stage.enterAvailable("bob", "dc2");
    await bob.expectNothingElse(carol);
    assert.deepEqual(requestsAt(bob), []);
    say(
      "alice's node is killed: carol still gets her request, and bob does not get the cancelled one",
    );

    await stage.addAccount(`dave@${dc1.localHost}`, "dc1");
    await bob.presence({ to: `dave@${dc1.localHost}`, type: "subscribe" });
    await cluster.until(async () => {
      const kept = await Promise.all(
        dc1.nodes.map((node) => Figures.read(dc1, node)),
      );
      return kept.some((each) => each.sum("causeway_subscription_request_contacts") > 0);
    }, { what: "dc1 keeps what is for its own host" });
    const dave = await stage.enterAvailable("dave", "dc1", { domain: dc1.localHost, node: 1 });
    await dave.expectStanza(isRequest(bare(bob.jid)), FOUND_WITHIN_MS);
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
  await cluster.until(async () => {
    let sum = 0;
    for (const datacenter of cluster.datacenters) {
      for (const node of datacenter.nodes) {
        sum += (await Figures.read(datacenter, node)).sum(REQUESTS, { outcome });
      }
    }
    return sum >= least;
  }, { what: `${least} requests are counted as ${outcome}`, withinMs: FOUND_WITHIN_MS });
}
